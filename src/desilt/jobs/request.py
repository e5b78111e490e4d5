"""What people ask of a job, by keywords: what it is told, and how much it may do."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from desilt.errors import BadRequest
from desilt.jobs.job import Job, Request
from desilt.jobs.options import told
from desilt.repository.protocol import Repository
from desilt.sweep.limits import Limits

Said = Mapping[str, Any]
LIMITS = tuple(one.name for one in fields(Limits))


def to_plan(job: Job[Any], repository: Repository, said: Said) -> Request[Any]:
    """What a plan is asked."""
    if unknown := sorted(said.keys() - set(job.words)):
        raise BadRequest(f"{job.name!r} has no option {unknown[0]!r}; it has {', '.join(sorted(job.words))}")
    return job.request(repository, confirm=True, **said)


def to_run(job: Job[Any], repository: Repository, said: Said) -> tuple[Request[Any], Limits]:
    """What a run is asked, and how much it may do; some keywords are both."""
    if unknown := sorted(said.keys() - set(job.words) - set(LIMITS)):
        can = ", ".join([*sorted(job.words), *LIMITS])
        raise BadRequest(f"{job.name!r} has no option {unknown[0]!r}; a run of it has {can}")
    limits = limits_of({name: value for name, value in said.items() if name in LIMITS})
    asked = {name: value for name, value in said.items() if name in job.words}
    return job.request(repository, confirm=limits.confirm, **asked), limits


def limits_of(words: Said) -> Limits:
    """Limits from keywords."""
    return Limits(**told(Limits, words, of="a sweep"))
