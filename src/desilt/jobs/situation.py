"""What a guard looks at besides the plan: clocks, earlier runs, and whether the records still know their own past."""

from collections.abc import Iterator
from typing import Any

from desilt.domain.run import Run, started
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import DesiltError, WrongTime
from desilt.jobs.job import Job
from desilt.objects import store_clock
from desilt.records import ledger
from desilt.records.removals import HARD_DELETE
from desilt.repository.gate import Standing
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.runs.report import Amount
from desilt.sweep.guard import LONG_WINDOW, WINDOW, Situation


def situation(job: Job[Any], repository: Repository, made: Plan) -> Situation:
    """How things are as ``made`` is about to be swept."""
    now, gate = repository.clock(), repository.gate
    quiet = gate.quiet_since(made.probed)  # before the store is asked for the time
    earlier = [plan for plan in seen_before(repository, job) if plan.run != made.run]
    standing = gate.standing([made.evidence.revision, *(plan.evidence.revision for plan in earlier)])
    with repository.records.read() as tx:
        policy, since = made.evidence.policy, now - LONG_WINDOW
        runs = ledger.alike(tx, repository.uid, job=made.job, policy=policy, since=since)
        recent = Amount(*ledger.removed_since(tx, repository.uid, now - WINDOW, but=HARD_DELETE))
    return Situation(
        now,
        store_clock.store_time(repository.store),
        repository.uid,
        repository.name,
        job.policy(repository, made),
        [row for row in runs if row.id != made.run],
        recent,
        same_past=made.evidence.revision in standing.known,
        edited=standing.edited,
        lost=lost(standing, made, earlier),
        against=job.against(repository, made) if made.removes.objects or made.refs else None,
        recovered=standing.recovered,
        ask_again_from=standing.ask_again_from,
        since_copy=None if job.traits.keeps_copied else standing.since_copy,
        quiet_since=quiet,
        last_trace=gate.last_trace(),
    )


def check_clock(repository: Repository) -> None:
    """Refuse to go on with a clock that the object store's contradicts."""
    clock, store_now = repository.clock(), store_clock.store_time(repository.store)
    if abs(clock - store_now) > CLOCK_MARGIN:
        raise WrongTime(clock, store_now, "the object store's")


def let_pass(repository: Repository, made: Plan) -> None:
    """Write down that the guard had nothing against ``made``."""
    folder = Folder(repository.store, repository.prefix, run_of(made))
    seen = {"at": repository.clock().isoformat(), "generation": made.evidence.revision.number}
    folder.put_json(plans.SWEPT, seen)


def seen_before(repository: Repository, job: Job[Any]) -> Iterator[Plan]:
    """Plans in the store, newest first, back to the last one that was swept."""
    for name, run_id in folders.runs_of(repository.store, repository.prefix, job=job.name):
        folder = Folder(repository.store, repository.prefix, Run(run_id, name, started(run_id)))
        try:
            yield plans.read(folder, repository.secret)
        except DesiltError:
            continue  # unfinished, or unreadable: it tells nothing
        latest = repository.clock() + CLOCK_MARGIN  # of a run that began later, a clock was wrong
        if folder.has(plans.SWEPT) and started(run_id) <= latest:
            return


def lost(standing: Standing, made: Plan, earlier: list[Plan]) -> str:
    """What the records have no longer; "" if nothing."""
    for plan in earlier:
        seen, now = plan.evidence, made.evidence
        if seen.revision not in standing.known:
            number = seen.revision.number
            return f"the database does not know generation {number} of refs, which plan {plan.run} saw"
        collected = seen.revision.number < standing.edited  # or history was edited, at least
        if seen.commits > now.commits and seen.revision.number <= now.revision.number and not collected:
            return f"there are {now.commits:,} commits, plan {plan.run} saw {seen.commits:,}"
    return ""
