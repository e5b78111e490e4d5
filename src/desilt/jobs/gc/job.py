"""Uncommitted garbage: objects that were uploaded and never became, or are no longer, part of anything.

An object goes when no commit of the repository holds it, reachable or not; no
staging area of any branch, and no open ticket; and when every clock says that it
is older than a ticket lives.

A clean run lists everything. A later one lists only partitions that are newer
than what the last run left settled, and looks again at those settled objects that
no commit held then. What is *held* is always read whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from desilt import cycles
from desilt.columns.files import HeldFile
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.columns.layout import Layout
from desilt.domain.history import Commit
from desilt.domain.reason import Reason
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import DamagedWatermark, NotReadBack
from desilt.inventory.listing import total
from desilt.jobs import watermark
from desilt.jobs.counts import Counts
from desilt.jobs.gc import unified
from desilt.jobs.gc.kernel import BY_RULES, SAID, GarbageJudge
from desilt.jobs.gc.options import Options
from desilt.jobs.gc.stored import asked_for, chosen, listed, looked_at
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

    @property
    def released(self) -> list[Commit]:
        """The commits that rules let go."""
        return [] if self.kept is None else [one for one in self.seen.in_time if one.id not in self.kept.commits]


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

    after_all: Mapping[Reason, HeldFile] = {}  # what a second look at what would go has found

    def judged() -> Counts | DamagedFiles:
        held = {
            Reason.STAGED: staged.files,
            Reason.TICKET: [uploads.file],
            Reason.RESTORED: [restored],
            Reason.MARKED: [marked],
            Reason.DISCARDED: [discarded],
            Reason.HELD: [committed.ordered],
            Reason.DROPPED: [dropped],
            Reason.COMMITTED: committed.files,
        }
        held |= {reason: [*held.get(reason, ()), file] for reason, file in after_all.items()}
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
            said=SAID if committed.kept is None else BY_RULES,
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
            if after_all := source.held_after_all(run, going, committed.released):
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
            notes=notes(after_all, committed.kept, repository.grace),
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


@cycles.left_alone()
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


def judged_objects(answer: Counts) -> int:
    return answer.objects.total()


def policy(repository: Repository, plan: Plan | None = None) -> str:
    """What decides over objects here, besides what holds them; rules of the server are looked at by the gate."""
    usual = f"older than {repository.grace + CLOCK_MARGIN}"
    return plan.evidence.policy if plan and plan.evidence.rules and plan.evidence.policy.startswith(usual) else usual


def notes(after_all: Mapping[Reason, HeldFile], kept: KeptByRules | None, grace: timedelta) -> tuple[str, ...]:
    """What else there is to know: what stays for its parts, and whose rules let go of what commits have."""
    said = []
    if late := after_all.get(Reason.YOUNG):
        said.append(
            f"{late.rows:,} of the objects that are young were uploaded in parts: they may have come to be there just "
            f"now, whatever their dates say, and go once a run {grace + CLOCK_MARGIN} before has listed them"
        )
    if kept is not None:
        said.append(f"What commits have goes by {kept.text}")
    return tuple(said)


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
