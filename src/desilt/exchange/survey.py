"""What all commits of a repository point to: objects inside, each once, and addresses that lead elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import Territory
from desilt.errors import BadRequest
from desilt.exchange.entries import inside
from desilt.exchange.side import Partner
from desilt.executors.executor import Watch
from desilt.sstable.values import RangeData

TOGETHER = 1_000_000  # addresses that wait until those seen twice are dropped


@dataclass(frozen=True, slots=True)
class Surveyed:
    """Of all commits."""

    metaranges: tuple[str, ...]
    ranges: dict[str, RangeData]
    addresses: pa.Array  # of objects inside, in order
    elsewhere: int  # objects that lie outside: their owner's, and not copied
    entries: int


class _Unique:
    """Texts, each once, whose memory goes with how many differ."""

    def __init__(self) -> None:
        self._known = pa.array([], pa.string())
        self._new: list[pa.Array] = []
        self._waiting = 0

    def add(self, texts: pa.Array) -> None:
        self._new.append(texts)
        self._waiting += len(texts)
        if self._waiting >= TOGETHER:
            self.all()

    def all(self) -> pa.Array:
        self._known = pc.unique(pa.concat_arrays([self._known, *self._new]))
        self._new, self._waiting = [], 0
        return self._known


def survey(origin: Partner, metaranges: Iterable[str], *, into: Territory, watch: Watch) -> Surveyed:
    """Every range is read once; an address outside that leads ``into`` the new place is refused."""
    names = tuple(sorted(set(filter(None, metaranges))))
    ranges = {listed.id: listed for name in names for listed in origin.ranges.metarange(name)}
    watch.begins("reading tables")
    watch.expects(sum(listed.count for listed in ranges.values()))
    mine, others = _Unique(), _Unique()
    for listed in ranges.values():
        found, said = inside(origin.ranges.read(listed), origin.place, listed.id)
        mine.add(found.drop_null())
        others.add(said.filter(pc.is_null(found)))
        watch.advance(listed.count)
    elsewhere, addresses = others.all(), mine.all()
    wrong = into.inside(elsewhere).is_valid()
    if pc.any(wrong, min_count=0).as_py():
        raise BadRequest(
            f"an entry points to {elsewhere.filter(wrong)[0].as_py()}, which is outside of its own repository and "
            "inside of the place that it would be copied to; choose another place"
        )
    order = pc.sort_indices(addresses)
    entries = sum(listed.count for listed in ranges.values())
    return Surveyed(names, ranges, addresses.take(order), len(elsewhere), entries)
