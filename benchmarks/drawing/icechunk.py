"""Expiration and collection of Icechunk repositories, beside the library's own."""

from collections.abc import Iterator

from drawing.bars import Bar, Bars, Part
from drawing.chart import Key, chart
from drawing.scales import count, from_zero
from drawing.section import Result, Results, Section, seconds, section, table, times

FIRST, AHEAD, NOTHING = 2.0, 1.0, 0.2  # the aims: a first run in one process, in two, and when nothing changed
SIDES = {"library": "held", "desilt": "stays", "desilt, processes": "pointed"}
STEPS = {"collect": "Collect, the first time", "again": "Again, with nothing to do"}


def icechunk(results: Results) -> Section:
    """Shape by shape, each step of the library's beside ours."""
    result = results["icechunk"]
    rows = result["rows"]
    drawing = chart(
        "Collecting Icechunk repositories, beside its own library",
        f"Repositories in a directory; icechunk {result['library']}; best of {result['rounds']} rounds.",
        [Key(side, colour, is_line=False) for side, colour in SIDES.items()],
        [[_bars(title, step, rows) for step, title in STEPS.items()]],
    )
    head = ["format", "chunks", "commits", "", "", "expire", "collect", "÷ library", "again", "÷ library", "memory"]
    body = [line for row in rows for line in _lines(row)]
    return section("Icechunk repositories", [table(head, body, words=1), SAID], {"icechunk": drawing}, result)


SAID = (
    "The library says how many files go; desilt writes down which, why, and what became of each, with a page to open."
    " Half of the history expires where there is garbage. Time counts from when the repository is open."
)


def ratio(row: Result, side: str, step: str) -> float:
    """What a step takes, to the library's."""
    return float(row["sides"][side][step] / row["sides"]["library"][step])


def worst(result: Result, side: str, step: str) -> float:
    return max(ratio(row, side, step) for row in result["rows"])


def _lines(row: Result) -> Iterator[list[str]]:
    for side, one in row["sides"].items():
        ours = side != "library"
        first = side == "library"
        yield [
            f"{row['format']}" if first else "",
            f"{row['objects']:,}" if first else "",
            f"{row['commits']:,}" if first else "",
            ("garbage" if row["garbage"] else "none") if first else "",
            side,
            seconds(one["expire"]),
            seconds(one["collect"]),
            f"**{times(ratio(row, side, 'collect'))}**" if ours else "",
            seconds(one["again"]),
            f"**{times(ratio(row, side, 'again'))}**" if ours else "",
            f"{one['memory']:,.0f} MB",
        ]


def _bars(title: str, step: str, rows: list[Result]) -> Bars:
    bars = []
    for row in rows:
        said = f"v{row['format']}, {count(row['objects'])}{', garbage' if row['garbage'] else ''}"
        for side, colour in SIDES.items():
            first = side == "library"
            ends = "" if first else times(ratio(row, side, step))
            bars.append(Bar(said if first else "", (Part(row["sides"][side][step], colour),), ends, begins_group=first))
    every = [part.value for bar in bars for part in bar.parts]
    return Bars(title, from_zero("seconds", every), tuple(bars), names=128, room=48)
