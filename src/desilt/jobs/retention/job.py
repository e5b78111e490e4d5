"""Retention: entries that a document calls expired are marked, and the object store removes their objects.

An object expires when every (branch, path) pair of every entry that uses it has:
in all commits that a branch reaches, and in all staging areas. Commits that no
branch reaches, tags, keep rules and holds keep what they have.

What expired is marked in the ledger, batch by batch, each in one transaction:
from then on it is gone for every reader, and nothing else has happened. Then it
is tagged, and a rule of the bucket removes it; or, where a store has no tags, a
later run does.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from desilt.columns.buckets import HASH
from desilt.columns.files import HeldFile, put
from desilt.columns.hashing import address_hash
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.domain.policy import KeepRule
from desilt.domain.reason import Reason
from desilt.domain.retention import Retention, RuleExpiry, parse
from desilt.errors import BadRequest, NotReadBack
from desilt.jobs.job import COMMITTED, DROPPED_FOR, Job, Mark, Stages, Traits, Work
from desilt.jobs.removed import distrust, removed
from desilt.jobs.retention.document import JOB, keep_rules, kept, retention_of
from desilt.jobs.retention.lint import findings, given
from desilt.jobs.retention.reach import reached
from desilt.jobs.rules.agreed import agreed, outgrown, told
from desilt.jobs.rules.figures import figures
from desilt.jobs.rules.kernel import RuleCounts, RuleJudge
from desilt.jobs.sets import Recorded
from desilt.logs import logger
from desilt.objects.tags import EXPIRE_NOW, ObjectTag
from desilt.records import policies
from desilt.records.holds import HoldKind
from desilt.repository.gate import Rules
from desilt.repository.protocol import Repository
from desilt.repository.sealed import seal
from desilt.repository.snapshot import Snapshot
from desilt.runs.plan import Evidence, Plan
from desilt.runs.report import Amount, RuleCutoff
from desilt.runs.steps import Action, BatchWish, FollowMarks, RemoveObjects
from desilt.sweep.follow import look_again
from desilt.sweep.guard import Unfit

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of it can be told besides."""

    document: Retention | None = field(default=None, metadata={"read": retention_of})  # None: as it was set
    tag: str = str(EXPIRE_NOW)
    wait: timedelta = timedelta(days=1)  # for which what is marked can be brought back, where a store has no tags
    dropped_for: timedelta = DROPPED_FOR  # objects that something pointed to since then stay
    batch: bool = False  # tagged by a job of S3 Batch Operations, as
    account_id: str = ""
    role_arn: str = ""


def mark(work: Work[Options]) -> Mark:
    """The plan, written into the run's folder."""
    repository, source, run, options = work.repository, work.source, work.run, work.options
    retention, keep = options.document or kept(repository).retention, keep_rules(repository)
    stage, recorded = Stages(work.executor.watch), Recorded(repository, run)
    with stage("staged"):  # before commits: an entry only ever moves from the one to the other
        staged = source.staged_entries(run)
        lately = recorded.restored(run.now - repository.grace)
        back = recorded.unsettled()
        marked = recorded.marked()
        dropped = source.dropped(run, work.dropped_since(options.dropped_for))
    with stage("commits"):
        seen = source.snapshot(run.now)
        found = reached(source, seen, staged, retention, keep, run.now)
        names = "".join(f"{listed.id}\n" for listed in found.ranges)
        judged = seal(repository.store, f"{work.folder}inputs/ranges.txt", names.encode())
    with stage("verdicts"):
        judge = RuleJudge(
            repository.layout,
            run.id,
            run.now,
            found.entries,
            found.terms,
            {Reason.RESTORED: [lately], Reason.DROPPED: [dropped]},
            (back,),
            tuple(removed(work.executor, repository)),
            (back,),
            work.folder,
            told=False,
            marked=(marked,) if seen.holds else (),
        )
        answer = judge_buckets(work.executor, repository.store.uri, judge, weigh=judged_objects)
    if isinstance(answer, DamagedFiles):
        source.distrust(key for key in answer.names if any(one.file.key == key for one in found.entries))
        distrust(repository.store, repository.prefix, answer.names)
        raise NotReadBack(min(answer.names))
    stored = Amount(answer.stored_objects, answer.stored_bytes)
    going = sum((Amount(file.rows, file.bytes) for file in answer.files), Amount())
    inputs = {
        "objects": answer.objects.total(),
        "bytes": answer.bytes.total(),
        "commits": len(seen.commits),
        "ranges": len(found.ranges),
        "entries": sum(one.file.rows for one in found.entries),
        "staged entries": staged.entries,
        "marked before": marked.rows,
        "generation": seen.revision.number,
    }
    return Mark(
        Evidence(
            retention.fingerprint(keep),
            seen.revision,
            len(seen.commits),
            held=max(stored.objects - going.objects, 0),
            stored=stored,
            measure=COMMITTED,
            period=options.dropped_for,
            dropped_for=options.dropped_for,
            rules=rules(seen, retention, keep, given_with(work)),
            judged=judged,
        ),
        figures(
            run.now,
            inputs,
            stage.seconds,
            answer,
            tuple(cutoff(one, run.now) for one in retention.expiries),
        ),
        (RemoveObjects(answer.files), follow(work, seen, answer)),
    )


