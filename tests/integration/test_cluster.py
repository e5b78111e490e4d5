"""Runs on a real cluster: a master and two workers, a bucket on S3, a database in PostgreSQL.

Workers have all that desilt needs, and not desilt itself. One of them reaches the bucket by a way on which its requests
can be held up, so that it is killed in the middle of what it does.
"""

import itertools
import json
import os
import subprocess
import sys
import sysconfig
import venv
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.testing import clusters, oracle
from held_up import held_up

START = datetime(2026, 1, 1, tzinfo=UTC)
GARBAGE, STAGED, COMMITTED = 60, 15, 15
PASSWORD = "sesame-open-thyself"  # PostgreSQL here asks for none; whoever shows it is found out by it
NUMBERS = itertools.count()
CLI = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from desilt.columns import kernel
kernel.ROWS_AT_ONCE = 4  # many tasks of a few objects
from desilt.cli.attempt import run
from desilt.cli.main import desilt
for line in sys.stdin:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run(desilt, json.loads(line))
    print(json.dumps([code, *(one.buffer.getvalue().decode() for one in (out, err))]), flush=True)
"""


class Driver:
    """Commands, one after the other, in one process with one Spark session."""

    def __init__(self, process, log):
        self._process, self._log = process, log

    def begin(self, *words):
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def ended(self):
        answer = self._process.stdout.readline()
        assert answer, self._log.read_text()
        return json.loads(answer)

    def __call__(self, *words):
        self.begin(*words)
        return self.ended()


@contextmanager
def driver(env, log, conf=()):
    words = " ".join(f"--conf {one}" for one in conf)
    env = {**os.environ, **env, "PYSPARK_SUBMIT_ARGS": f"{words} pyspark-shell"}
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [sys.executable, "-c", CLI], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, env=env
        ) as process,
    ):
        yield Driver(process, log)
        process.stdin.close()


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python with everything that is installed here but what is being tested."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder)
    beside = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (beside / "others.pth").write_text(sysconfig.get_path("purelib"))  # files like this one there are not read
    lacks = subprocess.run([folder / "bin" / "python", "-c", "import desilt"], capture_output=True, cwd=folder)
    assert lacks.returncode, "desilt itself is installed there, and not beside its source"
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def way(s3_server):
    with held_up(s3_server.endpoint) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(s3_server, way, python, tmp_path_factory):
    told = {**s3_server.env, "PYSPARK_PYTHON": python, "PYTHONPATH": ""}
    with clusters.standalone(
        tmp_path_factory.mktemp("cluster"), [told, {**told, "AWS_ENDPOINT_URL": way.endpoint}]
    ) as made:
        yield made


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def spark_driver(s3_server, python, events, tmp_path_factory):
    conf = [
        "spark.executor.memory=512m",
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{events}",
        "spark.speculation=true",
        "spark.speculation.interval=100ms",
        "spark.speculation.quantile=0.1",
        "spark.speculation.minTaskRuntime=1s",
    ]
    env = {**s3_server.env, "PYSPARK_PYTHON": python}
    with driver(env, tmp_path_factory.mktemp("driver") / "log", conf) as commands:
        yield commands


@pytest.fixture
def lake(s3_server, fresh_postgres_url, monkeypatch):
    """A repository on S3 and PostgreSQL with all three kinds of objects, all old; what a command is told of it."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket, url = s3_server.create_bucket(f"cluster-{next(NUMBERS)}"), fresh_postgres_url()
    made = Lake.create(locate(f"{bucket}/lake", db=url))
    repo = made.create_repository("big", clock_at=START)
    repo.create_branch("scratch", "main")
    for number in range(COMMITTED):
        repo.put("main", f"tables/{number}", b"committed")
    repo.commit("main", "tables")
    for number in range(GARBAGE):
        repo.put("scratch", f"tmp/{number}", b"garbage")
    repo.reset("scratch")
    for number in range(STAGED):
        repo.put("scratch", f"kept/{number}", b"staged")
    repo.set_clock(START + timedelta(days=3))
    assert "postgres:@" in url
    yield repo, [f"{bucket}/lake#big", "--db", url.replace("postgres:@", f"postgres:{PASSWORD}@")], url
    made.close()


