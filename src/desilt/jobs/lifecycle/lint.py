"""A lifecycle policy looked at beside what is in the repository: when it is set, and again before every run."""

from functools import partial

from desilt.domain.lint import Lint, lint
from desilt.domain.policy import Policy
from desilt.executors.executor import HERE
from desilt.jobs.rules.agreed import agree
from desilt.jobs.rules.paths import has_glob, has_path
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot


def findings(repository: Repository, policy: Policy, seen: Snapshot | None = None) -> list[Lint]:
    """Everything there is to say about ``policy`` in a repository as it was ``seen``, or is now; the worst first."""
    source = repository.source(HERE)
    return lint(
        policy,
        branches=(seen or source.snapshot(repository.clock())).names,
        default_branch=repository.default_branch,
        has_path=partial(has_path, source),
        has_glob=partial(has_glob, source),
    )


def given(repository: Repository, policy: Policy, *, confirm: bool) -> list[Lint]:
    """What there is to say of a policy that is given with a run, if nothing is against it."""
    found = findings(repository, policy)
    agree(found, confirm=confirm)
    return found
