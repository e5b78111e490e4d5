"""Tables for Spark: each is what the lake itself says, whole or not at all; and nothing is written by reading."""

import os
import pickle
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import desilt
from desilt.domain.entry import shown_path
from desilt.domain.times import microseconds
from desilt.errors import BadRequest, CorruptTable, DamagedRun, DesiltError, NotFound, StorageFailed
from desilt.executors.executor import HERE
from desilt.jobs.retention.vacuum import vacuum
from desilt.lake import Lake
from desilt.runs import archive
from desilt.tables import register
from desilt.tables.request import TAKES, asked
from desilt.tables.source import TablesReader
from odd_paths import commit_odd
from words import days, later, put

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = {"logs": {"prefix": "logs/", "days": 7}}


@pytest.fixture
def full(repo, uri):
    """A repository with a past: branches, a tag, what is staged, a branch that is gone, and two runs that swept."""
    for number in range(5):
        repo.put("main", f"data/{number}", b"x" * number, metadata={"number": str(number)}, content_type="text/plain")
    repo.commit("main", "first", committer="ana", metadata={"why": "because"})
    repo.create_tag("v1", "main")
    repo.create_branch("dev", "main")
    repo.put("dev", "data/0", b"other")
    repo.commit("dev", "second")
    repo.put("main", "logs/monday", b"many lines")
    repo.commit("main", "log")
    repo.create_branch("gone", "dev")
    put(repo, "gone", "lost", "lost")
    repo.commit("gone", "third")
    repo.delete_branch("gone", force=True)
    put(repo, "main", "never committed")
    repo.reset("main")
    days(repo, 30)
    with desilt.open(uri) as opened:
        repo.collected = opened.gc.run(confirm=True, max_share=1.0).run
        later(repo, seconds=5)
        repo.expired = opened.lifecycle.plan(policy=POLICY).sweep(confirm=True, max_share=1.0).run
    repo.put("dev", "staged", b"new")
    repo.put("main", "data/1", b"changed")
    repo.remove("main", "data/2")
    return repo


def frame(spark, uri, table, **options):
    return spark.read.format("desilt").options(repository=uri, table=table, **options).load()


def on_spark(spark, uri, table, **options):
    """The rows of a table, in an order of its own: as dicts."""
    found = [row.asDict() for row in frame(spark, uri, table, **options).collect()]
    return sorted(found, key=repr)


def reader(uri, table, **options):
    return TablesReader(asked({"repository": uri, "table": table, **options}))


def parts(uri, table, **options):
    """The rows of each part, as Spark's workers would read them, without Spark."""
    reading = reader(uri, table, **options)
    sent = pickle.loads(pickle.dumps(reading.partitions()))
    return [[row for batch in reading.read(part) for row in batch.to_pylist()] for part in sent]


def rows(uri, table, **options):
    return [row for part in parts(uri, table, **options) for row in part]


def stamp(moment):
    """As Spark hands it out: without a zone, in that of the session."""
    return moment.astimezone().replace(tzinfo=None)


def told(entries):
    return sorted(
        {
            "path": shown_path(one.path),
            "address": one.address,
            "size_bytes": one.size,
            "created_at": stamp(one.modified_at),
            "checksum": one.checksum,
            "content_type": one.content_type,
            "metadata": dict(one.metadata),
        }.items()
        for one in entries
    )


def seen(found, *left_out):
    return sorted(sorted((name, value) for name, value in row.items() if name not in left_out) for row in found)


def test_entries_are_those_of_the_default_branch_or_of_a_ref(spark, full, uri):
    listed = list(full.list("main@"))
    found = on_spark(spark, uri, "entries")
    assert seen(found, "ref", "commit_id") == sorted(map(sorted, told(listed)))
    head = full.resolve("main").commit.id
    assert {(row["ref"], row["commit_id"]) for row in found} == {("main", head)}
    at_tag = on_spark(spark, uri, "entries", ref="v1")
    assert {row["path"] for row in at_tag} == {entry.path for entry in full.list("v1")}
    assert {row["ref"] for row in at_tag} == {"v1"}