def swept(answer):
    code, out, err = answer
    assert code == 0, err
    return json.loads(out)


def all_went_well(repo, url, report):
    """Every object of the garbage went, once, and nothing else."""
    counts = report["swept"]
    assert (counts["asked"], counts["removed"], counts["gone"], counts["failed"]) == (GARBAGE, GARBAGE, 0, 0)
    assert counts["held_again"] == 0
    held = {entry.address for entry in repo.list("main")} | {entry.address for entry in repo.list("scratch")}
    assert len(held) == COMMITTED + STAGED
    assert set(oracle.stored(repo)) == held
    with psycopg.connect(url) as connection:
        removed = connection.execute("SELECT count(*), count(DISTINCT address), min(state), max(state) FROM removals")
        assert removed.fetchone() == (GARBAGE, GARBAGE, "removed", "removed")
        batches = connection.execute(
            "SELECT count(*), sum(asked), sum(removed), min(file) <> '' FROM batches"
        ).fetchone()
    assert batches[0] > 8  # there was something to divide
    assert batches[1:] == (GARBAGE, GARBAGE, True)


def gc_run(place, *words):
    repo, *db = place
    return ["gc", "run", repo, *db, "--confirm", "--max-share", "100%", "--json", *words]


def test_workers_without_desilt_are_sent_it_and_a_run_is_done_by_them(spark_driver, cluster, lake):
    repo, place, url = lake
    report = swept(spark_driver(*gc_run(place, "--master", cluster.master)))
    assert report["place"] == f"on Spark ({cluster.master})"
    all_went_well(repo, url, report)


@pytest.mark.parametrize("word", [b"/plan/", b"?delete"], ids=["mark", "sweep"])
def test_what_a_slow_worker_has_begun_another_does_too_and_all_is_counted_once(spark_driver, cluster, way, lake, word):
    """By speculation: both are at it, and the slow one goes on after the other is done."""
    repo, place, url = lake
    way.hold(word)
    spark_driver.begin(*gc_run(place, "--master", cluster.master))
    assert way.reached.wait(1800)
    report = swept(spark_driver.ended())
    way.go_on()
    all_went_well(repo, url, report)


@pytest.mark.parametrize("word", [b"/plan/", b"?delete"], ids=["mark", "sweep"])
def test_a_worker_is_killed_in_the_middle_and_the_run_ends_as_if_it_had_not_been(
    spark_driver, cluster, way, lake, s3_server, python, word
):
    """The server has done what it asked for last; nobody heard of it."""
    repo, place, url = lake
    way.hold(word)
    spark_driver.begin(*gc_run(place, "--master", cluster.master))
    assert way.reached.wait(1800)
    cluster.kill(1)
    report = swept(spark_driver.ended())
    way.go_on()
    all_went_well(repo, url, report)
    told = {**s3_server.env, "PYSPARK_PYTHON": python, "PYTHONPATH": "", "AWS_ENDPOINT_URL": way.endpoint}
    cluster.start(1, told)


def test_no_password_or_key_is_in_what_spark_writes_down(spark_driver, cluster, events, s3_server, lake):
    _, place, _ = lake
    assert spark_driver("gc", "plan", *place, "--json", "--master", cluster.master)[0] == 0
    written = [path for folder in (events, cluster.folder) for path in folder.rglob("*") if path.is_file()]
    assert any("events" in path.name or "app-" in path.name for path in written)
    for path in written:
        said = path.read_bytes()
        assert PASSWORD.encode() not in said, path
        assert s3_server.secret_key.encode() not in said, path
