"""Uncommitted garbage: objects that were uploaded and never became, or are no longer, part of anything.

An object goes when no commit of the repository holds it, reachable or not; no
staging area of any branch, and no open ticket; and when every clock says that it
is older than a ticket lives.

A clean run lists everything. A later one lists only partitions that are newer
than what the last run left settled, and looks again at those settled objects that
no commit held then. What is *held* is always read whole.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from desilt.domain.address import PARTITION_AGE, boundary, branch_prefix
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.errors import BadRequest, CorruptTable
from desilt.jobs import leftovers
from desilt.jobs.job import STORED, Ask, Job, Marked, Stages, dropped_since
from desilt.jobs.judging import Answer, judge, questions
from desilt.jobs.saved import Saved, nothing, read_saved
from desilt.lake import restored as restores
from desilt.lake import watermarks
from desilt.lake.database import Transaction
from desilt.lake.ledger import BatchRow
from desilt.lake.repository import Repository
from desilt.runs.plan import ONE_BRANCH, Plan
from desilt.runs.report import Amount
from desilt.sources import handed_in
from desilt.sources.held import HeldFile, as_json
from desilt.sources.inventory import Inventory, branch_uids, partitions, total
from desilt.sources.lake import Committed, LakeSource, Ticketed
from desilt.sources.spread import Spread

JOB = "gc"
CLOCK_MARGIN = timedelta(minutes=10)


def mark(run: Run, source: LakeSource, spread: Spread, ask: Ask) -> Marked:
    """The plan, written into the run's folder."""
    core = source.repository.core
    before = run.now - core.ticket_life - CLOCK_MARGIN  # fixed before anything is read
    now = min(run.now, core.clock())  # of what holds: as long as it does by either clock
    stage = Stages(spread.watch)
    saved = nothing if ask.full or ask.inventory else read_saved(core, JOB)
    if any(where < closed(core.clock(), core.ticket_life) for where in saved.settled.values()):
        saved = nothing  # settled too early, by a clock that was wrong
    # In this order, since an address only ever moves from a ticket to a staging area to a commit.
    with stage("tickets and staged"):
        tickets = source.open_tickets(run, now)
        restored = source.restored(run, before)
        staged = source.staged(run)
        dropped = source.dropped(run, dropped_since(ask, run.now, core.clock()))
    with stage("commits and ranges"):
        committed, ordered = committed_and_ordered(run, source, now)
    with stage("inventory"):
        found = branch_uids(core.store, core.prefix)
        if ask.branch is not None:
            found = [chosen(source, ask.branch, staged.branches)]
        inventory = listed(run, source, spread, ask, found, saved)
        restores.check_partitions(core, inventory.partitions)  # which were listed before
        stored = inventory.listed
    long_ago = closed(now, core.ticket_life)
    until = {} if ask.inventory else settling(found, saved, tickets, long_ago)

    def judged() -> Answer:
        held = {
            Reason.STAGED: staged.files,
            Reason.TICKET: [tickets.file],
            Reason.RESTORED: [restored],
            Reason.HELD: [ordered],
            Reason.DROPPED: [dropped],
            Reason.COMMITTED: committed.files,
        }
        asked = questions(
            core.store.uri,
            [*(one.file for one in stored), *saved.pending],
            held,
            before=before,
            copied_at=None if ask.after_restore else restores.kept_since(core),
            folder=f"{core.prefix}{run.folder}",
            width=spread.width,
            scope="" if ask.branch is None else branch_prefix(found[0]),
            settled=until,
        )
        return sum(spread(judge, asked, weigh=judged_objects), Answer())

    with stage("verdicts"):
        answer = judged()
        if answer.damaged and answer.damaged <= {file.key for file in committed.files}:  # a cache can be made again
            source.distrust(answer.damaged)
            committed, ordered = committed_and_ordered(run, source, now)
            answer = judged()
        if answer.damaged & {file.key for file in saved.pending}:
            raise CorruptTable(min(answer.damaged), "what the last run saved cannot be read; pass --full")
        if answer.damaged:
            raise CorruptTable(min(answer.damaged), "it could not be read back")
    looked_at = total(stored)[0] + sum(file.rows for file in saved.pending)
    if answer.objects.total() + answer.passed != looked_at:
        raise AssertionError(f"{looked_at} objects were listed, {answer.objects.total()} got a verdict")
    known = saved.known(found)
    judged_now = Amount(answer.objects.total(), answer.bytes.total())
    inputs = {
        "objects": judged_now.objects,
        "bytes": judged_now.bytes,
        "listed": total(stored)[0],
        "known from before": known.objects,
        "commits": committed.commits,
        "ranges": committed.ranges,
        "committed entries": committed.entries,
        "staged entries": staged.entries,
        "open tickets": tickets.file.rows,
        "generation": committed.generation,
    }
    return Marked(
        answer,
        policy(source.repository),
        before,
        staged.branches,
        inputs,
        stage.seconds,
        committed.generation,
        committed.mark,
        held=committed.entries + staged.entries + tickets.file.rows,
        stored=judged_now + known,
        measure=STORED if ask.branch is None else ONE_BRANCH + found[0],
        period=ask.dropped_for - (run.now - now),  # less, where --now is ahead of the clock
        dropped_for=ask.dropped_for,
        base=saved.run or current(source),
        saves=None if ask.inventory else saved.after(answer, until, found, whole=ask.branch is None),
    )


