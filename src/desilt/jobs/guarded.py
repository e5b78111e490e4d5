"""What guards would say to a plan, asked before it is swept."""

from typing import Any

from desilt.errors import BadRequest, Refused
from desilt.jobs.job import Job
from desilt.jobs.situation import situation
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan
from desilt.runs.report import Objection
from desilt.sweep.guard import guard, objections, passing
from desilt.sweep.limits import Limits


def against(
    job: Job[Any], repository: Repository, made: Plan, limits: Limits
) -> tuple[tuple[Objection, ...], str | None]:
    """All that guards have against a plan that does something, and the words that let it pass, if any do."""
    if not made.does_something:
        return (), ""
    seen = situation(job, repository, made)
    found = [Objection(one.code, one.fact, one.way_out) for one in objections(made, limits, seen, resuming=False)]
    enough = passing(made, limits, seen)
    return tuple(found), None if enough is None else enough.words()


def refusal(job: Job[Any], repository: Repository, run_id: str, limits: Limits) -> Refused | None:
    """What they would say to a sweep of a plan that was made before, now."""
    folder = Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, run_id))
    made = plans.read(folder, repository.secret)
    if made.job != job.name:
        raise BadRequest(f"plan {made.run} is one of {made.job!r}, not of {job.name!r}; ask the job that made it")
    try:
        guard(made, limits, situation(job, repository, made), resuming=False)
    except Refused as reason:
        return reason
    return None
