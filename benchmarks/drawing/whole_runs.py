"""Whole runs, stage by stage: at the bottom line's size, and in the places where they can be done."""

from desilt.executors.by_size import IN_ONE_PROCESS, WITHOUT_SPARK
from drawing.bars import Bar, Bars, Part
from drawing.chart import Key, chart
from drawing.lines import Level, Lines, Series
from drawing.scales import count, decades, from_zero, sizes
from drawing.section import Result, Results, Section, seconds, section, table

STAGES = {
    "tickets and staged": "c0",
    "commits and ranges": "c4",
    "inventory": "c5",
    "verdicts": "c1",
    "sweep": "c3",
    "everything else": "c2",
}
WAITED, START = "waiting for the store", "Spark's start"
RUNS = {"inventory": "from an inventory", "listing": "all of it listed", "again": "nothing new"}
WITHIN = 300.0  # seconds: the aim for a run from an inventory
LAKEFS = "lakeFS's design names about three hours on a cluster for this size"
FIRST = "The first run decodes every range; the others find them decoded."
UNLIKE = " Not the same measurement: here no network is in it, neither in listing nor in deleting."
WAYS = {"one process": "goes", "processes": "pointed", "Spark": "stays"}


def bottom_line(results: Results) -> Section:
    """The size that lakeFS's design calls its bottom line, listed and removed in pretence."""
    result = results["bottom_line"]
    return _whole("bottom_line", f"The bottom line: {count(result['objects'])} objects", result, LAKEFS, aimed=True)


def bottom_line_files(results: Results) -> Section:
    """The same, with files that are really there."""
    told = "Each object is an empty file, really listed and really removed"
    return _whole("bottom_line_files", "The same with real files", results["bottom_line_files"], told, aimed=False)


def _whole(name: str, heading: str, result: Result, about: str, *, aimed: bool) -> Section:
    runs = {said: result[key] for key, said in RUNS.items() if key in result}
    parts = {said: _parts(run) for said, run in runs.items()}
    shape = f"{result['objects']:,} objects, {result['branches']:,} branches, {result['commits']:,} commits"
    colours = {START: "gone", **STAGES, WAITED: "held"}
    drawn = [stage for stage in colours if any(one.get(stage, 0) > 0 for one in parts.values())]
    levels = (Level(WITHIN, f"the aim: {WITHIN / 60:g} minutes"),) if aimed else ()
    bars = (
        Bar(
            said,
            tuple(Part(one.get(stage, 0), colours[stage], seconds(one.get(stage, 0))) for stage in drawn),
            f"{seconds(runs[said]['seconds'])}, start {seconds(one[START])}",
        )
        for said, one in parts.items()
    )
    axis = from_zero("seconds", [*(sum(one.values()) for one in parts.values()), *(level.value for level in levels)])
    panel = Bars("", axis, tuple(bars), levels, room=126)
    drawing = chart(
        f"Whole runs of gc: {shape}", about, [Key(stage, colours[stage], is_line=False) for stage in drawn], [[panel]]
    )
    rows = [[stage, *(seconds(one.get(stage, 0)) for one in parts.values())] for stage in drawn if stage != START]
    rows.append(["**whole**", *(f"**{seconds(run['seconds'])}**" for run in runs.values())])
    rows.append([f"{START}, not in it", *(seconds(run["spark_start_seconds"]) for run in runs.values())])
    for said, field, unit in (
        ("objects looked at", "looked_at", ""),
        ("removed", "removed", ""),
        ("driver, more", "grew_mb", " MB"),
    ):
        rows.append([said, *(f"{run[field]:,}{unit}" for run in runs.values())])
    store = f"Database {result['database']}; the store is {result['store']}."
    says = f"{about}. {FIRST}{UNLIKE if aimed else ''} {store}"
    return section(heading, [says, table(["", *runs], rows, words=1)], {name: drawing}, result)


def _parts(run: Result) -> dict[str, float]:
    """Where the time of a run went, with what it waited for, and what came before it."""
    return {**run["stages"], WAITED: run["waited_seconds"], START: run["spark_start_seconds"]}


def places(results: Results) -> Section:
    """The same run in one process, in several, and on Spark."""
    result = results["places"]
    rows = result["rows"]
    objects = [row["objects"] for row in rows]
    limits = {IN_ONE_PROCESS: "one process up to here", WITHOUT_SPARK: "Spark from here"}
    levels = (Level(rows_, said, across=False) for rows_, said in limits.items() if objects[0] <= rows_ <= objects[-1])
    drawing = chart(
        "The same run in three places",
        "A clean run of gc from the first import to the end, nothing decoded before; empty files on a disk.",
        [Key({"processes": "a process for each core"}.get(way, way), colour) for way, colour in WAYS.items()],
        [
            [
                Lines(
                    sizes("objects", objects),
                    decades("seconds", [took for row in rows for took in row["seconds"].values()]),
                    tuple(
                        Series(
                            colour,
                            tuple((row["objects"], row["seconds"][way]) for row in rows),
                            seconds(rows[-1]["seconds"][way]),
                        )
                        for way, colour in WAYS.items()
                    ),
                    tuple(levels),
                    room=60,
                )
            ]
        ],
    )
    ratios = [row["seconds"]["Spark"] / row["seconds"]["processes"] for row in rows]
    body = [
        [f"{row['objects']:,}", *(seconds(row["seconds"][way]) for way in WAYS), f"{ratio:.1f}×"]
        for row, ratio in zip(rows, ratios, strict=True)
    ]
    overtakes = next((row["objects"] for row, ratio in zip(rows, ratios, strict=True) if ratio < 1), None)
    says = (
        f"Spark on the same cores overtakes at {count(overtakes)} objects."
        if overtakes
        else f"Spark on the same cores comes closer with size; it does not overtake up to {count(objects[-1])} objects."
    )
    says += " A cluster has more cores, and pays earlier: say so with `--master`."
    head = ["objects", "one process", "processes", "Spark", "Spark ÷ processes"]
    return section("", [table(head, body), says], {"places": drawing}, result)


def limits(results: Results) -> Section:
    """Where work is done, as the program has it."""
    del results
    rows = [
        [f"up to {IN_ONE_PROCESS:,}", "in this process", "others take longer to start than they save"],
        [
            f"up to {WITHOUT_SPARK:,}",
            "in processes beside it, one for each core",
            "Spark takes longer to start than it saves",
        ],
        ["more", "on Spark, on all cores of this machine", "memory stays bounded, and a cluster can be named instead"],
    ]
    return Section(table(["rows", "where", "why"], rows, words=3))
