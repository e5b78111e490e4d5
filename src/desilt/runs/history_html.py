"""What an expiration does to history, as sections of a page: a picture before and after, then tables.

A picture is a drawing of lanes beside a list, a row for each commit: the list is text like any other, so it can be
read aloud, selected and cut short by the browser. Shapes and colours both tell the fates apart.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from desilt.runs import lanes
from desilt.runs.history import FILE, Change, Dot, Fate
from desilt.runs.lanes import Spot
from desilt.runs.markup import clock, moment, section, table, text

DRAWN = 200  # rows of a picture
FIRST = 36  # rows of one that is seen without asking for more
LISTED = 500  # rows of a table
NAMED = 4  # refs in a row of a picture, or in a cell
HEIGHT = 28  # of a row, in pixels; the template's style has the same number
LANE, NARROW, ROOM = (
    18.0,
    6.0,
    216.0,
)  # between two lanes: as a rule, at least, and what all share before they get narrow
COLOURS = 6  # of lanes, in the template's style
ALL = f"all are in <code>{FILE}</code>, beside this page"
SHAPES = {  # by their middle
    Fate.KEPT: '<circle class="kept" r="5"></circle>',
    Fate.POINTED: '<path class="pointed" d="M0 -7L7 0L0 7L-7 0Z"></path>',
    Fate.EDITED: '<rect class="edited" x="-5.5" y="-5.5" width="11" height="11" rx="2"></rect>',
    Fate.ABANDONED: '<circle class="abandoned" r="4.5"></circle>',
}
MEANINGS = {
    Fate.KEPT: "kept",
    Fate.POINTED: "pointed at: old, and something names it",
    Fate.EDITED: "edited: gets other parents, keeps its id",
    Fate.ABANDONED: "abandoned: no ref reaches it any more",
}
LONG_ID = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")
RUN = '<circle r="2.25" cy="-7"></circle><circle r="2.25"></circle><circle r="2.25" cy="7"></circle>'


def sections(change: Change, *, drawn: int = DRAWN, first: int = FIRST) -> Iterator[str]:
    """The sections of ``change``, with pictures of so many rows: at first, and for those who ask for more."""
    histories = {"Before": lanes.before(change), "After": lanes.after(change)}
    folded = {name: lanes.folded(spots) for name, spots in histories.items()}
    body = _legend(change) + _descended(change) + _pair(folded, change, first)
    if any(len(spots) > first for spots in folded.values()):
        more = _pair(folded, change, drawn)
        body += f"<details><summary>More of both, up to {_many(drawn, 'row')} each</summary>{more}</details>"
    if change.dots:
        yield section("history", "History before and after", body)
    yield _edited(change)
    yield _abandoned(change)
    half = "half" if change.deleted and change.skipped else ""
    yield _refs(half, "Refs that go", change.deleted)
    yield _refs(half, "Refs that stay although old", change.skipped)


def _pair(folded: Mapping[str, Sequence[Spot]], change: Change, most: int) -> str:
    return f'<div class="pair">{"".join(_picture(name, spots, change, most) for name, spots in folded.items())}</div>'


def _legend(change: Change) -> str:
    keys = [
        (shape, f"<b>{change.count(fate):,}</b> {MEANINGS[fate]}")
        for fate, shape in SHAPES.items()
        if change.count(fate)
    ]
    if change.count(Fate.EDITED):
        keys.append(('<path class="lane severed" d="M-9 0H9"></path>', "a line that is cut"))
    drawn = '<svg class="dag" width="18" height="18" viewBox="-9 -9 18 18" aria-hidden="true">'
    return f'<p class="fates">{"".join(f"<span>{drawn}{shape}</svg>{words}</span>" for shape, words in keys)}</p>'


def _descended(change: Change) -> str:
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
    because = f"{_many(refs, 'old ref')} {'descend' if refs > 1 else 'descends'} from {them}"
    return f"<p>{_many(len(only), 'more old commit')} {stay} because {because}.</p>"


def _others(change: Change, dot: Dot) -> set[str]:
    """The refs on a commit that are young."""
    return set(dot.refs) - change.skipped.keys() - change.deleted.keys()


def _picture(name: str, spots: Sequence[Spot], change: Change, most: int) -> str:
    near = lanes.nearest(spots, most=most, deleted=change.deleted)
    is_after = name == "After"
    items = "\n".join(_item(spot, change, is_after) for spot in near)
    commits = _commits(lanes.shown(spots))
    label = f"History {name.lower()}: {commits}"
    body = f'<div class="lanes">{_drawing(label, near, is_after)}<ol>{items}</ol></div>'
    notes = []
    if runs := [spot for spot in near if len(spot.dots) > 1]:
        notes.append(f"{_commits(lanes.shown(runs))} in {_many(len(runs), 'run')} without refs or branches are folded.")
    if left := lanes.shown(spots) - lanes.shown(near):
        notes.append(f"{_commits(left)} further from what changes are left out; {ALL}.")
    note = f'<p class="note">{" ".join(notes)}</p>' if notes else ""
    caption = f"<figcaption><b>{name}</b> {commits}</figcaption>"
    scroll = f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">{body}</div>'
    return f"<figure>{caption}{scroll}{note}</figure>"


def _drawing(label: str, spots: Sequence[Spot], is_after: bool) -> str:
    rows = list(lanes.rows((spot.id, spot.parents) for spot in spots))
    width = max((len(row.used) for row in rows), default=1)
    width = max([width, *(way.lane + 1 for row in rows for way in row.ways)])
    apart = max(min(LANE, ROOM / width), NARROW)
    place = {row.id: (row.lane, at) for at, row in enumerate(rows)}
    lines, shapes = [], []
    for spot, row, at in zip(spots, rows, range(len(rows)), strict=True):
        for way in row.ways:
            kind, drawn = _kind(spot, way.parent, is_after), _line((row.lane, at), way.lane, place[way.parent], apart)
            lines.append(f'<path class="lane c{way.lane % COLOURS}{kind}" d="{drawn}"></path>')
        x, y = _x(row.lane, apart), _y(at)
        if is_after and spot.fate is Fate.EDITED and len(spot.dots) == 1:
            lines.append(f'<path class="was" d="M{x:g} {y:g}l9 9"></path>{_cross(x + 10.5, y + 10.5)}')
        shape = SHAPES[spot.fate] if len(spot.dots) == 1 else f'<g class="run">{RUN}</g>'
        shapes.append(f'<g transform="translate({x:g} {y:g})"><title>{_told(spot)}</title>{shape}</g>')
    size = f'width="{_x(width - 1, apart) + 14:g}" height="{HEIGHT * len(rows)}"'
    return f'<svg class="dag" {size} role="img" aria-label="{label}, as lanes">{"".join(lines)}{"".join(shapes)}</svg>'


def _kind(spot: Spot, parent: str, is_after: bool) -> str:
    """What sets a line apart: it leads over commits that are left out, it will be cut, or nobody will see it."""
    if parent in spot.far:
        return " far"
    if not is_after and spot.fate is Fate.EDITED and parent not in spot.dots[-1].after:
        return " severed"
    return " faint" if spot.fate is Fate.ABANDONED else ""


def _cross(x: float, y: float) -> str:
    return f'<path class="end" d="M{x - 2:g} {y - 2:g}l4 4m0 -4l-4 4"></path>'


def _line(child: tuple[int, int], lane: int, parent: tuple[int, int], apart: float) -> str:
    """From a commit into its lane, down that lane, and into the parent: bent between rows only."""
    (at, row), (end, last) = child, parent
    drawn = f"M{_x(at, apart):g} {_y(row):g}"
    if at != lane and row + 1 < last:
        drawn += _bend(at, lane, row, apart)
        at, row = lane, row + 1
    if at != end:
        drawn += f"V{_y(last - 1):g}" if row + 1 < last else ""
        return drawn + _bend(at, end, last - 1, apart)
    return f"{drawn}V{_y(last):g}"


def _bend(start: int, end: int, row: int, apart: float) -> str:
    middle = _y(row) + HEIGHT / 2
    return f"C{_x(start, apart):g} {middle:g} {_x(end, apart):g} {middle:g} {_x(end, apart):g} {_y(row + 1):g}"


def _x(lane: int, apart: float) -> float:
    return round(LANE / 2 + lane * apart, 2)


def _y(row: int) -> float:
    return HEIGHT * (row + 0.5)


def _item(spot: Spot, change: Change, is_after: bool) -> str:
    dot, kind = spot.dots[0], spot.fate.split()[0]
    if len(spot.dots) > 1:
        days = f"{_day(spot.dots[-1])} to {_day(dot)}"
        return (
            f'<li class="{kind} run"><span>… {_commits(len(spot.dots))}, {spot.fate}</span><small>{days}</small></li>'
        )
    refs = "".join(_ref(name, change.deleted) for name in spot.refs[:NAMED])
    if len(spot.refs) > NAMED:
        refs += f'<span class="ref">+{len(spot.refs) - NAMED:,}</span>'
    words = text(dot.message, empty="(no message)")
    if is_after and dot.fate is Fate.EDITED:
        gone = [parent for parent in dot.before if parent not in dot.after]
        words = f"was on {', '.join(f'<del>{text(one[:12])}</del>' for one in gone) or 'other parents'} · {words}"
    words += _cut(spot)
    fate = f'<span class="aside">{spot.fate}</span>'
    return (
        f'<li class="{kind}" title="{_told(spot)}"><code>{text(dot.id[:12])}</code>{fate}{refs}'
        f"<span>{words}</span><small>{_day(dot)}</small></li>"
    )


def _cut(spot: Spot) -> str:
    return f" <em>{_many(spot.cut, 'parent')} left out</em>" if spot.cut else ""


def _ref(name: str, deleted: Mapping[str, str]) -> str:
    return f'<del class="ref">{text(name)}</del>' if name in deleted else f'<span class="ref">{text(name)}</span>'


def _told(spot: Spot) -> str:
    """All there is to say of a commit, on one line."""
    dot = spot.dots[0]
    if len(spot.dots) > 1:
        ends = f"{text(dot.id)} down to {text(spot.dots[-1].id)}"
        return f"{_commits(len(spot.dots))}, {spot.fate}: {ends}"
    why = f" ({text(dot.why)})" if dot.why else ""
    refs = f" · {text(', '.join(spot.refs))}" if spot.refs else ""
    return f"{text(dot.id)} · {text(dot.message, empty='(no message)')} · {_at(dot)} · {spot.fate}{why}{refs}"


def _edited(change: Change) -> str:
    rows = (
        f"{_head(dot)}{_ids(dot.before)}{_ids(dot.after)}<td>{text(_brief(dot.why), empty='')}</td>"
        for dot in change.dots
        if dot.fate is Fate.EDITED
    )
    return _table("", "Edited commits", ("Commit", "Old parents", "New parents", "Why"), rows)


def _abandoned(change: Change) -> str:
    rows = (
        f'{_head(dot)}<td class="day">{moment(dot.created_at)}</td><td>{text(dot.message, empty="")}</td>'
        f"<td>{_names(dot.by)}</td>"
        for dot in change.dots
        if dot.fate is Fate.ABANDONED
    )
    return _table("", "Abandoned commits", ("Commit", "Date", "Message", "By"), rows)


def _refs(kind: str, heading: str, whys: Mapping[str, str]) -> str:
    rows = (f'<th scope="row" class="raw">{text(name)}</th><td>{text(_brief(why))}</td>' for name, why in whys.items())
    return _table(kind, heading, ("Ref", "Why"), rows)


def _table(kind: str, heading: str, columns: Sequence[str], rows: Iterable[str]) -> str:
    found = list(rows)
    note = ""
    if len(found) > LISTED:
        note = f"<p>The first {LISTED:,} of {len(found):,}; {ALL}.</p>"
    body = table(heading, columns, found[:LISTED], kind="told")
    return section(kind, heading, note + body if body else "")


def _head(dot: Dot) -> str:
    return f'<th scope="row" class="raw" title="{text(dot.id)}">{text(dot.id[:12])}</th>'


def _ids(ids: Sequence[str]) -> str:
    return f'<td class="raw" title="{text(" ".join(ids))}">{text(" ".join(one[:12] for one in ids))}</td>'


def _brief(words: str) -> str:
    return LONG_ID.sub(r"\1", words)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{text(', '.join(names[:NAMED]), empty='')}{more}"


def _at(dot: Dot) -> str:
    try:
        return f"{clock(datetime.fromisoformat(dot.created_at))} UTC"
    except ValueError:
        return text(dot.created_at)


def _day(dot: Dot) -> str:
    return _at(dot).split(" ")[0]


def _commits(count: int) -> str:
    return _many(count, "commit")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
