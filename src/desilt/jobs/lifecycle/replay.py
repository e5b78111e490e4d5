"""The branches behind every entry, on one day of the past.

What commits list, and where it is kept, is the same on every day: it is read once
(:func:`ground`), from all the commits there are, so that the caches are filled as a
run would fill them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from desilt.cache.metaranges import Lists
from desilt.cache.ranges import Placed
from desilt.columns.files import NOBODY, HeldFile
from desilt.domain.history import Commit
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Source


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


def ground(source: Source, seen: Snapshot) -> Ground:
    """Read once for all days; ranges that were never decoded are, now."""
    lists = source.lists(seen.in_time)
    return Ground(lists, source.entries([lists.ranges[name] for name in sorted(lists.ranges)]))


def reaching(base: Ground, commits: Mapping[str, Commit], reached_by: Mapping[str, int]) -> Reaching:
    """Who reached what on a day with these ``commits``, each reached by so many bits."""
    of_metaranges: dict[str, int] = {}
    for name, commit in commits.items():
        of_metaranges[commit.metarange] = of_metaranges.get(commit.metarange, 0) | reached_by[name]
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
