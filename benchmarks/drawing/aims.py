"""What was aimed at, and what was measured: met, missed, or not measured yet."""

from collections.abc import Callable
from dataclasses import dataclass

from drawing import days, icechunk, marking, servers, stores, whole_runs
from drawing.scales import count
from drawing.section import Result, Results, Section, seconds, table, times

BESIDE_DUCKDB = 1.5  # lifecycle's and collection's full mark
NOTHING_NEW = 10.0  # seconds, without Spark's start
AS_ONE_RUN = 1.1  # cache files of daily runs, to those of one


@dataclass(frozen=True, slots=True)
class Aim:
    """Something to reach: which result tells, and how to read it."""

    what: str
    result: str
    read: Callable[[Result], float | None]  # None: not at the size that is aimed at
    bound: float
    words: Callable[[float], str] = times
    at_least: bool = False

    def row(self, results: Results) -> list[str]:
        sign = "at least" if self.at_least else "at most"
        aim = f"{sign} {self.words(self.bound)}"
        found = self.read(results[self.result]) if self.result in results else None
        if found is None:
            return [self.what, aim, "", "not measured yet"]
        met = found >= self.bound if self.at_least else found <= self.bound
        return [self.what, aim, self.words(found), "met" if met else "**missed**"]


def _least_rate(what: str) -> Callable[[Result], float]:
    return lambda result: min(float(result[key][what]["rate"]) for key in stores.DATABASES if key in result)


def _to_one_run(result: Result) -> float:
    took = {row["files"]: float(row["mark"]) for row in result["rows"]}
    return took["growing together"] / took["one run"]


def _weekly(result: Result) -> float:
    rows = result["bounded"]["rows"]
    return float(rows[-1]["weekly"] / rows[0]["weekly"])


def _mark(result: Result) -> float | None:
    return next((row["times_duckdb"] for row in result["rows"] if row["objects"] >= marking.AIMED_AT), None)


def _whole_run(run: str) -> Callable[[Result], float | None]:
    return lambda result: result[run]["seconds"] if result["objects"] >= marking.AIMED_AT else None


def _on_lakefs(read: Callable[[Result], float]) -> Callable[[Result], float | None]:
    def at_its_shape(result: Result) -> float | None:
        row = servers.same_shape(result)
        return None if row is None else read(row)

    return at_its_shape


SIZE = count(marking.AIMED_AT)
ITS_SHAPE = f"{count(servers.AT[0])} objects and {servers.AT[1]} commits on a lakeFS server"
AIMS = (
    Aim(f"mark of {SIZE} objects, to DuckDB", "mark", _mark, marking.AIM),
    Aim(
        f"whole run of {SIZE} objects, from an inventory",
        "bottom_line",
        _whole_run("inventory"),
        whole_runs.WITHIN,
        seconds,
    ),
    Aim(f"nothing new among {SIZE}, without Spark's start", "bottom_line", _whole_run("again"), NOTHING_NEW, seconds),
    Aim(
        "lifecycle's full mark, to DuckDB",
        "lifecycle",
        lambda one: float(one["rows"][-1]["times_duckdb"]),
        BESIDE_DUCKDB,
    ),
    Aim(
        "collection's mark, to DuckDB", "expiration", lambda one: float(one["lakes"][-1]["times_duckdb"]), BESIDE_DUCKDB
    ),
    Aim("listing on S3, to a bare loop's rate", "s3_rates", _least_rate("list"), stores.AT_LEAST, at_least=True),
    Aim("sweeping on S3, to a bare loop's rate", "s3_rates", _least_rate("sweep"), stores.AT_LEAST, at_least=True),
    Aim(
        "sweeping on a disk, to the CPU of unlinks",
        "sweep",
        lambda one: float(one["times_unlink_by_cpu"]),
        stores.AT_MOST,
    ),
    Aim("cache files of daily runs, to one full run's", "cache_files", _to_one_run, AS_ONE_RUN),
    Aim(
        "the last of a thousand days, to the tenth",
        "thousand_days",
        lambda one: float(one["bounded"]["ratio"]),
        days.FLAT,
    ),
    Aim("its weekly expire and collect, to the first", "thousand_days", _weekly, days.FLAT),
    Aim(
        f"plan of {ITS_SHAPE}, nothing decoded",
        "lakefs",
        _on_lakefs(lambda row: float(row["first"]["seconds"])),
        servers.WITHIN,
        seconds,
    ),
    Aim("memory of it", "lakefs", _on_lakefs(servers.peak_mb), servers.WITHIN_MB, lambda mb: f"{mb:,.0f} MB"),
    Aim(
        "first collection of an Icechunk repository in one process, to its library",
        "icechunk",
        lambda one: icechunk.worst(one, "desilt", "collect"),
        icechunk.FIRST,
    ),
    Aim("the same in two", "icechunk", lambda one: icechunk.worst(one, "desilt, processes", "collect"), icechunk.AHEAD),
    Aim(
        "collection where nothing changed, to its library",
        "icechunk",
        lambda one: icechunk.worst(one, "desilt", "again"),
        icechunk.NOTHING,
    ),
)


def aims(results: Results) -> Section:
    """All of them in one table."""
    return Section(table(["", "aim", "measured", ""], [aim.row(results) for aim in AIMS], words=1))
