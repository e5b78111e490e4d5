"""Servers and Spark, each started once a session, by the first test that asks."""

import pytest

from desilt import spark as desilt_spark
from desilt.testing import servers


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    with servers.seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory):
    with servers.postgres(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture(scope="session")
def spark():
    session = desilt_spark.session("desilt-tests", master="local[2]", **{"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
