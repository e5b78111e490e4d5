"""Lifecycle: committed objects under a prefix, older than so many days, on every branch that can reach them.

An address goes only when, for every path that uses it and every branch that
reaches that path's commit, some rule's prefix matches and the entry is older than
that rule's days on that branch. Commits that no branch reaches, tags, staged
entries, keep rules and holds keep what they name.

A run looks into the commits in which something may have come of age since the
last one that swept, and at what was *deferred* then. Each candidate is judged by
all its references, in all commits.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from desilt.domain import cutoffs as cut
from desilt.domain.cutoffs import Cutoffs
from desilt.domain.policy import Policy, Tags, parse
from desilt.domain.potential import Commits, after, named, potential
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.domain.times import microseconds
from desilt.errors import BadRequest, CorruptTable
from desilt.frames.hashing import address_hash
from desilt.frames.rules import Group, Terms
from desilt.jobs import judging, lasting, leftovers, tables
from desilt.jobs.branches import stale_branches
from desilt.jobs.candidates import Entries
from desilt.jobs.expiring import Answer, Question, judge
from desilt.jobs.expiring import cut as cut_up
from desilt.jobs.job import COMMITTED, Ask, Job, Marked, Stages, dropped_since
from desilt.jobs.linting import agreed, findings, outgrown
from desilt.jobs.place import opening
from desilt.lake import policies
from desilt.lake.database import Transaction
from desilt.lake.holds import Kind
from desilt.lake.ledger import BatchRow
from desilt.lake.ranges import FOLDER as RANGES
from desilt.lake.repository import Repository
from desilt.runs.plan import Plan
from desilt.runs.report import Amount
from desilt.sources import metarange_cache, range_cache
from desilt.sources.held import as_json
from desilt.sources.lake import LakeSource
from desilt.sources.reached import History, Reach, by_metarange, read_history
from desilt.sources.removed import distrust, removed
from desilt.sources.spread import Spread
from desilt.sweep.branches import delete_stale

JOB = "lifecycle"
SKEW = timedelta(hours=1)  # by which an entry may be younger than its commit, where clocks differ
ALL_SETTLED = None


def mark(run: Run, source: LakeSource, spread: Spread, ask: Ask) -> Marked:
    """The plan, written into the run's folder."""
    core, repository = source.repository.core, source.repository
    policy = ask.policy or set_policy(repository)
    stage = Stages(spread.watch)
    last = lasting.nothing if ask.full else lasting.read(repository, JOB)
    with stage("staged"):  # before commits: an entry only ever moves from the one to the other
        staged = source.staged(run)
        lately = source.restored(run, run.now - core.ticket_life)
        back = source.unsettled(run)
        dropped = source.dropped(run, dropped_since(ask, run.now, core.clock()))
    with stage("commits"):
        history = read_history(core, run.now)
        now = cut.resolve(policy, history.names, run.now)
        dated = dates(history)
        looked_into = set(dated) if last.last is None else potential(dated, last.last, now)
        terms, entries, ranges = reached(run, source, spread, policy, now, history, looked_into)
    with stage("verdicts"):
        asked = Question(
            core.store.uri,
            run.id,
            range(0),
            tuple(entries),
            terms,
            {Reason.STAGED: staged.files, Reason.RESTORED: [lately], Reason.DROPPED: [dropped]},
            (*last.deferred, back),
            tuple(removed(spread, repository, opening(repository, spread))),
            (back,),
            f"{core.prefix}{run.folder}",
        )
        answer = sum(spread(judge, cut_up(asked, spread.width), weigh=judged_objects), Answer())
    if answer.damaged:
        source.distrust(key for key in answer.damaged if any(one.file.key == key for one in entries))
        distrust(core.store, core.prefix, answer.damaged)
        raise CorruptTable(min(answer.damaged), "it could not be read back; run again, or with --full")
    judged_now = Amount(answer.objects.total(), answer.bytes.total())
    stored = Amount(answer.stored_objects, answer.stored_bytes)
    going = sum((Amount(file.rows, file.bytes) for file in answer.files), Amount())
    inputs = {
        "objects": judged_now.objects,
        "bytes": judged_now.bytes,
        "commits": len(history.commits),
        "commits looked into": len(looked_into),
        "ranges": ranges,
        "entries": sum(one.file.rows for one in entries),
        "staged entries": staged.entries,
        "deferred before": sum(file.rows for file in last.deferred),
        "deferred": sum(file.rows for file in answer.deferred),
        "generation": history.generation,
    }
    name = lasting.write(repository, run, after(dated, last.last, now))
    return Marked(
        as_judged(answer),
        policy.fingerprint,
        run.now,
        {},
        inputs,
        stage.seconds,
        history.generation,
        history.mark,
        held=stored.objects - going.objects + staged.entries,
        stored=stored,
        measure=COMMITTED,
        dropped_for=ask.dropped_for,
        base=last.run or lasting.current(repository, JOB),
        saves={
            "last": name,
            "deferred": [as_json(file) for file in answer.deferred],
            "policy": policy.to_json(),
            "given": ask.policy is not None,
            "agreed": agreed(findings(repository, ask.policy)) if ask.policy is not None else [],
            "addresses": list(answer.tables),
        },
        watches={
            "policy": policy.to_json(),
            "branches": {branch.name: branch.head for branch in history.branches},
            "tags": {tag.name: tag.target for tag in history.tags},
        },
        by="rule",
        refs=stale_branches(core, history, policy, run.now),
        holds={name: Amount(count, answer.hold_bytes[name]) for name, count in sorted(answer.hold_objects.items())},
    )