def test_entries_of_every_branch_are_told_by_branch(full, uri):
    found = rows(uri, "entries", ref="*", columns="ref,path,address")
    assert {tuple(row.values()) for row in found} == {
        (branch.name, entry.path, entry.address) for branch in full.branches() for entry in full.list(f"{branch.name}@")
    }
    assert len(found) == 11
    assert {row["ref"] for row in found} == {"main", "dev"}


def test_commits_are_all_there_are(spark, full, uri):
    found = on_spark(spark, uri, "commits")
    with full.database.read() as tx:
        ids = {row[0] for row in tx.rows("SELECT id FROM commits")}
    assert {row["commit_id"] for row in found} == ids  # that of the deleted branch, too
    assert len(ids) == 5
    first = next(row for row in found if row["message"] == "first")
    commit = full.resolve("v1").commit
    assert first == {
        "commit_id": commit.id,
        "parents": list(commit.parents),
        "made_from": list(commit.parents),
        "created_at": stamp(commit.created_at),
        "committer": "ana",
        "message": "first",
        "metadata": {"why": "because"},
    }


def test_refs_are_branches_and_tags(full, uri):
    found = {(row["kind"], row["name"], row["commit_id"], row["is_default"]) for row in rows(uri, "refs")}
    branches = {("branch", one.name, one.head, one.name == "main") for one in full.branches()}
    assert found == branches | {("tag", one.name, one.target, False) for one in full.tags()}


def test_staged_is_what_a_commit_would_change(spark, full, uri):
    found = on_spark(spark, uri, "staged")
    assert {(row["branch"], row["path"], row["address"], row["removes"]) for row in found} == {
        (branch.name, change.path, change.after and change.after.address, change.after is None)
        for branch in full.branches()
        for change in full.uncommitted(branch.name)
    }
    assert len(found) == 3
    changed = [change.after for change in full.uncommitted("main") if change.after]
    assert seen([row for row in found if row["path"] == "data/1"], "branch", "removes") == [
        sorted(row) for row in told(changed)
    ]
    assert {row["path"] for row in rows(uri, "staged", ref="dev")} == {"staged"}
    assert {row["path"] for row in rows(uri, "staged", prefix="data/")} == {"data/1", "data/2"}


def test_an_inventory_is_what_lies_in_the_store(full, uri, place):
    root = place / "lake" / full.prefix
    files = {str(path.relative_to(root)): path for path in (root / "branches").rglob("*") if path.is_file()}
    found = rows(uri, "inventory")
    assert {row["address"]: row["size_bytes"] for row in found} == {a: p.stat().st_size for a, p in files.items()}
    names = {branch.uid: branch.name for branch in full.branches()}
    deleted = {row["branch"] for row in found if row["address"].split("/")[1] not in names}
    assert {row["branch"] for row in found} == {"main", "dev"} | deleted
    assert all(one.startswith("gone, deleted") for one in deleted)
    assert len(deleted) == 1


def test_an_inventory_is_told_as_a_run_listed_it(full, uri):
    before = {row["address"] for row in rows(uri, "inventory", run=full.collected)}
    now = {row["address"] for row in rows(uri, "inventory")}
    removed = {row["address"] for row in rows(uri, "removals")}
    staged = {row["address"] for row in rows(uri, "staged")} - {None}
    assert before == (now | removed) - staged
    with pytest.raises(BadRequest, match="of lifecycle listed no objects; name one of gc"):
        rows(uri, "inventory", run=full.expired)


def test_a_plan_is_what_it_says_itself(spark, full, uri):
    found = on_spark(spark, uri, "plan", run=full.expired)
    with desilt.open(uri) as opened:
        planned = opened.planned(full.expired).removals().rename_columns({"size": "size_bytes"}).to_pylist()
    assert [{**row, "modified_at": None, "run": None, "job": None} for row in found] == [
        {**row, "modified_at": None, "run": None, "job": None} for row in planned
    ]
    assert (found[0]["path"], found[0]["rule"], found[0]["job"]) == ("logs/monday", "logs", "lifecycle")
    assert rows(uri, "plan") == rows(uri, "plan", run=full.expired)  # the last one
    assert {row["run"] for row in rows(uri, "plan", run="*")} == {full.collected, full.expired}
    with pytest.raises(NotFound, match="there is no run 'nosuch'"):
        rows(uri, "plan", run="nosuch")


