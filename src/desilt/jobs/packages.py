"""Which jobs other packages bring, through the entry point ``desilt.jobs``; none is loaded by asking."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from desilt.errors import BadRequest

GROUP = "desilt.jobs"
OURS = ("gc", "lifecycle", "expire", "collect")


@cache
def others() -> dict[str, EntryPoint]:
    """What other packages bring; none may take the name of one of ours."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if taken := sorted(found.keys() & set(OURS)):
        package = package_of(found[taken[0]])
        raise BadRequest(f"package {package} brings a job {taken[0]!r}, and ours is called so; uninstall it")
    return found


def package_of(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"