def dates(history: History) -> Commits:
    """Every commit, its date (with some room for clocks that differ), and the branches that reach it."""
    sets = named(history.bits, history.names)
    return {name: (commit.created_at + SKEW, sets[name]) for name, commit in history.commits.items()}


def reached(
    run: Run,
    source: LakeSource,
    spread: Spread,
    policy: Policy,
    now: Cutoffs,
    history: History,
    looked_into: set[str],
) -> tuple[Terms, list[Entries], int]:
    """The policy in numbers, and the files of all entries with who reaches them."""
    core = source.repository.core
    of_metaranges = by_metarange(history, potential=looked_into, tags_hold=policy.tags is Tags.HOLD)
    in_time = sorted(history.commits.values(), key=lambda commit: (commit.created_at, commit.id))
    lists = metarange_cache.lists(core.store, core.ranges, [commit.metarange for commit in in_time])
    of_ranges: dict[str, Reach] = {name: Reach() for name in lists.ranges}
    for metarange, names in lists.of.items():
        for name in names:
            of_ranges[name].add(of_metaranges[metarange])
    classes, groups = Classes(now, history.names), Groups(any(rule.noncurrent_only for rule in now.rules))
    numbers = {name: groups.number(one, classes) for name, one in of_ranges.items()}
    wanted = [lists.ranges[name] for name in sorted(lists.ranges)]
    placed = range_cache.placed(spread, core.store, core.prefix, wanted, source=RANGES)
    entries = []
    for one in placed:
        owned = [one.ranges.get(owner) for owner in range(one.owners)]
        groups_of = tuple(-1 if name is None else numbers[name] for name in owned)
        looked_at = tuple(name is not None and of_ranges[name].potential for name in owned)
        entries.append(Entries(one.file, groups_of, looked_at))
    judged = "".join(f"{listed.id}\n" for listed in wanted)
    core.store.put(f"{core.prefix}{run.folder}inputs/ranges.txt", [judged.encode()])
    kept = {hold.id: hold.value for hold in history.holds if hold.kind is Kind.ADDRESS}
    terms = Terms(
        tuple(rule.id for rule in now.rules),
        tuple(rule.prefix for rule in now.rules),
        tuple(rule.noncurrent_only for rule in now.rules),
        tuple(classes.found),
        tuple(groups.found),
        tuple(keep.prefix for keep in policy.keep if keep.prefix is not None),
        tuple(keep.glob for keep in policy.keep if keep.glob is not None),
        tuple((hold.value, hold.id) for hold in history.holds if hold.kind is Kind.PREFIX),
        tuple(zip(address_hash(pa.array(kept.values(), pa.string())).tolist(), kept, strict=True)),
    )
    return terms, entries, len(wanted)


