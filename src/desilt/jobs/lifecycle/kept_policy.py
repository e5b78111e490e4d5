"""A lifecycle policy on its way into a repository: looked at beside what is there, then kept for later runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.lint import Lint
from desilt.domain.policy import Policy, parse
from desilt.errors import NotFound
from desilt.jobs.lifecycle.job import JOB
from desilt.jobs.rules.agreed import agreed
from desilt.records import policies
from desilt.repository.protocol import Repository


@dataclass(frozen=True, slots=True)
class Set:
    """A policy that later runs go by."""

    policy: Policy
    at: datetime


def keep(repository: Repository, policy: Policy, found: Sequence[Lint] = ()) -> Set:
    """From here on, runs go by ``policy``, which somebody wants in spite of what was ``found``.

    Plans that were made for another one are refused.
    """
    return Set(policy, repository.orders.set_policy(JOB, policy.to_json(), agreed(found)))


def kept(repository: Repository) -> Set:
    """The policy that runs go by."""
    with repository.records.read() as tx:
        found = policies.find(tx, repository.uid, JOB)
    if found is None:
        raise NotFound("lifecycle policy of", repository.name, "set one with `desilt lifecycle set`")
    return Set(parse(found.document), found.set_at)
