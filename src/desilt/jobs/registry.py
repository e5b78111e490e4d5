"""All jobs there are, by name: our own, and those that other packages bring through the entry point ``desilt.jobs``.

A job is loaded when it is asked for.
"""

from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from desilt.errors import BadRequest, NotFound
from desilt.jobs.job import Job, Traits
from desilt.jobs.packages import OURS, others, package_of


def find(name: str) -> Job[Any]:
    """The job called ``name``."""
    if name in OURS:
        job: Job[Any] = import_module(f"desilt.jobs.{name}.job").job
        return job
    found = others().get(name)
    if found is None:
        raise NotFound("job", name, f"there are: {', '.join(names())}")
    return _loaded(found)


def is_ours(job: Job[Any]) -> bool:
    """Whether its kernel is one that we vouch for; what others find is looked at again, all of it, as it goes."""
    return job.name in OURS


def names() -> list[str]:
    return [*OURS, *sorted(others())]


def traits(name: str) -> Traits:
    """Of a job that may not be there any more: then what is safe, that it removed what commits have."""
    try:
        return find(name).traits
    except NotFound:
        return Traits()


def _loaded(point: EntryPoint) -> Job[Any]:
    job = point.load()
    if not isinstance(job, Job) or job.name != point.name:
        raise BadRequest(f"{point.value} of package {package_of(point)} is not a job called {point.name!r}; mend it")
    return job