def committed_and_ordered(run: Run, source: LakeSource, now: datetime) -> tuple[Committed, HeldFile]:
    """What commits hold, and what people ordered to be kept: of one moment, from which on a sweep looks for more."""
    committed = source.committed(run)
    return committed, source.held(run, [hold for hold in committed.holds if hold.counts(now)])


def listed(run: Run, source: LakeSource, spread: Spread, ask: Ask, branches: list[str], saved: Saved) -> Inventory:
    """What is stored: all of it, or what is new since the last run, or what somebody else listed."""
    if ask.inventory is None:
        return source.inventory(run, branches=None if ask.branch is None else branches, newer_than=saved.settled)
    if ask.branch is not None:
        raise BadRequest("--inventory is for the whole repository; leave --branch out")
    core = source.repository.core
    handed = handed_in.read(
        spread,
        ask.inventory,
        store=core.store,
        prefix=core.prefix,
        folder=f"{run.folder}inputs/inventory/",
        now=run.now,
        max_age=ask.max_inventory_age,
    )
    parts = [part for branch in branches for part in partitions(core.store, core.prefix, branch)]
    return Inventory(handed.listed, parts)


def judged_objects(answer: Answer) -> int:
    return answer.objects.total()


def policy(repository: Repository, _plan: Plan | None = None) -> str:
    """What decides over objects here, besides what holds them."""
    return f"older than {repository.core.ticket_life + CLOCK_MARGIN}"


def closed(now: datetime, ticket_life: timedelta) -> str:
    """Partitions that sort after this are closed for twice a ticket's life, and more."""
    return boundary(now - PARTITION_AGE - 2 * ticket_life - CLOCK_MARGIN)


def settling(found: list[str], saved: Saved, tickets: Ticketed, closed_from: str) -> dict[str, str]:
    """For each branch, from which partition on nothing new appears: closed long ago, and no upload still under way."""
    until = dict(saved.settled)
    for branch in found:
        busy = tickets.oldest.get(branch)
        after_busy = f"{int(busy.split('_')[0]) + 1:014d}" if busy else ""
        until[branch] = min(saved.settled.get(branch, "~"), max(closed_from, after_busy))
    return until


def chosen(source: LakeSource, branch: str, names: Mapping[str, str]) -> str:
    """The uid of a branch, by its name; one that was deleted, by its uid."""
    by_name = {name: uid for uid, name in names.items()}
    core = source.repository.core
    if branch in by_name:
        return by_name[branch]
    if branch in branch_uids(core.store, core.prefix):
        return branch
    raise BadRequest(f"{branch!r} is neither a branch nor the uid of a deleted one; see `desilt lake branches`")


def current(source: LakeSource) -> str:
    """The run whose watermark stands, though this one does not begin there."""
    core = source.repository.core
    with core.database.read() as tx:
        found = watermarks.find(tx, core.uid, JOB)
    return found[0] if found else ""


def save(plan: Plan, source: LakeSource, spread: Spread, batches: list[BatchRow]) -> Callable[[Transaction], None]:
    """The next run begins here: with what is settled, what is pending there, and what this one could not remove."""
    uid = source.repository.uid
    value: dict[str, Any] | None = None
    if plan.saves is not None:
        left = leftovers.gather(source.repository, spread, plan, batches, plan.saves["settled"])
        value = {**plan.saves, "pending": [*plan.saves["pending"], *map(as_json, left)]}

    def write(tx: Transaction) -> None:
        found = watermarks.find(tx, uid, JOB)
        if value is not None and (found[0] if found else "") == plan.base:
            watermarks.write(tx, uid, JOB, plan.run, value)
        else:  # another run came between: what either knows is not all there is to know
            watermarks.forget(tx, uid, JOB)
        if plan.after_restore and plan.measure == STORED:
            restores.let_go(tx, uid)

    return write


job = Job(JOB, mark, policy, save, heeds_copies=True)
