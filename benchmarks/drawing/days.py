"""Daily runs: a thousand of them on a manual clock, and the cache files that they leave."""

from drawing.bars import Bar, Bars, Part
from drawing.chart import Key, chart
from drawing.lines import Lines, Series
from drawing.scales import from_zero, sizes
from drawing.section import Result, Results, Section, section, table, times

FLAT = 1.1  # of the first day's cost: a tenth is chance
MILLI = 1000.0
WAYS = {"growing together": "stays", "as they came": "goes", "one run": "held"}


def thousand_days(results: Results) -> Section:
    """What a day costs after ten days and after a thousand."""
    result = results["thousand_days"]
    bounded, growing = result["bounded"]["rows"], result["growing"]["rows"]
    series = (
        _days("stays", bounded, "cpu", spread=True),
        _days("goes", bounded, "weekly"),
        _days("pointed", growing, "cpu", dashed=True),
    )
    drawing = chart(
        f"Day {bounded[0]['day']} to day {bounded[-1]['day']:,}",
        "CPU of a day's gc run, median of the two weeks around it; the band holds every day of these.",
        [
            Key("daily, history bounded", "stays"),
            Key("weekly expire and collect", "goes"),
            Key("daily, history growing for ever", "pointed", dashed=True),
        ],
        [
            [
                Lines(
                    sizes("day", [row["day"] for row in bounded], lambda day: f"{day:,.0f}"),
                    from_zero("milliseconds of CPU", [y for one in series for _, y in (*one.points, *one.between)]),
                    series,
                    room=64,
                )
            ]
        ],
        height=270,
    )
    head = ["day", "history bounded", "to the first", "weekly expire and collect", "to the first"]
    head += ["history growing", "to the first", "entries of all commits"]
    body = [
        [
            f"{one['day']:,}",
            *_to_the_first(one, bounded[0], "cpu"),
            *_to_the_first(one, bounded[0], "weekly"),
            *_to_the_first(other, growing[0], "cpu"),
            f"{other['entries']:,.0f}",
        ]
        for one, other in zip(bounded, growing, strict=True)
    ]
    daily, weekly = result["bounded"]["ratio"], bounded[-1]["weekly"] / bounded[0]["weekly"]
    says = f"Where history is bounded, the last day costs {times(daily)} the first: {_flat(daily)}."
    says += f" The weekly runs that bound it cost {times(weekly)}: {_flat(weekly)}."
    says += " Where nobody ever collects, a run compares with every entry that was ever committed, and grows with them."
    return section("A thousand days", [says, table(head, body)], {"thousand_days": drawing}, result)


def _days(colour: str, rows: list[Result], name: str, *, spread: bool = False, dashed: bool = False) -> Series:
    between = tuple((row["least"] * MILLI, row["most"] * MILLI) for row in rows) if spread else ()
    points = tuple((row["day"], row[name] * MILLI) for row in rows)
    return Series(colour, points, _ms(rows[-1][name]), dashed, between)


def _to_the_first(row: Result, first: Result, name: str) -> tuple[str, str]:
    return _ms(row[name]), times(row[name] / first[name])


def _ms(value: float) -> str:
    return f"{value * MILLI:.0f} ms"


def _flat(ratio: float) -> str:
    return "flat" if ratio <= FLAT else "**not flat**"


def cache_files(results: Results) -> Section:
    """What the cache files of many daily runs cost a mark."""
    result = results["cache_files"]
    rows = {row["files"]: row for row in result["rows"]}
    said = {"growing together": "grow together", "as they came": "as they came", "one run": "one full run's"}
    drawing = chart(
        f"Cache files of {result['days']} daily runs",
        f"{result['entries']:,} entries; what a mark reads of them, and the CPU that this takes.",
        [],
        [
            [
                Bars(
                    title,
                    from_zero(unit, [row[field] * scale for row in rows.values()]),
                    tuple(
                        Bar(said[way], (Part(rows[way][field] * scale, colour),), f"{rows[way][field] * scale:.0f}")
                        for way, colour in WAYS.items()
                    ),
                    names=100,
                    room=36,
                )
                for title, unit, field, scale in (
                    ("Files read", "files", "read", 1.0),
                    ("CPU of a mark", "milliseconds", "mark", MILLI),
                )
            ]
        ],
    )
    body = [
        [
            said[way],
            f"{row['read']:,}",
            _ms(row["mark"]),
            times(row["mark"] / rows["one run"]["mark"]),
            f"{row['all_runs']:.1f} s",
        ]
        for way, row in rows.items()
    ]
    together, apart = rows["growing together"]["mark"], rows["as they came"]["mark"]
    says = f"Files that grow together take {times(together / apart)} the CPU of files that stay as they came,"
    says += f" and {times(together / rows['one run']['mark'])} that of one full run's."
    head = ["files", "read by a mark", "its CPU", "to one full run's", "CPU of all runs"]
    return section("Cache files", [says, table(head, body, words=1)], {"cache_files": drawing}, result)
