"""Lifecycle: committed objects under a prefix, older than so many days, on every branch that can reach them.

An address goes only when, for every path that uses it and every branch that
reaches that path's commit, some rule's prefix matches and the entry is older than
that rule's days on that branch. Commits that no branch reaches, tags, staged
entries, keep rules and holds keep what they name.

A run looks into the commits in which something may have come of age since the
last one that swept, and at what was *deferred* then. Each candidate is judged by
all its references, in all commits.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from desilt.columns.files import as_json
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.domain import cutoffs as cut
from desilt.domain.policy import Policy, parse
from desilt.domain.potential import Commits, after, named, potential
from desilt.domain.reason import Reason
from desilt.errors import BadRequest, DamagedWatermark, NotReadBack
from desilt.jobs import watermark
from desilt.jobs.job import COMMITTED, DROPPED_FOR, Job, Mark, Stages, Traits, Work
from desilt.jobs.lifecycle import tables
from desilt.jobs.lifecycle import watermark as saving
from desilt.jobs.lifecycle.lint import findings, given
from desilt.jobs.lifecycle.policy_file import policy_of
from desilt.jobs.lifecycle.reach import reached
from desilt.jobs.lifecycle.stale import stale_branches
from desilt.jobs.removed import distrust, removed
from desilt.jobs.rules.agreed import agreed, outgrown, told
from desilt.jobs.rules.figures import figures
from desilt.jobs.rules.kernel import RuleCounts, RuleJudge
from desilt.jobs.sets import Recorded
from desilt.logs import logger
from desilt.records import policies
from desilt.records.ledger import BatchRow
from desilt.repository.gate import Rules
from desilt.repository.protocol import Repository
from desilt.repository.sealed import seal
from desilt.repository.snapshot import Snapshot
from desilt.runs.plan import Evidence, Next, Plan
from desilt.runs.report import Amount, RuleCutoff
from desilt.runs.steps import DeleteRefs, RemoveObjects
from desilt.sweep.guard import Unfit

JOB = "lifecycle"
log = logger(__name__)
SKEW = timedelta(hours=1)  # by which an entry may be younger than its commit, where clocks differ


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of it can be told besides."""

    policy: Policy | None = field(default=None, metadata={"read": policy_of})  # None: the one that was set
    dropped_for: timedelta = DROPPED_FOR  # objects that something pointed to since then stay


def mark(work: Work[Options]) -> Mark:
    """The plan, written into the run's folder."""
    repository, source, run, options = work.repository, work.source, work.run, work.options
    policy = options.policy or set_policy(repository)
    stage = Stages(work.executor.watch)
    recorded = Recorded(repository, run)
    last = saving.nothing if work.request.full else saving.read(repository, JOB)
    with stage("staged"):  # before commits: an entry only ever moves from the one to the other
        staged = source.staged(run)
        lately = recorded.restored(run.now - repository.grace)
        back = recorded.unsettled()
        dropped = source.dropped(run, work.dropped_since(options.dropped_for))
    with stage("commits"):
        seen = source.snapshot(run.now, uses=bool(policy.branches))
        now = cut.resolve(policy, seen.names, run.now)
        dated = dates(seen)
        looked_into = set(dated) if last.last is None else potential(dated, last.last, now)
        found = reached(source, seen, policy, now, looked_into)
        names = "".join(f"{listed.id}\n" for listed in found.ranges)
        judged = seal(repository.store, f"{work.folder}inputs/ranges.txt", names.encode())
    with stage("verdicts"):
        judge = RuleJudge(
            repository.layout,
            run.id,
            run.now,
            tuple(found.entries),
            found.terms,
            {Reason.STAGED: staged.files, Reason.RESTORED: [lately], Reason.DROPPED: [dropped]},
            (*last.deferred, back),
            tuple(removed(work.executor, repository)),
            (back,),
            work.folder,
        )
        answer = judge_buckets(work.executor, repository.store.uri, judge, weigh=judged_objects)
    if isinstance(answer, DamagedFiles):
        source.distrust(key for key in answer.names if any(one.file.key == key for one in found.entries))
        distrust(repository.store, repository.prefix, answer.names)
        if left := answer.names & {file.key for file in last.deferred}:
            raise DamagedWatermark(min(left), "what it deferred is not what was written")
        raise NotReadBack(min(answer.names))
    stale = stale_branches(seen, policy, run.now)
    judged_now = Amount(answer.objects.total(), answer.bytes.total())
    stored = Amount(answer.stored_objects, answer.stored_bytes)
    going = sum((Amount(file.rows, file.bytes) for file in answer.files), Amount())
    inputs = {
        "objects": judged_now.objects,
        "bytes": judged_now.bytes,
        "commits": len(seen.commits),
        "commits looked into": len(looked_into),
        "ranges": len(found.ranges),
        "entries": sum(one.file.rows for one in found.entries),
        "staged entries": staged.entries,
        "deferred before": sum(file.rows for file in last.deferred),
        "deferred": sum(file.rows for file in answer.deferred),
        "generation": seen.revision.number,
    }
    return Mark(
        Evidence(
            policy.fingerprint,
            seen.revision,
            len(seen.commits),
            held=stored.objects - going.objects + staged.entries,
            stored=stored,
            measure=COMMITTED,
            period=options.dropped_for,
            dropped_for=options.dropped_for,
            rules=rules(
                seen, policy, agreed(findings(repository, policy, seen)) if options.policy is not None else None
            ),
            judged=judged,
        ),
        figures(
            run.now,
            inputs,
            stage.seconds,
            answer,
            tuple(RuleCutoff(row.rule_id, row.prefix, row.branch or "", row.before.isoformat()) for row in now.table),
        ),
        (RemoveObjects(answer.files), *([DeleteRefs(stale)] if stale else [])),
        Next(
            last.run or watermark.current(repository, JOB),
            {
                "version": saving.VERSION,
                "last": saving.write(repository, run, after(dated, last.last, now)),
                saving.DEFERRED: [as_json(file) for file in answer.deferred],
            },
            again=saving.DEFERRED,
        ),
    )


