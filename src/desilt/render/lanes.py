"""Where the commits of a history stand in a picture: which are shown, on which row, in which lane.

:func:`before` and :func:`after` say what there is to see of a change, :func:`folded` tells long runs as one, and
:func:`nearest` leaves out what is far from any change. :func:`rows` gives each of the rest its row and its lane, for
terminals and for pages alike. Every step takes time in proportion to what it is given, and none of them recurses.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice

from desilt.runs.history import GONE, Dot, Fate, HistoryChange

LONGEST = 6  # commits in a row that are shown one by one, though nothing happens to any of them alone


@dataclass(frozen=True, slots=True)
class Spot:
    """A commit in a picture, or a run of commits told as one, under the id of the newest."""

    id: str
    parents: tuple[str, ...]  # that are in the picture
    dots: tuple[Dot, ...]  # newest first
    refs: tuple[str, ...] = ()
    cut: int = 0  # parents that are not
    far: tuple[str, ...] = ()  # of its ``parents``, those that stand in for such: the next of that line in the picture

    @property
    def fate(self) -> Fate:
        return self.dots[0].fate


@dataclass(frozen=True, slots=True)
class Way:
    """The line from a commit down to a parent."""

    parent: str
    lane: int
    new: bool  # False: it joins a line that leads there already


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A commit in its lane, and what its lines do around it."""

    id: str
    lane: int
    joined: tuple[int, ...]  # other lanes that end in it, rightmost first
    used: tuple[bool, ...]  # lanes with a line or the commit itself in them, once others have joined
    ways: tuple[Way, ...]  # to its parents; the first goes on in its own lane


def rows(commits: Iterable[tuple[str, Sequence[str]]]) -> Iterator[LaneRow]:
    """A row for each commit and its parents, children before parents; a lane for each line of descent."""
    lanes: list[str | None] = []  # the commit each lane leads down to; None: free
    for commit, named in commits:
        if commit not in lanes:
            _occupy(lanes, commit, right_of=-1)
        own, parents = lanes.index(commit), tuple(dict.fromkeys(named))
        joined = tuple(lane for lane in range(len(lanes) - 1, own, -1) if lanes[lane] == commit)
        for lane in joined:
            lanes[lane] = None
        used = tuple(to is not None for to in lanes)
        lanes[own] = parents[0] if parents else None
        ways = [Way(parent, own, new=True) for parent in parents[:1]]
        for parent in parents[1:]:
            new = parent not in lanes
            lane = _occupy(lanes, parent, right_of=own) if new else lanes.index(parent)
            ways.append(Way(parent, lane, new))
        while lanes and lanes[-1] is None:
            lanes.pop()
        yield LaneRow(commit, own, joined, used, tuple(ways))


def _occupy(lanes: list[str | None], commit: str, *, right_of: int) -> int:
    for lane in range(right_of + 1, len(lanes)):
        if lanes[lane] is None:
            lanes[lane] = commit
            return lane
    lanes.append(commit)
    return len(lanes) - 1


def before(change: HistoryChange) -> list[Spot]:
    """All there is."""
    spots = [Spot(dot.id, dot.before, (dot,), dot.refs) for dot in change.dots]
    return _within(spots, {spot.id for spot in spots})


def after(change: HistoryChange) -> list[Spot]:
    """What refs see, once the change is made."""
    stay = (dot for dot in change.dots if dot.fate not in GONE)
    gone = change.deleted.keys()
    spots = [Spot(d.id, d.after, (d,), tuple(ref for ref in d.refs if ref not in gone)) for d in stay]
    return _within(spots, {spot.id for spot in spots})


def folded(spots: Sequence[Spot], *, longest: int = LONGEST) -> list[Spot]:
    """``spots`` with each longer run of one fate as one.

    Ends of history, commits with refs, merges and commits that others branch from are in no run.
    """
    known = {spot.id: spot for spot in spots}
    children = Counter(parent for spot in spots for parent in spot.parents)
    plain = {s.id for s in spots if len(s.parents) == children[s.id] == 1 and not s.refs and not s.cut}
    found, told = list[Spot](), set[str]()
    for spot in spots:
        if spot.id in told:
            continue
        run = [spot]
        while run[-1].id in plain and (below := known[run[-1].parents[0]]).id in plain and below.fate is spot.fate:
            run.append(below)
        if len(run) > longest:
            found.append(Spot(spot.id, run[-1].parents, tuple(dot for one in run for dot in one.dots)))
            told.update(one.id for one in run)
        else:
            found.append(spot)
    return found


def nearest(spots: Sequence[Spot], *, most: int, deleted: Mapping[str, str]) -> list[Spot]:
    """At most so many of ``spots``, in their order.

    Edited commits with what is beside them, then those with refs that go, those with other refs and the roots; then
    what is beside all these, and so on.
    """
    if len(spots) <= most:
        return list(spots)
    near: dict[str, list[str]] = {spot.id: list(spot.parents) for spot in spots}
    for spot in spots:
        for parent in spot.parents:
            near[parent].append(spot.id)
    ring = [other for s in spots if s.fate is Fate.EDITED for other in (s.id, *near[s.id])]
    ring += [s.id for s in spots if not deleted.keys().isdisjoint(s.refs)]
    ring += [s.id for s in spots if s.refs or not s.parents]
    chosen: dict[str, None] = {}
    while len(chosen) < most:
        fresh = dict.fromkeys(one for one in ring if one not in chosen)
        chosen.update(dict.fromkeys(islice(fresh, most - len(chosen))))
        ring = [other for one in fresh for other in near[one]] if fresh else list(near)
    return _within(spots, chosen.keys())


def shown(spots: Sequence[Spot]) -> int:
    """The commits that ``spots`` stand for."""
    return sum(len(spot.dots) for spot in spots)


def _within(spots: Sequence[Spot], chosen: Set[str]) -> list[Spot]:
    """The ``chosen`` ones, with parents among them: in place of one that is not, the first of its line that is."""
    first = {spot.id: spot.parents[0] if spot.parents else None for spot in spots}
    found: dict[str, str | None] = {}

    def stand_in(parent: str) -> str | None:
        passed, at = list[str](), parent
        while at not in found:
            below = first.get(at)
            if at in chosen or below is None:
                found[at] = at if at in chosen else None
            else:
                passed.append(at)
                at = below
        found.update(dict.fromkeys(passed, found[at]))
        return found[at]

    within = []
    for spot in spots:
        if spot.id in chosen:
            here = tuple(parent for parent in spot.parents if parent in chosen)
            gone = [parent for parent in spot.parents if parent not in chosen]
            far = dict.fromkeys(one for one in map(stand_in, gone) if one is not None and one not in here)
            within.append(replace(spot, parents=(*here, *far), cut=spot.cut + len(gone), far=(*far,)) if gone else spot)
    return within
