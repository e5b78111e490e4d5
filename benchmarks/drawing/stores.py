"""Removing: on a disk beside bare unlinks, as plans grow, and on S3 beside bare loops."""

from drawing.bars import Bar, Bars, Part
from drawing.chart import Key, chart
from drawing.lines import Lines, Series
from drawing.scales import count, from_zero, sizes
from drawing.section import Result, Results, Section, seconds, section, table, times

MICRO = 1e6
AT_LEAST = 0.9  # of a bare loop's rate on S3
AT_MOST = 3.4  # times the CPU of unlinks: half of what it was
DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
DONE = {"list": "Listed", "sweep": "Swept"}
WAYS = {
    "sections": ("a task reads its own sections", "stays"),
    "whole files": ("a task reads its whole plan file", "held"),
}


def s3_rates(results: Results) -> Section:
    """Objects a second, by one executor and by loops of the same calls."""
    result = results["s3_rates"]
    found = {said: result[key] for key, said in DATABASES.items() if key in result}
    drawing = chart(
        "One executor on S3, beside bare loops of the same calls",
        f"{result['objects']:,} objects, {result['server']} on the same cores; median of {result['rounds']} rounds.",
        [Key("desilt", "stays", is_line=False), Key("a bare loop", "held", is_line=False)],
        [[_rates(title, what, found) for what, title in DONE.items()]],
    )
    body = [
        [
            title,
            database,
            f"{one['ours_per_second']:,} / s",
            f"{one['loop_per_second']:,} / s",
            f"**{times(one['rate'])}**",
            f"{one['cpu_us']:g} µs",
            f"{one['loop_cpu_us']:g} µs",
        ]
        for what, title in DONE.items()
        for database, one in ((database, found[database][what]) for database in found)
    ]
    rates = [one[what]["rate"] for one in found.values() for what in DONE]
    reached = sum(rate >= AT_LEAST for rate in rates)
    says = f"The aim is {AT_LEAST:g} of a loop's rate: {reached} of {len(rates)} reach it here."
    if max(one["sweep"]["rate"] for one in found.values()) > 1:
        says += (
            " No sweep can be faster than the deletes in it, so where one is, **the machine was too busy to judge by.**"
        )
    head = ["", "database", "desilt", "a bare loop", "rate", "CPU an object", "of a loop"]
    return section("On S3, beside bare loops", [says, table(head, body, words=2)], {"s3_rates": drawing}, result)


def _rates(title: str, what: str, found: dict[str, Result]) -> Bars:
    bars = []
    for database, sides in found.items():
        one = sides[what]
        bars.append(Bar(database, (Part(one["ours_per_second"], "stays"),), times(one["rate"]), begins_group=True))
        bars.append(Bar("", (Part(one["loop_per_second"], "held"),), ""))
    every = [part.value for bar in bars for part in bar.parts]
    return Bars(title, from_zero("objects a second", every), tuple(bars), names=84, room=48)


def sweep(results: Results) -> Section:
    """What a removal costs on a disk, and whether it costs the same however many go."""
    alone, growth = results["sweep"], results["sweep_growth"]
    bars = [
        Bar(
            f"{said}, {by}",
            (Part(alone[f"{name}_{field}"] / alone["objects"] * MICRO, colour),),
            ratio,
            name == "sweep",
        )
        for by, field, ratio_of in (("CPU", "cpu_seconds", "times_unlink_by_cpu"), ("wall", "seconds", "times_unlink"))
        for name, said, colour, ratio in (
            ("sweep", "desilt", "stays", times(alone[ratio_of])),
            ("unlink", "unlinks", "held", ""),
        )
    ]
    series = [
        Series(colour, tuple((row["objects"], row["cpu_us_per_object"]) for row in growth["rows"] if row["way"] == way))
        for way, (_, colour) in WAYS.items()
    ]
    drawing = chart(
        "What a removal costs on a disk",
        f"Left, {alone['objects']:,} files really removed; right, deletes do nothing and tombstones are real.",
        [Key(said, colour) for said, colour in WAYS.values()],
        [
            [
                Bars(
                    "Beside a loop of unlinks",
                    from_zero("microseconds an object", [part.value for bar in bars for part in bar.parts]),
                    tuple(bars),
                    names=100,
                    room=48,
                ),
                Lines(
                    sizes("objects", [row["objects"] for row in growth["rows"]]),
                    from_zero("microseconds of CPU an object", [y for one in series for _, y in one.points]),
                    tuple(series),
                    room=14,
                ),
            ]
        ],
        height=200,
    )
    ratio = alone["times_unlink_by_cpu"]
    met = "met" if ratio <= AT_MOST else "**missed**"
    says = (
        f"{alone['objects']:,} objects take {seconds(alone['sweep_cpu_seconds'])} of CPU, bare unlinks"
        f" {seconds(alone['unlink_cpu_seconds'])}: {times(ratio)}, where the aim of {AT_MOST:g}× is {met}. Where a"
        f" profiler sees the time: {'; '.join(f'{name} {share:.0%}' for name, share in alone['shares'].items())}."
    )
    body = [
        [
            WAYS[row["way"]][0],
            f"{row['objects']:,}",
            f"{row['cpu_us_per_object']:.1f} µs",
            times(row["times_the_smallest"]),
        ]
        for row in growth["rows"]
    ]
    last = [row for row in growth["rows"] if row["way"] == "sections"][-1]
    most = times(last["times_the_smallest"])
    grows = f"At {count(last['objects'])} objects, each costs {most} what it does at the smallest size."
    head = ["way", "objects", "CPU an object", "to the smallest"]
    return section("Sweep, on a disk", [says, table(head, body, words=1), grows], {"sweep": drawing}, alone, growth)
