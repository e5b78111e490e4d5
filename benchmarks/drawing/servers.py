"""Plans on a lakeFS server: where their time goes, and what the server is asked for."""

from drawing.bars import Bar, Bars, Part
from drawing.chart import Key, chart
from drawing.scales import count, from_zero
from drawing.section import Result, Results, Section, seconds, section, table, times
from drawing.whole_runs import STAGES

OWN = {"as it comes": (120.0, 108.0), "with 8 shuffle partitions": (54.0, 42.0)}  # seconds; without Spark's start
OWN_MB = 1_900
FASTER, SMALLER = 5.0, 2.0  # the aims: than its best without Spark's start, and than its memory
WITHIN = min(apart for _, apart in OWN.values()) / FASTER
WITHIN_MB = OWN_MB / SMALLER
AT = (100_000, 50)  # objects and commits that it was measured with
KINDS = {
    "dump": "dumps of refs",
    "staged": "lists of staged",
    "paths": "paths",
    "pages": "pages of branches",
    "differences": "pages of differences",
    "other": "other",
}


def lakefs(results: Results) -> Section:
    """Shape by shape, with nothing decoded and again; requests by kind; lakeFS's own job beside."""
    result = results["lakefs"]
    rows = result["rows"]
    return section(
        "On a lakeFS server",
        [_beside(rows), _plans(rows), _growing(rows), _requests(rows), ASKING],
        {"lakefs": _drawing([row for row in rows if row["blockstore"] != "local" and not row["equal_sizes"]])},
        result,
    )


def same_shape(result: Result) -> Result | None:
    """The row of the shape that lakeFS's own job was measured at."""
    return next((row for row in result["rows"] if (row["objects"], row["commits"]) == AT and _usual(row)), None)


def peak_mb(row: Result) -> int:
    return int(max(row["first"]["peak_mb"], row["again"]["peak_mb"]))


def _usual(row: Result) -> bool:
    return row["blockstore"] != "local" and not row["equal_sizes"]


def _beside(rows: list[Result]) -> str:
    said = "; ".join(f"{way} {seconds(whole)} ({seconds(apart)})" for way, (whole, apart) in OWN.items())
    told = (
        f"lakeFS's own job (client 0.22, Spark 4.3, two cores) marked {count(AT[0])} objects of {AT[1]} commits:"
        f" {said}, without Spark's start in brackets, with {OWN_MB / 1000:.1f} GB of memory. **Measured once beside a"
        " real server on S3, not in this run**: here the server is a model of one, and objects are files."
    )
    row = same_shape({"rows": rows})
    if row is None:
        return told
    first, best = row["first"]["seconds"], min(apart for _, apart in OWN.values())
    return (
        f"{told} The same shape here: {seconds(first)} with nothing decoded, {seconds(row['again']['seconds'])} again,"
        f" {peak_mb(row):,} MB; {times(best / first)} as fast as its best, start apart on both sides."
    )


def _plans(rows: list[Result]) -> str:
    head = ["objects", "commits", "branches", "", "first", "CPU", "again", "CPU", "server's CPU", "memory"]
    body = [
        [
            *_shape(row),
            *(seconds(row[run][field]) for run in ("first", "again") for field in ("seconds", "cpu_seconds")),
            seconds(row["again"]["server_cpu_seconds"]),
            f"{peak_mb(row):,} MB",
            seconds(row["duckdb_seconds"]),
            times(row["times_duckdb"]),
        ]
        for row in rows
    ]
    says = (
        "Memory is that of all processes at once. DuckDB does the plain set difference over the same files, tables"
        " decoded already; it asks no server, and takes for garbage what only a branch knows of."
    )
    return f"{table([*head, 'DuckDB', '÷ DuckDB'], body)}\n\n{says}"


def _growing(rows: list[Result]) -> str:
    usual = [row for row in rows if _usual(row)]
    return "\n".join(_grown(one, other) for one in usual for other in usual if _is_larger(one, other))


def _is_larger(one: Result, other: Result) -> bool:
    """Whether only objects are more."""
    same = all(one[name] == other[name] for name in ("commits", "branches"))
    return bool(same and one["objects"] < other["objects"])


def _grown(one: Result, other: Result) -> str:
    first, again = (times(other[run]["cpu_seconds"] / one[run]["cpu_seconds"]) for run in ("first", "again"))
    requests = times(sum(other["again"]["asked"].values()) / sum(one["again"]["asked"].values()))
    return (
        f"- {other['objects'] / one['objects']:g} times the objects: first {first} the CPU, again {again}, memory"
        f" {times(peak_mb(other) / peak_mb(one))}, requests {requests}."
    )


def _requests(rows: list[Result]) -> str:
    head = ["objects", "commits", "branches", "", *KINDS.values(), "entries of all heads", "of a size", "of the bytes"]
    body = [
        [
            *_shape(row),
            *(f"{row['again']['asked'][kind]:,}" for kind in KINDS),
            *(f"{row[name]:,}" for name in ("entries_of_heads", "paths_of_equal_size", "paths_of_equal_bytes")),
        ]
        for row in rows
    ]
    return f"What the server is asked for in one plan:\n\n{table(head, body)}"


ASKING = (
    "*Of a size*: paths of heads, of all branches together, whose entry has the size of something that would go. There"
    " an upload of equal bytes may be served that nothing lists; each is asked for, or the branch is listed where that"
    " is fewer requests. *Of the bytes*: as many as there would be, were checksums of what would go known too. On a"
    " local blockstore every branch is listed."
)


def _shape(row: Result) -> list[str]:
    said = ["local"] if row["blockstore"] == "local" else []
    said += ["all of one size"] if row["equal_sizes"] else []
    return [f"{row['objects']:,}", f"{row['commits']:,}", f"{row['branches']:,}", ", ".join(said)]


def _drawing(rows: list[Result]) -> str:
    stages = [one for one in STAGES if any(row["first"]["stages"].get(one) for row in rows)]
    bars = [
        Bar(
            f"{count(row['objects'])}, {row['commits']} commits" if run == "first" else "again",
            tuple(Part(row[run]["stages"].get(one, 0), STAGES[one]) for one in stages),
            f"{seconds(row[run]['seconds'])}",
            begins_group=run == "first",
        )
        for row in rows
        for run in ("first", "again")
    ]
    every = [sum(part.value for part in bar.parts) for bar in bars]
    return chart(
        "Plans of gc on a lakeFS server",
        "Verdicts have in them what branches are asked for. First with no table decoded, then again.",
        [Key(one, STAGES[one], is_line=False) for one in stages],
        [[Bars("", from_zero("seconds", every), tuple(bars), names=134)]],
    )
