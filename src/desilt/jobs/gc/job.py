"""Uncommitted garbage: objects that were uploaded and never became, or are no longer, part of anything.

An object goes when no commit of the repository holds it, reachable or not; no
staging area of any branch, and no open ticket; and when every clock says that it
is older than a ticket lives.

A clean run lists everything. A later one lists only partitions that are newer
than what the last run left settled, and looks again at those settled objects that
no commit held then. What is *held* is always read whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from desilt.columns.files import HeldFile
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.columns.layout import Layout
from desilt.domain.reason import Reason
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import BadRequest, DamagedWatermark, NotReadBack
from desilt.inventory import supplied
from desilt.inventory.listing import Inventory, Listed, total
from desilt.inventory.s3 import Given
from desilt.jobs import watermark
from desilt.jobs.counts import Counts
from desilt.jobs.gc import unified
from desilt.jobs.gc.kernel import GarbageJudge
from desilt.jobs.gc.options import Options, check
from desilt.jobs.gc.watermark import PENDING, Saved, nothing, read_saved
from desilt.jobs.job import STORED, Figures, Job, Mark, Stages, Traits, Work
from desilt.jobs.sets import Recorded
from desilt.repository.protocol import Repository
from desilt.repository.sealed import Sealed, seal
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import KeptByRules, Uploads
from desilt.runs import plan_files
from desilt.runs.plan import ONE_BRANCH, Evidence, Next, Plan
from desilt.runs.report import Amount
from desilt.runs.steps import RemoveObjects

JOB = "gc"


@dataclass(frozen=True, slots=True)
class CommittedSet:
    """What commits hold, and what people ordered to be kept: of one moment, from which on a sweep looks for more."""

    seen: Snapshot
    kept: KeptByRules | None  # None: every commit holds what it has
    files: list[HeldFile]
    ordered: HeldFile
    judged: Sealed
    ranges: int
    entries: int


def mark(work: Work[Options]) -> Mark:
    """The plan, written into the run's folder."""
    repository, source, run, options = work.repository, work.source, work.run, work.options
    layout = repository.layout
    before = run.now - repository.grace - CLOCK_MARGIN  # fixed before anything is read
    given = asked_for(work)
    stage = Stages(work.executor.watch)
    recorded = Recorded(repository, run)
    saved = begins_with(work)
    # In this order, since an address only ever moves from an upload to a staging area to a commit.
    with stage("tickets and staged"):
        uploads = source.uploads(run, work.now)
        restored = recorded.restored(before)
        marked = recorded.marked()
        staged = source.staged(run)
        dropped = source.dropped(run, work.dropped_since(options.dropped_for))
        discarded = recorded.discarded()  # after what is staged, which may be dropped meanwhile
    with stage("commits and ranges"):
        committed = read_committed(work, recorded)
    with stage("inventory"):
        found = source.groups()
        if options.branch is not None:
            found = [chosen(options.branch, staged.groups, found)]
        inventory = listed(work, found, saved, given)
        source.check_inventory(inventory.partitions)  # which were listed before
        stored = inventory.listed
    long_ago = closed(layout, repository.grace, work.now)
    until = {} if options.inventory else settling(layout, found, saved, uploads, long_ago)

    served: list[HeldFile] = []  # that no list had, and that a second look found

    def judged() -> Counts | DamagedFiles:
        held = {
            Reason.STAGED: [*staged.files, *served],
            Reason.TICKET: [uploads.file],
            Reason.RESTORED: [restored],
            Reason.MARKED: [marked],
            Reason.DISCARDED: [discarded],
            Reason.HELD: [committed.ordered],
            Reason.DROPPED: [dropped],
            Reason.COMMITTED: committed.files,
        }
        judge = GarbageJudge(
            layout,
            (*(one.file for one in stored), *saved.pending),
            held,
            now=run.now,
            before=before,
            copied_at=None if options.after_restore else source.since_copy(),
            folder=work.folder,
            scope="" if options.branch is None else layout.group_folder(found[0]),
            settled=until,
        )
        return judge_buckets(
            work.executor, repository.store.uri, judge, weigh=judged_objects, expected=looked_at(stored, saved)
        )

    with stage("verdicts"):
        answer = judged()
        caches = {file.key for file in committed.files}
        if isinstance(answer, DamagedFiles) and answer.names <= caches:  # a cache can be made again
            source.distrust(answer.names)
            committed = read_committed(work, recorded)
            answer = judged()
        if isinstance(answer, Counts):
            going = (plan_files.read(repository.store, one, 0, one.rows) for one in answer.files)
            if again := source.held_after_all(run, going):
                served.append(again)
                answer = judged()
        if isinstance(answer, DamagedFiles):
            if left := answer.names & {file.key for file in saved.pending}:
                raise DamagedWatermark(min(left), "what it left pending is not what was written")
            raise NotReadBack(min(answer.names))
    if answer.objects.total() + answer.passed != looked_at(stored, saved):
        raise AssertionError(f"{looked_at(stored, saved)} objects were listed, {answer.objects.total()} got a verdict")
    value = None if options.inventory else saved.after(answer, until, found, whole=options.branch is None)
    known = saved.known(found)
    judged_now = Amount(answer.objects.total(), answer.bytes.total())
    inputs = {
        "objects": judged_now.objects,
        "bytes": judged_now.bytes,
        "listed": total(stored)[0],
        "known from before": known.objects,
        "commits": len(committed.seen.commits),
        "ranges": committed.ranges,
        "committed entries": committed.entries,
        "staged entries": staged.entries,
        "open tickets": uploads.file.rows,
        "generation": committed.seen.revision.number,
    }
    return Mark(
        Evidence(
            policy(repository) if committed.kept is None else f"{policy(repository)}; {committed.kept.text}",
            committed.seen.revision,
            len(committed.seen.commits),
            held=committed.entries + staged.entries + uploads.file.rows,
            stored=judged_now + known,
            measure=STORED if options.branch is None else ONE_BRANCH + found[0],
            period=options.dropped_for - (run.now - work.now),  # less, where --now is ahead of the clock
            dropped_for=options.dropped_for,
            rules=None if committed.kept is None else committed.kept.rules,
            judged=committed.judged,
            after_restore=options.after_restore,
        ),
        Figures(
            before,
            inputs,
            stage.seconds,
            answer.objects,
            answer.bytes,
            answer.gone,
        ),
        (RemoveObjects(answer.files),),
        None  # what commits hold today they may not hold tomorrow
        if committed.kept is not None
        else Next(
            saved.run or watermark.current(repository, JOB), value, again=PENDING, settled=value and value["settled"]
        ),
    )