def cutoff(one: RuleExpiry, now: datetime) -> RuleCutoff:
    """What a rule says, for a report."""
    branch, path = one.rule.branch_and_path
    whose = branch if path is not None else f"{branch}*"
    return RuleCutoff(one.id, path or "", whose, one.before(now).isoformat())


def follow(work: Work[Options], seen: Snapshot, answer: RuleCounts) -> FollowMarks:
    """What is done about marks: those of this run, and those of earlier ones."""
    options = work.options
    tag = options.tag if work.repository.store.tagging is not None else ""
    batch = BatchWish(options.account_id, options.role_arn) if options.batch else None
    ripe_before, spared = work.now - options.wait, (*answer.spared, *ordered(work, seen))
    return FollowMarks(tag, ripe_before, spared, seen.revision, batch)


def ordered(work: Work[Options], seen: Snapshot) -> list[HeldFile]:
    """Addresses that people ordered to be kept, whether any entry has them or not."""
    found = [hold.value for hold in seen.held(HoldKind.ADDRESS)]
    if not found:
        return []
    hashes = np.sort(address_hash(pa.array(found, pa.string())))
    return [put(work.repository.store, f"{work.folder}spared/ordered.parquet", pa.table({HASH: hashes}))]


def given_with(work: Work[Options]) -> tuple[str, ...] | None:
    """What there is to be agreed to, of a document that was given; None: it is the one that was set."""
    document = work.options.document
    return None if document is None else agreed(findings(work.repository, document))


def rules(seen: Snapshot, retention: Retention, keep: Sequence[KeepRule], told_of: tuple[str, ...] | None) -> Rules:
    """What a sweep judges again by."""
    heads = {branch.name: branch.head for branch in seen.branches}
    tags = {tag.name: tag.target for tag in seen.tags}
    given_now = told_of is not None
    return Rules(JOB, retention.to_json(), retention.fingerprint(keep), given_now, heads, tags, told_of or ())


def judged_objects(answer: RuleCounts) -> int:
    return answer.objects.total()


def policy_now(repository: Repository, plan: Plan) -> str:
    """What a plan must have been made for: its own document, or the one that is set, beside today's keep rules."""
    gone_by = plan.evidence.rules
    assert gone_by is not None
    retention = parse(gone_by.document) if gone_by.given else kept(repository).retention
    return retention.fingerprint(keep_rules(repository))


def outgrown_by(repository: Repository, plan: Plan) -> Unfit | None:
    """What speaks against a plan's document by now, and nobody has agreed to."""
    gone_by = plan.evidence.rules
    assert gone_by is not None
    known: Collection[str] = ()  # who gave it with the run has seen nothing of what lint says
    if not gone_by.given:
        with repository.records.read() as tx:
            row = policies.find(tx, repository.uid, JOB)
        known = row.agreed if row else ()
    found = findings(repository, parse(gone_by.document))
    return outgrown(found, known, gone_by.told, see="desilt retention lint")


def check_tagging(repository: Repository, options: Options) -> None:
    """Refuse a tag that is none, and a job of the store where there is none, or nobody who may do it."""
    ObjectTag.parse(options.tag)
    if options.batch and not (options.account_id and options.role_arn):
        raise BadRequest("--batch needs --account-id and --role-arn: the account, and the role that S3 acts as there")
    if options.batch:
        from desilt.objects.batch_tagging import check_account  # takes a moment to load, and few ask for it

        check_account(options.account_id, options.role_arn)
    if options.batch and repository.store.tagging is None:
        raise BadRequest(f"{repository.store.uri} has no S3 Batch Operations; leave --batch out")


def check(repository: Repository, options: Options, confirm: bool) -> None:
    """Refuse what cannot be meant; there must be a document."""
    check_tagging(repository, options)
    if options.document is None:
        kept(repository)
        return
    for one in given(repository, options.document, confirm=confirm):
        log.warning("%s", told(one))


job = Job(
    JOB,
    Options,
    mark,
    Traits(
        action=Action.MARK,
        no_way_back="marks what expired; `desilt retention restore` brings that back",
        after=("lifecycle",),
        unseen="not of age",
    ),
    policy=policy_now,
    against=outgrown_by,
    check=check,
    first=look_again,
)
