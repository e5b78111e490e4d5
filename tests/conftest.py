"""Servers and Spark, each started once a session, by the first test that asks."""

import itertools
import random
import tempfile
from math import inf

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from desilt import spark as desilt_spark
from desilt.cli import progress
from desilt.cli.common import run
from desilt.cli.main import desilt
from desilt.testing import servers

NUMBERS = itertools.count()

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no finding


def pytest_configure(config):
    """The same histories every time: what fails fails again. Others with `--hypothesis-seed=random`, or a number."""
    settings.register_profile("same", UNHURRIED, derandomize=config.getoption("--hypothesis-seed") is None)
    settings.load_profile("same")


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
        yield url


@pytest.fixture
def fresh_postgres_url(postgres_url):
    """A function that gives the URL of an empty schema each time it is called."""

    def fresh():
        name = f"lake{next(NUMBERS)}"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-csearch_path%3D{name}"

    return fresh


@pytest.fixture(scope="session")
def spark():
    session = desilt_spark.session("desilt-tests", master="local[2]", **{"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


@pytest.fixture
def cli(capfd, monkeypatch):
    """Run a command; its exit code, output and error line. It gives no sign of life, however long it takes."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", inf)

    def call(*arguments):
        capfd.readouterr()
        code = run(desilt, [str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call