def dates(seen: Snapshot) -> Commits:
    """Every commit, its date (with some room for clocks that differ), and the branches that reach it."""
    sets = named(seen.bits, seen.names)
    return {name: (commit.created_at + SKEW, sets[name]) for name, commit in seen.commits.items()}


def rules(seen: Snapshot, policy: Policy, told: tuple[str, ...] | None) -> Rules:
    """What a sweep judges again by; with a policy that was given, what there is to be agreed to."""
    heads = {branch.name: branch.head for branch in seen.branches}
    tags = {tag.name: tag.target for tag in seen.tags}
    return Rules(JOB, policy.to_json(), policy.fingerprint, told is not None, heads, tags, told or ())


def judged_objects(answer: RuleCounts) -> int:
    return answer.objects.total()


def set_policy(repository: Repository) -> Policy:
    """What the repository's owner has set."""
    with repository.records.read() as tx:
        found = policies.find(tx, repository.uid, JOB)
    if found is None:
        raise BadRequest(
            f"{repository.name!r} has no lifecycle policy; set one with `desilt lifecycle set`, or pass --policy"
        )
    return parse(found.document)


def outgrown_by(repository: Repository, plan: Plan) -> Unfit | None:
    """What speaks against a plan's policy by now, and nobody has agreed to."""
    gone_by = plan.evidence.rules
    assert gone_by is not None
    known: Collection[str] = ()  # who gave it with the run has seen nothing of what lint says
    if not gone_by.given:
        with repository.records.read() as tx:
            kept = policies.find(tx, repository.uid, JOB)
        known = kept.agreed if kept else ()
    return outgrown(findings(repository, parse(gone_by.document)), known, gone_by.told, see="desilt lifecycle lint")


def policy_now(repository: Repository, plan: Plan) -> str:
    """The policy that a plan must have been made for; a plan for a policy of its own is as good as that."""
    gone_by = plan.evidence.rules
    if gone_by is not None and gone_by.given:
        return plan.evidence.policy
    return set_policy(repository).fingerprint


def publish(repository: Repository, plan: Plan, batches: Sequence[BatchRow]) -> None:
    """The tables that others read."""
    tables.write(repository, plan, batches)


def check(repository: Repository, options: Options, confirm: bool) -> None:
    """Refuse a policy of its own that says what it cannot mean; there must be one."""
    if options.policy is None:
        set_policy(repository)
        return
    for one in given(repository, options.policy, confirm=confirm):
        log.warning("%s", told(one))


job = Job(
    JOB,
    Options,
    mark,
    Traits(unseen="not of age, or looked at by an earlier run"),
    policy=policy_now,
    against=outgrown_by,
    publish=publish,
    check=check,
)