class Classes:
    """Branches to which all rules give the same cutoffs are one class."""

    def __init__(self, now: Cutoffs, names: list[str]) -> None:
        self.found: dict[tuple[int | None, ...], int] = {}
        self.of = [self._number(tuple(self._cutoff(now.before(rule, name)) for rule in now.rules)) for name in names]

    def _number(self, kind: tuple[int | None, ...]) -> int:
        return self.found.setdefault(kind, len(self.found))

    @staticmethod
    def _cutoff(before: datetime | None) -> int | None:
        return None if before is None else microseconds(before)


class Groups:
    """Ranges that are reached alike are one group."""

    def __init__(self, heads_matter: bool) -> None:
        self.found: dict[Group, int] = {}
        self._heads_matter = heads_matter
        self._members: dict[tuple[int, int], frozenset[tuple[int, bool]]] = {}

    def number(self, one: Reach, classes: Classes) -> int:
        key = (one.branches, one.heads if self._heads_matter else 0)
        if key not in self._members:
            self._members[key] = frozenset(
                (kind, bool(key[1] >> place & 1)) for place, kind in enumerate(classes.of) if key[0] >> place & 1
            )
        group = Group(self._members[key], one.tagged, one.detached, one.held)
        return self.found.setdefault(group, len(self.found))


def judged_objects(answer: Answer) -> int:
    return answer.objects.total()


def as_judged(answer: Answer) -> judging.Answer:
    """The figures that every job's report has."""
    return judging.Answer(answer.objects, answer.bytes, answer.prefix_objects, answer.prefix_bytes, files=answer.files)


def set_policy(repository: Repository) -> Policy:
    """What the repository's owner has set."""
    with repository.database.read() as tx:
        found = policies.find(tx, repository.uid, JOB)
    if found is None:
        raise BadRequest(
            f"{repository.name!r} has no lifecycle policy; set one with `desilt lifecycle set`, or pass --policy"
        )
    return parse(found.document)


def outgrown_by(repository: Repository, plan: Plan) -> str:
    """What speaks against a plan's policy by now, and nobody has agreed to."""
    if plan.saves is None or plan.watches is None:
        raise AssertionError("a lifecycle plan saves, and watches")
    known = plan.saves["agreed"]
    if not plan.saves["given"]:
        with repository.database.read() as tx:
            kept = policies.find(tx, repository.uid, JOB)
        known = kept.agreed if kept else ()
    return outgrown(findings(repository, parse(plan.watches["policy"])), known)


def policy_now(repository: Repository, plan: Plan) -> str:
    """The policy that a plan must have been made for; a plan for a policy of its own is as good as that."""
    if plan.saves and plan.saves["given"]:
        return plan.policy
    return set_policy(repository).fingerprint


def save(plan: Plan, source: LakeSource, spread: Spread, batches: list[BatchRow]) -> Callable[[Transaction], None]:
    """The next run begins here; and the tables that others read are written."""
    repository = source.repository
    if plan.saves is None:
        raise AssertionError("a lifecycle plan saves")
    tables.write(repository, plan, batches)
    left = leftovers.gather(repository, spread, plan, batches, ALL_SETTLED)
    value: dict[str, Any] = {
        "version": lasting.VERSION,
        "last": plan.saves["last"],
        "deferred": [*plan.saves["deferred"], *map(as_json, left)],
    }
    return lasting.moving(repository, JOB, plan, value)


job = Job(JOB, mark, policy_now, save, after=delete_stale, against=outgrown_by)
