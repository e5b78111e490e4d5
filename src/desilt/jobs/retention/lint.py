"""A retention document looked at beside what is in the repository: when it is set, and again before every run."""

from functools import partial

from desilt.domain.lint import Lint
from desilt.domain.retention import Retention
from desilt.domain.retention_lint import lint
from desilt.executors.executor import HERE
from desilt.jobs.rules.agreed import agree
from desilt.jobs.rules.paths import has_path
from desilt.repository.protocol import Repository

SEE = "desilt retention lint"


def findings(repository: Repository, retention: Retention) -> list[Lint]:
    """Everything there is to say about it in this repository, the worst first."""
    source = repository.source(HERE)
    names = source.snapshot(repository.clock()).names
    return lint(retention, branches=names, default_branch=repository.default_branch, has_path=partial(has_path, source))


def given(repository: Repository, retention: Retention, *, confirm: bool) -> list[Lint]:
    """What there is to say of a document, if nothing is against it."""
    found = findings(repository, retention)
    agree(found, confirm=confirm, see=SEE)
    return found