def test_an_outcome_has_every_object_that_was_to_go(full, uri):
    (found,) = rows(uri, "outcome", run=full.collected)
    (planned,) = rows(uri, "plan", run=full.collected)
    assert {name: found[name] for name in ("run", "job", "batch", "address", "branch", "size_bytes", "result")} == {
        **{name: planned[name] for name in ("run", "job", "address", "branch", "size_bytes")},
        "batch": 0,
        "result": "removed",
    }
    assert len(rows(uri, "outcome", run="*")) == 2
    with desilt.open(uri) as opened:
        run = opened.gc.plan().run
    with pytest.raises(NotFound, match="not swept; see table 'plan'"):
        rows(uri, "outcome", run=run)


def in_ledger(place):
    with sqlite3.connect(place / "lake" / "desilt.db") as database:
        return set(database.execute("SELECT address, run, rule, state, size_bytes, condemned_at FROM tombstones"))


def recorded(found):
    names = ("address", "run", "rule", "state", "size_bytes")
    return {(*(row[name] for name in names), microseconds(row["condemned_at"])) for row in found}


def test_removals_are_the_ledger(spark, full, uri, place):
    assert recorded(rows(uri, "removals")) == in_ledger(place)
    found = on_spark(spark, uri, "removals")
    assert {(row["job"], row["rule"], row["branch"]) for row in found} == {
        ("gc", "unreferenced", "main"),
        ("lifecycle", "logs", "main"),
    }
    for wanted in (full.expired, full.expired[:-3], "last"):
        assert {row["run"] for row in rows(uri, "removals", run=wanted)} == {full.expired}
    with pytest.raises(BadRequest, match="there is no swept run 'nosuch'"):
        rows(uri, "removals", run="nosuch")


def test_removals_that_only_the_archive_has_are_told_once(full, uri, place):
    before = recorded(rows(uri, "removals"))
    days(full, 400)
    assert vacuum(full, HERE).tombstones == 1  # the other is committed
    assert len(in_ledger(place)) == 1
    assert recorded(rows(uri, "removals")) == before
    for run in (full.collected, full.expired):
        assert {row["run"] for row in rows(uri, "removals", run=run)} == {run}
    store, prefix = full.store, full.prefix
    (key,) = archive.keys(store, prefix)
    store.put(f"{key.removesuffix('.parquet')}-again.parquet", [store.get(key)])  # as after a vacuum that was cut off
    with full.database.read() as tx:
        left = [row[0] for row in tx.rows("SELECT address FROM tombstones")]
    archive.write(store, prefix, list(full.tombstones(left).values()))  # not yet out of the database
    assert recorded(rows(uri, "removals")) == before
    assert len(rows(uri, "removals")) == len(before)


def test_a_ledger_that_shrinks_while_it_is_read_is_not_half_of_one(full, uri):
    reading = reader(uri, "removals")
    sent = reading.partitions()
    with full.database.write() as tx:
        tx.execute("DELETE FROM tombstones WHERE run = ?", full.collected)
    with pytest.raises(StorageFailed, match="load it again"):
        [list(reading.read(part)) for part in sent]


@pytest.fixture
def wide(repo):
    """A commit of many small ranges."""
    lake = Lake(repo.database, repo.store, raggedness=4)
    many = lake.repository("demo")
    for number in range(400):
        many.put("main", f"{number % 10}/{number:04d}", b"x")
    many.commit("main", "many")
    many.tables = many.ranges.metarange(many.resolve("main").commit.metarange)
    assert len(many.tables) > 50
    return many


def test_many_ranges_are_read_by_many_tasks_and_each_entry_once(spark, wide, uri):
    found = frame(spark, uri, "entries")
    assert found.rdd.getNumPartitions() >= 24
    assert found.selectExpr("spark_partition_id() AS part").distinct().count() >= 24
    paths = [row.path for row in found.select("path").collect()]
    assert sorted(paths) == [entry.path for entry in wide.list("main")]


