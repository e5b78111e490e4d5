"""What an expiration does to history, as sections of a page: a picture before and after, then tables.

A picture is a drawing of lanes beside a list, a row for each commit: the list is text like any other, so it can be
read aloud, selected and cut short by the browser. Shapes and colours both tell the fates apart.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from desilt.domain.units import many
from desilt.render import lanes
from desilt.render.drawing import Drawing, drawing
from desilt.render.lanes import Spot
from desilt.render.pages import part
from desilt.render.words import text, utc
from desilt.runs.history import FILE, Dot, Fate, HistoryChange

DRAWN = 200  # rows of a picture
FIRST = 36  # rows of one that is seen without asking for more
LISTED = 500  # rows of a table
NAMED = 4  # refs in a row of a picture, or in a cell
MEANINGS = {
    Fate.KEPT: "kept",
    Fate.POINTED: "pointed at: old, and something names it",
    Fate.EDITED: "edited: gets other parents, keeps its id",
    Fate.ABANDONED: "abandoned: no ref reaches it any more",
    Fate.RELEASED: "released: leaves history at once, and can no longer be opened",
}
SHORT = 12  # characters of an id, where people read it
LONG_ID = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the list beside a drawing."""

    spot: Spot
    refs: tuple[str, ...]  # as many as are named
    more: int  # and how many are not
    was_on: tuple[str, ...] | None  # of an edited commit, once it is: the parents that it lost
    days: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A history before or after, as far as it is drawn."""

    name: str
    commits: str
    drawing: Drawing
    items: tuple[Item, ...]
    folded: str  # a sentence on runs that are told as one; empty: there are none
    left_out: str  # commits, in words; empty: all are there


def sections(change: HistoryChange, *, drawn: int = DRAWN, first: int = FIRST) -> Markup:
    """The sections of ``change``, with pictures of so many rows: at first, and for those who ask for more."""
    histories = {"Before": lanes.before(change), "After": lanes.after(change)}
    folded = {name: lanes.folded(spots) for name, spots in histories.items()}
    long = any(len(spots) > first for spots in folded.values())
    return part(
        "history.html.j2",
        change=change,
        file=FILE,
        legend=[(fate.split()[0], change.count(fate), words) for fate, words in MEANINGS.items() if change.count(fate)],
        cuts=change.count(Fate.EDITED),
        descended=descended(change),
        pictures=_pair(folded, change, first),
        more=_pair(folded, change, drawn) if long else (),
        most=many(drawn, "row"),
        edited=[dot for dot in change.dots if dot.fate is Fate.EDITED],
        lost={
            heading: [dot for dot in change.dots if dot.fate is fate]
            for heading, fate in (("Abandoned commits", Fate.ABANDONED), ("Released commits", Fate.RELEASED))
        },
        refs=(("Refs that go", change.deleted), ("Refs that stay although old", change.skipped)),
        listed=LISTED,
        short=SHORT,
        brief=brief,
        ids=ids,
        names=names,
        told=told,
    )


def _pair(folded: Mapping[str, Sequence[Spot]], change: HistoryChange, most: int) -> list[Picture]:
    return [picture(name, spots, change, most) for name, spots in folded.items()]


def picture(name: str, spots: Sequence[Spot], change: HistoryChange, most: int) -> Picture:
    """At most so many of ``spots``, those that are near to what changes."""
    near = lanes.nearest(spots, most=most, deleted=change.deleted)
    is_after = name == "After"
    runs = [spot for spot in near if len(spot.dots) > 1]
    left = lanes.shown(spots) - lanes.shown(near)
    in_runs = f"{_commits(lanes.shown(runs))} in {many(len(runs), 'run')} without refs or branches are folded."
    return Picture(
        name,
        _commits(lanes.shown(spots)),
        drawing(near, is_after=is_after),
        tuple(_item(spot, is_after) for spot in near),
        in_runs if runs else "",
        _commits(left) if left else "",
    )


def _item(spot: Spot, is_after: bool) -> Item:
    dot = spot.dots[0]
    edited = is_after and dot.fate is Fate.EDITED
    lost = tuple(parent[:SHORT] for parent in dot.before if parent not in dot.after)
    days = _day(dot) if len(spot.dots) == 1 else f"{_day(spot.dots[-1])} to {_day(dot)}"
    return Item(spot, spot.refs[:NAMED], len(spot.refs[NAMED:]), lost if edited else None, days)


def descended(change: HistoryChange) -> str:
    """How many commits stay though no young ref reaches them and nothing names them: old refs descend from them."""
    old, young = set[str](), set[str]()  # what old refs reach, and what the others do, once history is edited
    for dot in change.dots:
        for reached, named in ((old, change.skipped.keys() & dot.refs), (young, _others(change, dot))):
            if named or dot.id in reached:
                reached.update((dot.id, *dot.after))
    old -= young
    only = {dot.id for dot in change.dots if dot.fate is Fate.KEPT and dot.id in old}
    leading, refs = set(only), 0
    for dot in reversed(change.dots):
        if dot.id in leading or not leading.isdisjoint(dot.after):
            leading.add(dot.id)
            refs += len(change.skipped.keys() & dot.refs)
    if not only:
        return ""
    stay, them = ("stay", "them") if len(only) > 1 else ("stays", "it")
    because = f"{many(refs, 'old ref')} {'descend' if refs > 1 else 'descends'} from {them}"
    return f"{many(len(only), 'more old commit')} {stay} because {because}."


def _others(change: HistoryChange, dot: Dot) -> set[str]:
    """The refs on a commit that are young."""
    return set(dot.refs) - change.skipped.keys() - change.deleted.keys()


def told(spot: Spot) -> str:
    """All there is to say of a commit, on one line."""
    dot = spot.dots[0]
    if len(spot.dots) > 1:
        return f"{_commits(len(spot.dots))}, {spot.fate}: {text(dot.id)} down to {text(spot.dots[-1].id)}"
    why = f" ({dot.why})" if dot.why else ""
    refs = f" · {text(', '.join(spot.refs))}" if spot.refs else ""
    return f"{text(dot.id)} · {text(dot.message, '(no message)')} · {_at(dot)} · {spot.fate}{why}{refs}"


def ids(some: Sequence[str]) -> str:
    """As much of each as people read."""
    return " ".join(one[:SHORT] for one in some)


def brief(words: str) -> str:
    """``words`` with ids cut to what people read."""
    return LONG_ID.sub(r"\1", words)


def names(some: Sequence[str]) -> str:
    """The first of ``some``, and how many more there are."""
    more = f" and {len(some) - NAMED:,} more" if len(some) > NAMED else ""
    return f"{', '.join(some[:NAMED])}{more}"


def _at(dot: Dot) -> str:
    return utc(dot.created_at) or text(dot.created_at)


def _day(dot: Dot) -> str:
    return _at(dot).split(" ")[0]


def _commits(number: int) -> str:
    return many(number, "commit")
