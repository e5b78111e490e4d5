"""What a job is asked, from keywords; some of ours take them in a friendlier form than their own options."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from desilt.api.words import (
    LIMITS,
    ExpireWords,
    age_of,
    counts_of,
    flag_of,
    limits_of,
    moment_of,
    number_of,
    policy_of,
)
from desilt.domain.expiry import expiry
from desilt.errors import BadRequest
from desilt.jobs.collect.job import UNREACHED_FOR
from desilt.jobs.job import ASKED, Job, Request
from desilt.jobs.lifecycle import lint, setting
from desilt.logs import logger
from desilt.repository.protocol import Repository
from desilt.sweep.limits import Limits

Said = Mapping[str, Any]
log = logger(__name__)


def to_plan(job: Job[Any], repository: Repository, said: Said) -> Request[Any]:
    """What a plan is asked."""
    if unknown := sorted(said.keys() - keywords(job)):
        raise BadRequest(f"{job.name!r} has no option {unknown[0]!r}; it has {', '.join(sorted(keywords(job)))}")
    return _asked(job, repository, said, confirm=True)


def to_run(job: Job[Any], repository: Repository, said: Said) -> tuple[Request[Any], Limits]:
    """What a run is asked, and how much it may do; some keywords are both."""
    known = keywords(job)
    if unknown := sorted(said.keys() - known - set(LIMITS)):
        can = ", ".join([*sorted(known), *LIMITS])
        raise BadRequest(f"{job.name!r} has no option {unknown[0]!r}; a run of it has {can}")
    limits = limits_of({name: value for name, value in said.items() if name in LIMITS})
    asked = {name: value for name, value in said.items() if name in known}
    return _asked(job, repository, asked, confirm=limits.confirm), limits


def keywords(job: Job[Any]) -> set[str]:
    """By what it can be asked."""
    if job.name == "expire":
        return set(ExpireWords.__annotations__)
    return {one.name for one in fields(job.options)} | set(ASKED)


def _asked(job: Job[Any], repository: Repository, said: Said, *, confirm: bool) -> Request[Any]:
    friendly = FRIENDLY.get(job.name)
    return job.ask(**(said if friendly is None else friendly(repository, said, confirm)))


def expire(repository: Repository, said: Said, _confirm: bool) -> Said:
    """How old, by ``older_than`` or ``before``, and what to keep, as one wish."""
    now = moment_of("now", said.get("now"))
    ages = [age_of("older_than", said.get("older_than")), moment_of("before", said.get("before"))]
    given = [age for age in ages if age is not None]
    if len(given) != 1:
        raise BadRequest("'expire' must be told how old, once; give 'older_than' or 'before'")
    last = number_of("keep_last", said.get("keep_last"))
    wish = expiry(
        given[0],
        now=now or repository.clock(),
        keep={**({} if last is None else {"last": last}), **counts_of("keep", said.get("keep"))},
        delete_tags=flag_of("delete_expired_tags", said.get("delete_expired_tags", False)),
        delete_branches=flag_of("delete_expired_branches", said.get("delete_expired_branches", False)),
    )
    return {"now": now, "wish": wish}


def lifecycle(repository: Repository, said: Said, confirm: bool) -> Said:
    """A policy in any form, if there is nothing against it."""
    if said.get("policy") is None:
        return said
    policy = policy_of(said["policy"])
    for one in setting.given(repository, policy, confirm=confirm):
        log.warning("%s", lint.told(one))
    return {**said, "policy": policy}


def collect(_repository: Repository, said: Said, _confirm: bool) -> Said:
    """What was released lately is left alone, unless somebody says otherwise."""
    return {"unreached_for": UNREACHED_FOR, **said}


FRIENDLY: Mapping[str, Callable[[Repository, Said, bool], Said]] = {
    "expire": expire,
    "lifecycle": lifecycle,
    "collect": collect,
}
