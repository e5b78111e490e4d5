"""What is sent to Spark's workers, and must not need desilt there: it finds out whether they have it.

These functions go as they are, not by name. They use Python and what Spark itself needs, and nothing of this package
before they have seen that a worker's is the same as the driver's.
"""

from collections.abc import Callable
from typing import Any

Numbered = Callable[[int], Any]
SAYS = "desilt on a worker"  # and a seal, then what is wrong with it


def given_out(sent: bytes, wanted: tuple[str, str], seal: str, weight: Any) -> Numbered:
    """What is called with the number of each piece: that one is done; what came of it, to be sent back.

    ``wanted`` is the driver's package. ``weight`` is an accumulator, where there are such, for who watches.
    """

    def run(number: int) -> bytes:
        check(wanted, seal)
        from desilt.executors.piece import done

        return done(sent, number, seal, weight)

    return run


def rows_of(sent: bytes, wanted: tuple[str, str], seal: str) -> Numbered:
    """The same where what comes of a piece is rows, to stay on the cluster."""

    def run(number: int) -> list[tuple[Any, ...]]:
        check(wanted, seal)
        from desilt.executors.piece import rows

        return rows(sent, number, seal)

    return run


def check(wanted: tuple[str, str], seal: str) -> None:
    """Nothing is done by a desilt that is missing, or another."""
    found, host = looked_at()
    if found != wanted:
        has = f"has desilt {found[0]} ({found[1][:8]})" if found[1] else f"lacks {found[0]}"
        raise RuntimeError(f"desilt on a worker {seal}: {host} {has}")


def look(_number: int) -> tuple[str, str, str]:
    """What the worker is that this runs on, and what it has."""
    (version, modules), host = looked_at()
    return host, version, modules


def looked_at() -> tuple[tuple[str, str], str]:
    """Version and modules of this worker's desilt, or what is missing and ""; and what machine this is."""
    import socket
    from importlib.util import find_spec

    host = socket.gethostname()
    for name in ("arro3", "boto3", "cramjam", "crc32c", "jinja2", "numpy", "obstore", "yaml", "desilt"):
        if find_spec(name) is None:
            return (name, ""), host
    from desilt.executors.package import this

    found = this()
    return (found.version, found.modules), host