def begins_with(work: Work[Options]) -> Saved:
    """What the last run saved, unless everything is to be looked at, or it was settled too early by a wrong clock."""
    repository = work.repository
    if work.request.full or work.options.inventory or work.options.rules:
        return nothing
    saved = read_saved(repository, JOB)
    early = closed(repository.layout, repository.grace, repository.clock())
    return nothing if any(where < early for where in saved.settled.values()) else saved


def read_committed(work: Work[Options], recorded: Recorded) -> CommittedSet:
    """What every commit holds, reachable or not; ranges that were never decoded are, now."""
    seen = work.source.snapshot(work.run.now)
    kept = None
    if work.options.rules is not None:
        kept = work.source.kept_by_rules(seen, work.run.now, tags=work.options.tags is not None)
    holding = [commit for commit in seen.in_time if kept is None or commit.id in kept.commits]
    ranges = work.source.lists(holding).ranges
    wanted = [ranges[name] for name in sorted(ranges)]
    files = [one.held for one in work.source.entries(wanted)]
    names = "".join(f"{listed.id}\n" for listed in wanted)
    judged = seal(work.repository.store, f"{work.folder}inputs/ranges.txt", names.encode())
    entries = sum(listed.count for listed in wanted)
    return CommittedSet(seen, kept, files, recorded.ordered(seen.holds), judged, len(wanted), entries)


def asked_for(work: Work[Options]) -> Given | None:
    """The inventory that is supplied, if any. It, and a branch that is named, must be there before any work is done."""
    repository, options = work.repository, work.options
    check(options)
    if options.branch is not None:
        names = {branch.uid: branch.name for branch in work.source.snapshot(work.run.now).branches}
        chosen(options.branch, names, work.source.groups())
    if options.inventory is None:
        return None
    if options.branch is not None:
        raise BadRequest("--inventory is for the whole repository; leave --branch out")
    return supplied.found(
        options.inventory, store=repository.store, now=work.run.now, max_age=options.max_inventory_age
    )


def listed(work: Work[Options], branches: list[str], saved: Saved, given: Given | None) -> Inventory:
    """What is stored: all of it, or what is new since the last run, or what somebody else listed."""
    source, options = work.source, work.options
    if given is None or options.inventory is None:
        groups = None if options.branch is None else branches
        return source.inventory(work.run, groups=groups, newer_than=saved.settled)
    taken = supplied.read(
        work.executor,
        given,
        uri=options.inventory,
        store=work.repository.store,
        prefix=work.repository.prefix,
        data=work.repository.layout.data,
        folder=f"{work.run.folder}inputs/inventory/",
    )
    return Inventory(taken.listed, source.folders(branches))


def looked_at(stored: Sequence[Listed], saved: Saved) -> int:
    """How many objects get a verdict."""
    return total(stored)[0] + sum(file.rows for file in saved.pending)


def judged_objects(answer: Counts) -> int:
    return answer.objects.total()


def policy(repository: Repository, plan: Plan | None = None) -> str:
    """What decides over objects here, besides what holds them; rules of the server are looked at by the gate."""
    usual = f"older than {repository.grace + CLOCK_MARGIN}"
    return plan.evidence.policy if plan and plan.evidence.rules and plan.evidence.policy.startswith(usual) else usual


def closed(layout: Layout, grace: timedelta, now: datetime) -> str:
    """Past this, folders are closed for twice as long as an upload may take, and more."""
    return layout.boundary(now - 2 * grace - CLOCK_MARGIN)


def settling(layout: Layout, found: list[str], saved: Saved, uploads: Uploads, closed_from: str) -> dict[str, str]:
    """For each branch, from which partition on nothing new appears: closed long ago, and no upload still under way."""
    until = dict(saved.settled)
    for branch in found:
        busy = uploads.oldest.get(branch)
        after_busy = layout.after(busy) if busy else ""
        until[branch] = min(saved.settled.get(branch, "~"), max(closed_from, after_busy))
    return until


def chosen(branch: str, names: Mapping[str, str], stored: list[str]) -> str:
    """The uid of a branch, by its name; one that was deleted, by its uid."""
    by_name = {name: uid for uid, name in names.items()}
    if branch in by_name:
        return by_name[branch]
    if branch in stored:
        return branch
    raise BadRequest(
        f"{branch!r} is neither a branch nor the uid of a deleted one, whose objects lie together; "
        "see `desilt lake branches`, and leave --branch out where all branches share one folder"
    )


job = Job(
    JOB,
    Options,
    mark,
    Traits(
        committed=False,
        keeps_copied=True,
        after=("lifecycle", "expire", "collect"),
        unseen="known from an earlier run to be held by commits",
    ),
    policy,
    publish=unified.write,
    committed=lambda options: options.rules is not None,
)