def test_ranges_that_branches_share_are_told_of_each(wide, uri):
    wide.create_branch("same", "main")
    paths = [entry.path for entry in wide.list("main")]
    found = rows(uri, "entries", ref="*", columns="ref,path")
    assert sorted(tuple(row.values()) for row in found) == [(ref, path) for ref in ("main", "same") for path in paths]


def test_ranges_beside_a_prefix_are_not_touched(wide, uri):
    (Path(wide.store.root) / wide.prefix / "_lakefs" / wide.tables[0].id).unlink()
    with pytest.raises(CorruptTable, match="its file is missing"):
        rows(uri, "entries")
    for prefix in ("7", "7/", "7/012", "7/0127"):
        found = [row["path"] for row in rows(uri, "entries", prefix=prefix)]
        assert sorted(found) == [f"7/{n:04d}" for n in range(7, 400, 10) if f"7/{n:04d}".startswith(prefix)]
    inner = next(table for table in wide.tables[1:] if table.min_key < table.max_key)
    assert [row["path"] for row in rows(uri, "entries", prefix=inner.max_key.decode())] == [inner.max_key.decode()]
    assert rows(uri, "entries", prefix="none/") == []
    assert len(parts(uri, "entries", prefix="7/0127")) == 1


def test_a_range_that_is_not_what_was_written_stops_whoever_reads_it(spark, wide, uri):
    path = Path(wide.store.root) / wide.prefix / "_lakefs" / wide.tables[7].id
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(CorruptTable):
        rows(uri, "entries")
    with pytest.raises(Exception, match=wide.tables[7].id):
        frame(spark, uri, "entries").count()


def test_paths_that_are_no_text_are_told_and_found_by_what_they_begin_with(spark, repo, uri):
    odd = [b"odd/\xff\xfe", b"odd/\xc3\xa9", b"odd/a\\xff", "odd/é2".encode(), b"odd/\xf0\x28", b"z"]
    commit_odd(repo, "main", *odd)
    shown = {shown_path(raw.decode(errors="surrogateescape")) for raw in odd}
    assert {row["path"] for row in on_spark(spark, uri, "entries")} == shown
    assert {row["path"] for row in rows(uri, "entries", prefix="odd/é")} == {"odd/é", "odd/é2"}
    assert {row["path"] for row in rows(uri, "entries", prefix="odd/a\\x")} == {"odd/a\\xff"}
    assert {row["path"] for row in rows(uri, "entries", prefix="odd/")} == shown - {"z"}


def test_only_the_columns_that_are_asked_for_are_read_in_their_order(spark, full, uri):
    assert frame(spark, uri, "entries", columns="size_bytes, Path").columns == ["size_bytes", "path"]
    assert frame(spark, uri, "entries", columns="path").count() == 6
    chosen = spark.read.format("desilt").options(repository=uri, table="entries").schema("path string")
    assert {row.path for row in chosen.load().collect()} == {entry.path for entry in full.list("main@")}
    with pytest.raises(Exception, match="it is bigint"):
        spark.read.format("desilt").options(repository=uri, table="entries").schema("size_bytes string").load().count()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "entrys"}, "did you mean 'entries'?"),
        ({"table": "entries", "db": "postgresql://me:secret@host/x"}, "PGPASSWORD"),
    ],
    ids=["table", "password"],
)
def test_a_mistake_is_told_when_the_table_is_named(spark, uri, options, said):
    with pytest.raises(Exception) as refused:  # noqa: PT011  of Spark's
        spark.read.format("desilt").options(repository=uri, **options).load()
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.usefixtures("full")
def test_a_ref_a_branch_or_a_repository_that_is_not_there_is_an_error(uri, place):
    with pytest.raises(NotFound, match="there is no ref 'nosuch'"):
        rows(uri, "entries", ref="nosuch")
    with pytest.raises(BadRequest, match="'v1' is no branch"):
        rows(uri, "staged", ref="v1")
    with pytest.raises(DesiltError):
        rows(f"{place}/nosuch#demo", "entries")


