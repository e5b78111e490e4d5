"""What guards would say to a plan, asked before it is swept."""

from dataclasses import replace
from typing import Any

from desilt.errors import BadRequest, Refused
from desilt.jobs.job import Job
from desilt.jobs.situation import situation
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan
from desilt.runs.report import Amount, Objection
from desilt.sweep.guard import guard, objections, passing
from desilt.sweep.limits import Limits

NOTHING = Amount()


def against(
    job: Job[Any], repository: Repository, made: Plan, limits: Limits, before: Amount
) -> tuple[tuple[Objection, ...], Limits | None]:
    """All that guards have against a plan that does something, and the limits that let it pass, if any do.

    Other plans take as much as ``before`` before it comes to this one.
    """
    if not made.does_something:
        return (), limits
    seen = replace(situation(job, repository, made), before=before)
    found = [Objection(one.code, one.fact, one.way_out) for one in objections(made, limits, seen, resuming=False)]
    return tuple(found), passing(made, limits, seen)


def refusal(
    job: Job[Any], repository: Repository, run_id: str, limits: Limits, before: Amount = NOTHING
) -> tuple[Refused | None, Limits | None]:
    """What they would say to a sweep of a plan that was made before, now; and the limits that they would let pass."""
    folder = Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, run_id))
    made = plans.read(folder, repository.secret)
    if made.job != job.name:
        raise BadRequest(f"plan {made.run} is one of {made.job!r}, not of {job.name!r}; ask the job that made it")
    seen = replace(situation(job, repository, made), before=before)
    try:
        guard(made, limits, seen, resuming=False)
    except Refused as reason:
        return reason, passing(made, limits, seen)
    return None, limits
