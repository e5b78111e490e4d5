"""A lifecycle policy looked at beside what is in the repository: when it is set, and again before every run."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from desilt.domain.lint import Lint, lint
from desilt.domain.policy import ID, Policy
from desilt.errors import BadRequest, Refused
from desilt.executors.executor import HERE
from desilt.jobs.lifecycle.paths import has_glob, has_path
from desilt.repository.protocol import Repository
from desilt.sweep.guard import Unfit


def findings(repository: Repository, policy: Policy) -> list[Lint]:
    """Everything there is to say about ``policy`` in this repository, the worst first."""
    source = repository.source(HERE)
    return lint(
        policy,
        branches=source.snapshot(repository.clock()).names,
        default_branch=repository.default_branch,
        has_path=partial(has_path, source),
        has_glob=partial(has_glob, source),
    )


def agreed(found: Iterable[Lint]) -> tuple[str, ...]:
    """What somebody says yes to who sets a policy in spite of ``found``."""
    return tuple(sorted(one.key for one in found if one.level == "confirm"))


def agree(found: Sequence[Lint], *, confirm: bool, see: str = "desilt lifecycle lint") -> None:
    """Refuse a policy with errors; and without ``confirm``, one that should be said twice."""
    for level in ("error", "confirm"):
        some = [one for one in found if one.level == level]
        if some and not (level == "confirm" and confirm):
            more = f" (and {len(some) - 1} more, see `{see}`)" if len(some) > 1 else ""
            if level == "error":
                raise BadRequest(told(some[0]) + more)
            raise Refused(f"{told(some[0])}{more}; if it is meant so, pass --confirm")


def given(repository: Repository, policy: Policy, *, confirm: bool) -> list[Lint]:
    """What there is to say of a policy that is given with a run, if nothing is against it."""
    found = findings(repository, policy)
    agree(found, confirm=confirm)
    return found


def outgrown(found: Iterable[Lint], agreed: Collection[str], told_of: Collection[str]) -> Unfit | None:
    """What nobody has agreed to; to what a plan has ``told_of``, whoever sweeps it can."""
    new = [one for one in found if one.level == "error" or (one.level == "confirm" and one.key not in agreed)]
    if not new:
        return None
    more = f" (and {len(new) - 1} more, see `desilt lifecycle lint`)" if len(new) > 1 else ""
    return Unfit(told(new[0]) + more, confirm=all(one.level == "confirm" and one.key in told_of for one in new))


def told(one: Lint) -> str:
    """A finding in one line."""
    where = f"rule {one.rule!r}" if ID.fullmatch(one.rule) else one.rule or "policy"
    return f"{where}: {one.fact}; {one.fix}"
