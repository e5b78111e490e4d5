"""Bytes, copied once each from where one side keeps them to where the other does."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from desilt.errors import NotFound, Refused, StorageFailed
from desilt.exchange.names import Named
from desilt.exchange.side import Partner
from desilt.executors.executor import Watch
from desilt.objects.store import flaw

AT_ONCE = 8
TOGETHER = 1_000


@dataclass(slots=True)
class Copied:
    """What came of it."""

    objects: int = 0
    size: int = 0  # bytes
    before: int = 0  # objects that an earlier try has copied
    gone: int = 0  # that a run of the old side had removed, or was about to
    missing: int = 0  # that nobody removed, as far as is known
    first_missing: str = ""


def copy(
    origin: Partner, target: Partner, addresses: pa.Array, named: Named, *, again: bool, may_miss: bool, watch: Watch
) -> Copied:
    """Every object of ``addresses``; one that lacks is refused in the end, unless it ``may_miss``.

    ``again``: an earlier try was cut off, and what it has copied whole is left as it is.
    """
    done = Copied()
    watch.begins("copying objects")
    watch.expects(len(addresses))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for some in _pages(addresses):
            gone = origin.gone(some)
            done.gone += len(gone)
            there = [address for address in some if address not in gone]
            results = threads.map(lambda one: _copied(origin, target, one, named(one), again=again), there)
            for address, result in zip(there, results, strict=True):
                if result is None:
                    done.missing += 1
                    done.first_missing = done.first_missing or address
                else:
                    size, before = result
                    done.objects, done.size, done.before = done.objects + 1, done.size + size, done.before + before
            watch.advance(len(some))
    if done.missing and not may_miss:
        raise Refused(
            f"{done.missing:,} objects that commits point to are not in the store, the first at {done.first_missing}",
            "a collector may have removed them; to copy all else, and entries without an object, pass --allow-missing",
        )
    return done


def _copied(origin: Partner, target: Partner, address: str, name: str, *, again: bool) -> tuple[int, bool] | None:
    """Its size, and whether it was there before; None where there is nothing to copy."""
    if flaw(address):
        return None
    try:
        size = origin.store.head(origin.prefix + address).size
        if again and _size(target, name) == size:
            return size, True
        written = target.store.put(target.prefix + name, origin.store.stream(origin.prefix + address))
    except NotFound:
        return None
    if written != size:
        raise StorageFailed(f"{address} had {size:,} bytes and gave {written:,}; somebody writes to it, run again")
    return size, False


def _size(target: Partner, name: str) -> int | None:
    try:
        return target.store.head(target.prefix + name).size
    except NotFound:
        return None


def _pages(addresses: pa.Array) -> Iterator[list[str]]:
    for start in range(0, len(addresses), TOGETHER):
        yield addresses.slice(start, TOGETHER).to_pylist()
