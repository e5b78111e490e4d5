"""The branches behind every entry, on one day of the past.

What commits list, and where it is kept, is the same on every day: it is read once
(:func:`ground`), from all the commits there are, so that the caches are filled as a
run would fill them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from desilt.lake.core import Core
from desilt.lake.ranges import FOLDER as RANGES
from desilt.sources import metarange_cache, range_cache
from desilt.sources.held import HeldFile
from desilt.sources.metarange_cache import Lists
from desilt.sources.range_cache import Placed
from desilt.sources.reached import History
from desilt.sources.spread import Spread

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Ground:
    """What all commits list, and the files that have it decoded."""

    lists: Lists
    placed: Sequence[Placed]


@dataclass(frozen=True, slots=True)
class Reaching:
    """Who reaches what: for each owner in each file of the range cache, a place among ``sets``; -1 is nobody."""

    files: tuple[tuple[HeldFile, tuple[int, ...]], ...]
    sets: tuple[int, ...]  # of branches, as bits


def ground(core: Core, spread: Spread, history: History) -> Ground:
    """Read once for all days; ranges that were never decoded are, now."""
    in_time = sorted(history.commits.values(), key=lambda commit: (commit.created_at, commit.id))
    lists = metarange_cache.lists(core.store, core.ranges, [commit.metarange for commit in in_time])
    wanted = [lists.ranges[name] for name in sorted(lists.ranges)]
    return Ground(lists, range_cache.placed(spread, core.store, core.prefix, wanted, source=RANGES))


def reaching(base: Ground, history: History) -> Reaching:
    """Who reached what on the day of ``history``."""
    of_metaranges: dict[str, int] = {}
    for name, commit in history.commits.items():
        of_metaranges[commit.metarange] = of_metaranges.get(commit.metarange, 0) | history.bits[name]
    of_ranges: dict[str, int] = {}
    for metarange, bits in of_metaranges.items():
        for name in base.lists.of.get(metarange, ()):  # an empty commit lists nothing
            of_ranges[name] = of_ranges.get(name, 0) | bits
    sets: dict[int, int] = {}
    places = {name: sets.setdefault(bits, len(sets)) for name, bits in of_ranges.items()}
    files = []
    for placed in base.placed:
        owned = [placed.ranges.get(owner, "") for owner in range(placed.owners)]
        files.append((placed.file, tuple(places.get(name, NOBODY) for name in owned)))
    return Reaching(tuple(one for one in files if max(one[1]) > NOBODY), tuple(sets))