def test_an_outcome_or_an_inventory_that_is_damaged_or_missing_is_an_error(full, uri, place):
    root = place / "lake" / full.prefix / "_desilt" / "runs"
    (outcome,) = root.glob("lifecycle/*/outcome/*.parquet")
    whole = outcome.read_bytes()
    (other,) = root.glob("gc/*/outcome/*.parquet")
    with full.database.write() as tx:
        tx.execute("UPDATE batches SET asked = 2 WHERE run = ?", full.collected)
    with pytest.raises(DamagedRun, match="has 1 rows, and 2 are on record"):
        rows(uri, "outcome", run=full.collected)
    for damage in (lambda: outcome.write_bytes(whole[:-30]), outcome.unlink):
        damage()
        with pytest.raises(DamagedRun):
            rows(uri, "outcome", run=full.expired)
    assert other.exists()
    (plan,) = root.glob("lifecycle/*/plan/*.parquet")
    plan.write_bytes(plan.read_bytes()[:-1])
    with pytest.raises(DamagedRun):
        rows(uri, "plan")
    listed = next(iter(root.glob("gc/*/inputs/inventory/*.parquet")))
    listed.unlink()
    with pytest.raises(DamagedRun, match=r"has \d objects, and the run listed 9"):
        rows(uri, "inventory", run=full.collected)


def test_history_with_a_hole_in_it_is_no_table(full, uri):
    lost = full.resolve("main").commit
    with full.database.write() as tx:
        tx.execute("UPDATE commits SET repository = 'lost' WHERE id = ?", lost.id)
    for table in ("commits", "refs", "entries"):
        with pytest.raises(DesiltError, match="is missing"):
            rows(uri, table)


def test_reading_writes_nothing(full, uri, place):
    def everything():
        with sqlite3.connect(place / "lake" / "desilt.db") as database:
            dump = "\n".join(database.iterdump())
        files = [path for path in (place / "lake").rglob("*") if path.is_file() and "desilt.db" not in path.name]
        return dump, {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}

    before = everything()
    for table in TAKES:
        assert rows(uri, table)
    assert rows(uri, "entries", ref="*")
    assert rows(uri, "inventory", run=full.collected)
    assert everything() == before


@pytest.mark.usefixtures("full")
def test_what_one_query_filters_no_other_query_misses(spark, uri):
    """Spark keeps what a source leaves unread for the next query of the same frame: so this one leaves nothing."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        found = frame(spark, uri, "entries", ref="*", columns="ref,path")
        assert found.where("ref = 'dev' AND path LIKE 'data/%'").count() == 5
        assert found.count() == 11
        dev, main = (found.where(f"ref = '{name}'").select("path") for name in ("dev", "main"))
        assert dev.join(main, "path").count() == 5
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.usefixtures("full")
def test_it_is_known_to_a_session_by_itself_and_may_be_made_known_as_well(spark, uri):
    assert frame(spark, uri, "refs").count() == 3
    register(spark)
    register(spark)
    assert frame(spark, uri, "refs").count() == 3
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW named USING desilt OPTIONS (repository '{uri}', table 'refs')")
    assert spark.sql("SELECT name FROM named WHERE kind = 'tag'").collect()[0].name == "v1"


def test_whoever_looks_for_data_sources_loads_next_to_nothing_of_ours():
    code = "import sys, pyspark_desilt; print(*sorted(name for name in sys.modules if name.startswith('desilt')))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert loaded == ["desilt", "desilt.tables", "desilt.tables.source"]


CONNECTED = """
import sys
from pyspark.sql import SparkSession
from desilt.tables import register
spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert "connect" in type(spark).__module__
register(spark)
for table in sys.argv[2].split(","):
    found = spark.read.format("desilt").options(repository=sys.argv[1], table=table).load()
    print(table, found.count())
spark.stop()
"""


@pytest.mark.usefixtures("full")
def test_the_same_tables_are_there_through_spark_connect(uri):
    from desilt.executors.java import java_home

    env = {**os.environ, "JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
    words = [sys.executable, "-c", CONNECTED, uri, "entries,removals"]
    ended = subprocess.run(words, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["entries", "6", "removals", "2"]
