"""Servers and Spark, each started once a session by the first test that asks, and a new lake for each that asks."""

import itertools
import os
import random
import signal
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings

import disks
from desilt.cli import progress
from desilt.cli.attempt import run
from desilt.cli.main import desilt
from desilt.executors import session as desilt_spark
from desilt.lake import Lake, schema
from desilt.lake.lake import locate
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.testing import servers
from lakefs_http import KEYS as LAKEFS_KEYS

NUMBERS = itertools.count()
START = datetime(2026, 1, 1, tzinfo=UTC)

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no finding


def pytest_configure(config):
    """The same histories every time: what fails fails again. Others with `--hypothesis-seed=random`, or a number."""
    settings.register_profile("same", UNHURRIED, derandomize=config.getoption("--hypothesis-seed") is None)
    settings.load_profile("same")
    tempfile.tempdir = disks.quick()
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark"))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell tells what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever tests start must hear Ctrl-C


@pytest.fixture(autouse=True)
def _same_chances(request):
    seed = request.config.getoption("--hypothesis-seed")
    random.seed(None if seed == "random" else f"{request.node.nodeid} {seed}")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    with servers.seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url():
    # Not among pytest's own folders: where root runs the tests, each new run closes those to PostgreSQL's user.
    with tempfile.TemporaryDirectory(prefix="desilt-postgres-") as directory, servers.postgres(directory) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for name in ("autovacuum", "fsync", "full_page_writes"):  # of use to what lives longer than a test
                connection.execute(f"ALTER SYSTEM SET {name} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield url


@pytest.fixture
def fresh_postgres_url(postgres_url):
    """A function that gives the URL of an empty database each time it is called; with few tables, it is quick."""
    made = []

    def fresh():
        made.append(f"fresh{next(NUMBERS)}")
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {made[-1]}")
        assert "/postgres?" in postgres_url
        return postgres_url.replace("/postgres?", f"/{made[-1]}?")

    yield fresh
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name in made:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def spark(s3_server):
    """Its workers know the keys of the bucket, and of models of lakeFS servers, from the first on.

    They learn them from whoever starts Spark.
    """
    with desilt_spark.environment({**s3_server.env, **LAKEFS_KEYS}):
        session = desilt_spark.session("desilt-tests", master="local[2]", **{"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


@pytest.fixture
def place():
    """A directory whose name is short."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture
def repo(request, place):
    """A new repository in a new lake, on a manual clock: it begins at the START of the module, if that has one."""
    lake = Lake.create(locate(str(place / "lake")))
    yield lake.create_repository("demo", clock_at=getattr(request.module, "START", START))
    lake.close()


@pytest.fixture
def memory_repo(request, place):
    """The same with its objects in memory, which is quicker."""
    database = open_database(f"sqlite://{place}/memory.db", create=True)
    schema.create(database, storage="")
    lake = Lake(database, open_store(f"memory://{uuid.uuid4().hex}"))
    yield lake.create_repository("demo", clock_at=getattr(request.module, "START", START))
    database.close()


@pytest.fixture
def uri(place, repo):
    """What a command calls that repository."""
    return f"{place}/lake#{repo.name}"


@pytest.fixture
def cli(capfd, monkeypatch):
    """Run a command; its exit code, output and error line. It gives no sign of life, however long it takes."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 1e6)

    def call(*arguments):
        capfd.readouterr()
        code = run(desilt, [str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call
