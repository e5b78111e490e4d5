"""All jobs there are, by name: our own, and those that other packages bring through the entry point ``desilt.jobs``.

A job is loaded when it is asked for. What a job of another package says is not taken
for granted (:func:`unvouched`): its plans are looked at again, all of them, as they go.
"""

from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from desilt.errors import BadRequest, DesiltError, NotFound
from desilt.jobs.job import DROPPED_FOR, Job, Mark, Traits, the_same
from desilt.jobs.packages import OURS, others, package_of
from desilt.repository.protocol import Repository
from desilt.runs.steps import RemoveObjects, TakeCommits


def find(name: str) -> Job[Any]:
    """The job called ``name``."""
    if name in OURS:
        return _ours(name)
    found = others().get(name)
    if found is None:
        raise NotFound("job", name, f"there are: {', '.join(names())}")
    return trusted(_loaded(found))


def is_ours(job: Job[Any]) -> bool:
    """Whether its kernel is one that we vouch for: it is the very job, not one that is called so."""
    return job.name in OURS and _ours(job.name) is job


def trusted(job: Job[Any]) -> Job[Any]:
    """``job`` with those traits alone that it may claim."""
    if is_ours(job):
        return job
    return replace(job, traits=replace(job.traits, committed=True, tables=False, keeps_copied=False), there=the_same)


def unvouched(job: Job[Any], marked: Mark) -> Mark:
    """A mark of another package's job, without what would spare it a second look.

    Whatever any commit, staging area, upload or hold has stays. Commits and tables are ours to take.
    """
    for step in marked.steps:
        if isinstance(step, TakeCommits) or (isinstance(step, RemoveObjects) and step.tables):
            raise BadRequest(
                f"job {job.name!r} would take commits, or ranges and metaranges, which `desilt collect` alone may; "
                "let it delete refs or edit history, and collect afterwards"
            )
    seen = marked.evidence
    less = replace(seen, judged=None, rules=None, after_restore=False, dropped_for=max(seen.dropped_for, DROPPED_FOR))
    return replace(marked, evidence=less)


def names() -> list[str]:
    return [*OURS, *sorted(others())]


def traits(name: str, repository: Repository | None = None) -> Traits:
    """Of a job that may be gone, or cannot be loaded: then what is safe, that it took what commits have.

    With ``repository``, as they are there.
    """
    try:
        found = find(name)
    except DesiltError:
        return Traits()
    return found.traits if repository is None else found.there(repository, found.traits)


def _ours(name: str) -> Job[Any]:
    job: Job[Any] = import_module(f"desilt.jobs.{name}.job").job
    return job


def _loaded(point: EntryPoint) -> Job[Any]:
    try:
        job = point.load()
    except Exception as error:  # of another package: it must not take ours with it
        raise BadRequest(f"job {point.name!r} cannot be loaded: {error!r}; mend or uninstall it") from error
    if not isinstance(job, Job) or job.name != point.name:
        raise BadRequest(f"{point.value} of package {package_of(point)} is not a job called {point.name!r}; mend it")
    return job
