"""Runs on a real cluster: a master and two workers, a bucket on S3, a database in PostgreSQL.

Workers have all that desilt needs, and not desilt itself. Each reaches the bucket by a way of its own on which requests
can be held up, so that one of them is killed in the middle of what it does.
"""

import itertools

import pytest

from bare_python import bare_python
from desilt.testing import clusters
from driver import driver
from held_up import held_up
from old_garbage import PASSWORD, old_garbage
from patience import FOR_EVER

NUMBERS = itertools.count()
MARK, SWEEP = b"/plan/", b"?delete"  # what is in a request when that is under way


@pytest.fixture(scope="module")
def ways(s3_server):
    with held_up(s3_server.endpoint) as first, held_up(s3_server.endpoint) as second:
        yield first, second


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return bare_python(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def told(s3_server, ways, python):
    """What each of the workers is told."""
    both = {**s3_server.env, "PYSPARK_PYTHON": python, "PYTHONPATH": ""}
    return [{**both, "AWS_ENDPOINT_URL": way.endpoint} for way in ways]


@pytest.fixture(scope="module")
def cluster(told, tmp_path_factory):
    with clusters.standalone(tmp_path_factory.mktemp("cluster"), told) as made:
        yield made


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def commands(s3_server, python, events, tmp_path_factory):
    """One session for all of them; what is slow is begun by another worker, too."""
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
    with driver(env, tmp_path_factory.mktemp("driver") / "log", conf) as made:
        yield made


@pytest.fixture
def lake(s3_server, fresh_postgres_url, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    with old_garbage(s3_server.create_bucket(f"cluster-{next(NUMBERS)}"), fresh_postgres_url()) as made:
        yield made


def test_workers_without_desilt_are_sent_it_and_a_run_is_done_by_them(commands, cluster, lake):
    report = lake.went(commands(*lake.gc_run("--master", cluster.master)))
    assert report["place"] == f"on Spark ({cluster.master})"


def begin(commands, cluster, lake, ways, word):
    """A run whose second worker stands still at a request with that word; the first waits for it, and then goes on."""
    for way in ways:
        way.hold(word)
    commands.begin(*lake.gc_run("--master", cluster.master))
    assert ways[1].reached.wait(FOR_EVER)
    ways[0].go_on()


@pytest.mark.parametrize("word", [MARK, SWEEP], ids=["mark", "sweep"])
def test_what_a_slow_worker_has_begun_another_does_too_and_all_is_counted_once(commands, cluster, ways, lake, word):
    """Both are at it, and the slow one goes on after the other is done."""
    begin(commands, cluster, lake, ways, word)
    answer = commands.ended()
    ways[1].go_on()
    lake.went(answer)


@pytest.mark.parametrize("word", [MARK, SWEEP], ids=["mark", "sweep"])
def test_a_worker_is_killed_in_the_middle_and_the_run_ends_as_if_it_had_not_been(
    commands, cluster, told, ways, lake, word
):
    """The server has done what it asked for last, and nobody heard of it."""
    begin(commands, cluster, lake, ways, word)
    cluster.kill(1)
    answer = commands.ended()
    ways[1].go_on()
    lake.went(answer)
    cluster.start(1, told[1])


def test_no_password_or_key_is_in_what_spark_writes_down(commands, cluster, events, s3_server, lake):
    assert commands("gc", "plan", *lake.words, "--json", "--master", cluster.master)[0] == 0
    written = [path for folder in (events, cluster.folder) for path in folder.rglob("*") if path.is_file()]
    assert any("app-" in str(path.relative_to(events)) for path in written if path.is_relative_to(events))
    for path in written:
        said = path.read_bytes()
        assert PASSWORD.encode() not in said, path
        assert s3_server.secret_key.encode() not in said, path
