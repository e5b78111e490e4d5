"""A lifecycle policy on its way into a repository: looked at beside what is there, then kept for later runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from desilt.domain.lint import Lint, lint
from desilt.domain.policy import ID, Policy, parse
from desilt.errors import BadRequest, NotFound, Refused
from desilt.jobs.lifecycle import JOB
from desilt.jobs.paths import has_glob, has_path
from desilt.lake import policies
from desilt.lake.repository import Repository


@dataclass(frozen=True, slots=True)
class Set:
    """A policy that later runs go by."""

    policy: Policy
    at: datetime


def findings(repository: Repository, policy: Policy) -> list[Lint]:
    """Everything there is to say about ``policy`` in this repository, the worst first."""
    return lint(
        policy,
        branches=[branch.name for branch in repository.branches()],
        default_branch=repository.default_branch,
        has_path=partial(has_path, repository),
        has_glob=partial(has_glob, repository),
    )


def agree(found: Sequence[Lint], *, confirm: bool) -> None:
    """Refuse a policy with errors; and without ``confirm``, one that should be said twice."""
    for level in ("error", "confirm"):
        some = [one for one in found if one.level == level]
        if some and not (level == "confirm" and confirm):
            more = f" (and {len(some) - 1} more, see `desilt lifecycle lint`)" if len(some) > 1 else ""
            if level == "error":
                raise BadRequest(told(some[0]) + more)
            raise Refused(f"{told(some[0])}{more}; if it is meant so, pass --confirm")


def keep(repository: Repository, policy: Policy) -> Set:
    """From here on, runs go by ``policy``; plans that were made for another one are refused."""
    at = repository.clock()
    with repository.database.write() as tx:
        policies.write(tx, repository.uid, JOB, policy.to_json(), at=at)
    return Set(policy, at)


def kept(repository: Repository) -> Set:
    """The policy that runs go by."""
    with repository.database.read() as tx:
        found = policies.find(tx, repository.uid, JOB)
    if found is None:
        raise NotFound("lifecycle policy of", repository.name, "set one with `desilt lifecycle set`")
    return Set(parse(found[0]), found[1])


def told(one: Lint) -> str:
    """A finding in one line."""
    where = f"rule {one.rule!r}" if ID.fullmatch(one.rule) else one.rule or "policy"
    return f"{where}: {one.fact}; {one.fix}"
