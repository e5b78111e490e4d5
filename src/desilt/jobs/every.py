"""All jobs there are, by name."""

from desilt.errors import NotFound
from desilt.jobs import collection, expiration, lifecycle, uncommitted
from desilt.jobs.job import Job

JOBS = {one.name: one for one in (uncommitted.job, lifecycle.job, expiration.job, collection.job)}


def find(name: str) -> Job:
    if name not in JOBS:
        raise NotFound("job", name, f"there are: {', '.join(JOBS)}")
    return JOBS[name]
