"""Pieces of work as they are sent to Spark's workers, and done there.

All pieces of one stage go in one parcel: what they share is in it once, and a worker opens it once for all that it does
of them. An error of ours is raised as text that the driver can read.
"""

import pickle
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from desilt.errors import DesiltError

RAISED = "desilt raised"  # and a seal, then the error
Work = Callable[[Any], Any]
Weigh = Callable[[Any], int]
Parcel = tuple[Work, Weigh | None, Sequence[Any]]


def parcel(work: Work, items: Sequence[Any], weigh: Weigh | None = None) -> bytes:
    """What :func:`opened` gives back elsewhere."""
    from pyspark import cloudpickle

    pickled: Callable[[Any], bytes] = cloudpickle.dumps  # takes functions too that have no name elsewhere
    return zlib.compress(pickled((work, weigh, list(items))), 1)


@lru_cache(maxsize=1)  # of one stage: the next has another
def opened(sent: bytes) -> Parcel:
    found: Parcel = pickle.loads(zlib.decompress(sent))
    return found


def done(sent: bytes, number: int, seal: str, weight: Any) -> bytes:
    """On a worker: the result of one piece."""
    work, weigh, items = opened(sent)
    with told_to_the_driver(seal):
        result = work(items[number])
    if weight is not None and weigh is not None:
        weight.add(weigh(result))
    return pickle.dumps(result)


def rows(sent: bytes, number: int, seal: str) -> list[tuple[Any, ...]]:
    """On a worker: the rows that work makes of one piece."""
    work, _, items = opened(sent)
    with told_to_the_driver(seal):
        return list(work(items[number]))


@contextmanager
def told_to_the_driver(seal: str) -> Iterator[None]:
    """Spark tells text of what a task raised; it tries again as with any other error."""
    try:
        yield
    except DesiltError as error:
        raise RuntimeError(f"{RAISED} {seal} <{b64encode(pickle.dumps(error)).decode()}>: {error}") from error
