"""Which jobs other packages bring, through the entry point ``desilt.jobs``; none is loaded by asking."""

import re
from functools import cache
from typing import TYPE_CHECKING

from desilt.domain.run import BESIDE
from desilt.errors import BadRequest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "desilt.jobs"
HARD_DELETE = "harddelete"  # no job, but its workers have runs
OURS = ("gc", "lifecycle", "retention", "expire", "collect")
NAME = re.compile(r"[a-z][a-z0-9]*")  # of a job: that of a command, and of a folder


@cache
def others() -> "dict[str, EntryPoint]":
    """What other packages bring; none may take the name of one of ours."""
    from importlib.metadata import entry_points  # takes a tenth as long as a lake takes to list

    found = {point.name: point for point in entry_points(group=GROUP)}
    for name, point in sorted(found.items()):
        if name in (*OURS, *BESIDE, HARD_DELETE):
            raise BadRequest(f"package {package_of(point)} brings a job {name!r}, and ours is called so; uninstall it")
        if not NAME.fullmatch(name):
            raise BadRequest(
                f"package {package_of(point)} brings a job {name!r}; its name must be small letters and digits"
            )
    return found


def package_of(point: "EntryPoint") -> str:
    return point.dist.name if point.dist else "?"
