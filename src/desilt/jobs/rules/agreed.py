"""What there is to say against a document, and who has agreed to it."""

from collections.abc import Collection, Iterable, Sequence

from desilt.domain.lint import Lint
from desilt.domain.policy import ID
from desilt.errors import BadRequest, Refused
from desilt.sweep.guard import Unfit


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


def outgrown(found: Iterable[Lint], agreed: Collection[str], told_of: Collection[str], *, see: str) -> Unfit | None:
    """What nobody has agreed to; to what a plan has ``told_of``, whoever sweeps it can."""
    new = [one for one in found if one.level == "error" or (one.level == "confirm" and one.key not in agreed)]
    if not new:
        return None
    more = f" (and {len(new) - 1} more, see `{see}`)" if len(new) > 1 else ""
    return Unfit(told(new[0]) + more, confirm=all(one.level == "confirm" and one.key in told_of for one in new))


def told(one: Lint) -> str:
    """A finding in one line."""
    where = f"rule {one.rule!r}" if ID.fullmatch(one.rule) else one.rule or "policy"
    return f"{where}: {one.fact}; {one.fix}"
