"""Mark: beside DuckDB and Polars, and as objects, commits and branches grow."""

from collections.abc import Sequence
from itertools import chain

from drawing.chart import Key, chart
from drawing.lines import Level, Lines, Series
from drawing.scales import Scale, count, decades, from_zero, sizes
from drawing.section import Result, Results, Section, seconds, section, table, times

AIM, AIMED_AT = 1.0, 20_000_000  # of DuckDB's time, at so many objects
OTHERS = {"DuckDB": "goes", "Polars": "pointed"}
GROWING = ("objects", "commits", "branches")


def mark(results: Results) -> Section:
    """Which objects nobody holds, on the rows that others have."""
    result = results["mark"]
    rows = result["rows"]
    others = {name: colour for name, colour in OTHERS.items() if all(f"{name.lower()}_seconds" in row for row in rows)}
    has_parts = all("verdicts_seconds" in row for row in rows)
    sides = {"desilt": "stays", **others}

    def took(name: str) -> list[float]:
        return [row["mark_seconds" if name == "desilt" else f"{name.lower()}_seconds"] for row in rows]

    def ratios(field: str) -> list[tuple[float, float]]:
        return [(row["objects"], row[field]) for row in rows]

    objects = [row["objects"] for row in rows]
    seen = list(chain.from_iterable(map(took, sides)))
    lines = [
        Series(colour, tuple(zip(objects, took(name), strict=True)), seconds(took(name)[-1]))
        for name, colour in sides.items()
    ]
    against = [Series("stays", tuple(ratios("times_duckdb")), times(rows[-1]["times_duckdb"]))]
    keys = [*(Key(name, colour) for name, colour in sides.items())]
    if has_parts:
        against.append(
            Series(
                "held", tuple(ratios("verdicts_times_duckdb")), times(rows[-1]["verdicts_times_duckdb"]), dashed=True
            )
        )
        keys.append(Key("desilt's verdicts alone", "held", dashed=True))
    drawing = chart(
        "Which objects does nobody hold?",
        f"{_shape(result)}. The same rows read, the same rows written, best of {rows[-1]['rounds']}.",
        keys,
        [
            [
                Lines(sizes("objects", objects), decades("seconds", seen), tuple(lines), room=58),
                Lines(
                    sizes("objects", objects),
                    from_zero("times DuckDB", [y for one in against for _, y in one.points] + [AIM], times_axis),
                    tuple(against),
                    (Level(AIM, f"the aim at {count(AIMED_AT)}"),),
                    room=58,
                ),
            ]
        ],
    )
    last = rows[-1]
    head = ["objects", "of them garbage", *sides, *(f"÷ {name}" for name in others)]
    body = [
        [f"{row['objects']:,}", f"{row['garbage']:,}", *(seconds(took(name)[at]) for name in sides)]
        + [times(row[f"times_{name.lower()}"]) for name in others]
        for at, row in enumerate(rows)
    ]
    says = f"At {count(last['objects'])} objects the mark takes **{times(last['times_duckdb'])}** DuckDB's time"
    says += f" (by medians {times(last['times_duckdb_by_median'])}: the further apart, the busier the machine)."
    if has_parts:
        says += (
            f" {seconds(last['commits_seconds'])} of its {seconds(last['mark_seconds'])} go into finding what commits"
            f" hold, which others are given; the verdicts alone take {times(last['verdicts_times_duckdb'])}."
        )
        head[2:3] = ["desilt", "its verdicts"]
        for at, row in enumerate(rows):
            body[at].insert(3, seconds(row["verdicts_seconds"]))
    once = "Before the first mark of all, ranges are decoded: " + ", ".join(
        f"{seconds(row['decode_ranges_once_seconds'])} at {count(row['objects'])}" for row in rows
    )
    return section(
        "Mark, beside DuckDB and Polars",
        [says, table(head, body), f"{once}. Spark's start is in none of these."],
        {"mark": drawing},
        result,
    )


def _shape(result: Result) -> str:
    branches, commits = result.get("branches"), result.get("commits")
    return (
        f"{branches:,} branches, {commits:,} commits"
        if branches and commits
        else "A quarter staged, a twentieth garbage"
    )


def times_axis(value: float) -> str:
    return f"{value:g}×"


def mark_growth(results: Results) -> Section:
    """What a mark costs as one thing grows and the others stay."""
    result = results["mark_growth"]
    rows = result["rows"]
    families = {name: family(rows, name) for name in GROWING}
    spent = {"verdicts_seconds": "stays", "commits_seconds": "goes"}
    grew = {"grew_mb": "pointed", "decode_grew_mb": "held"}
    time = decades("seconds", [row[name] for row in rows for name in spent])
    memory = from_zero("driver, MB more", [row[name] for row in rows for name in grew])
    drawing = chart(
        "As objects, commits and branches grow",
        "One of them grows, the others stay at the least. Time by decades; memory from zero.",
        [
            Key("verdicts", "stays"),
            Key("finding what commits hold", "goes"),
            Key("driver's memory", "pointed"),
            Key("the same, where ranges are decoded first", "held", dashed=True),
        ],
        [
            [_panel(name, some, time, spent) for name, some in families.items()],
            [_panel(name, some, memory, grew) for name, some in families.items()],
        ],
        height=190,
    )
    says = [_grown(name, some) for name, some in families.items() if len(some) > 1]
    head = ["objects", "branches", "commits", "verdicts", "what commits hold", "driver", "decoded once", "driver, then"]
    body = [
        [
            f"{row['objects']:,}",
            f"{row['branches']:,}",
            f"{row['commits']:,}",
            seconds(row["verdicts_seconds"]),
            seconds(row["commits_seconds"]),
            f"{row['grew_mb']:,} MB",
            seconds(row["decode_ranges_once_seconds"]),
            f"{row['decode_grew_mb']:,} MB",
        ]
        for row in rows
    ]
    return section("What grows with what", ["\n".join(says), table(head, body)], {"mark_growth": drawing}, result)


def family(rows: Sequence[Result], name: str) -> list[Result]:
    """The rows in which only ``name`` is more than the least there is, in its order."""
    least = {one: min(row[one] for row in rows) for one in GROWING}
    some = [row for row in rows if all(row[one] == least[one] for one in GROWING if one != name)]
    return sorted(some, key=lambda row: int(row[name]))


def _panel(name: str, rows: Sequence[Result], y: Scale, fields: dict[str, str]) -> Lines:
    series = (
        Series(colour, tuple((row[name], row[field]) for row in rows), dashed=field == "decode_grew_mb")
        for field, colour in fields.items()
    )
    return Lines(sizes(name, [row[name] for row in rows]), y, tuple(series), room=14)


def _grown(name: str, rows: Sequence[Result]) -> str:
    first, last = rows[0], rows[-1]
    verdicts, held = (times(last[one] / first[one]) for one in ("verdicts_seconds", "commits_seconds"))
    return (
        f"- {last[name] / first[name]:g} times the {name}: verdicts {verdicts}, what commits hold {held},"
        f" the driver {first['grew_mb']:,} MB then {last['grew_mb']:,} MB."
    )
