"""Runs by Spark Connect: a real server in a process of its own, whose workers are sent desilt."""

import json
import subprocess
import sys

import pytest

from bare_python import bare_python
from desilt.testing import clusters
from driver import driver
from old_garbage import COMMITTED, GARBAGE, PASSWORD, STAGED, old_garbage

API = """
import json, os, sys
import desilt.tables
from desilt.executors.connect import connect

spark = connect(sys.argv[1])
with desilt.open(sys.argv[2], db=sys.argv[3], spark=spark) as repo:
    rows = repo.gc.plan().removals()
    told = [type(rows).__module__, rows.count(), sorted(rows.columns), repo.planned().report.place]
desilt.tables.register(spark)
plain = sys.argv[3].replace(":" + sys.argv[4], "")
read = spark.read.format("desilt").option("repository", sys.argv[2]).option("db", plain)
staged = read.option("table", "staged").load().count()
print(json.dumps([*told, read.option("table", "entries").load().count(), staged]))
"""


@pytest.fixture(scope="module")
def server(s3_server, tmp_path_factory):
    python = bare_python(tmp_path_factory.mktemp("python"))
    told = {**s3_server.env, "PYSPARK_PYTHON": python, "PYTHONPATH": ""}
    with clusters.connect_server(tmp_path_factory.mktemp("connect"), told) as url:
        yield url


@pytest.fixture
def lake(s3_server, fresh_postgres_url, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    with old_garbage(s3_server.create_bucket("by-connect"), fresh_postgres_url()) as made:
        yield made


def test_a_run_is_done_by_a_server_and_its_rows_are_a_frame(server, lake, s3_server, tmp_path):
    words = [sys.executable, "-c", API, server, lake.words[0], lake.words[2], PASSWORD]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    module, rows, columns, place, entries, staged = json.loads(done.stdout)
    assert (entries, staged) == (COMMITTED, STAGED)
    assert module.startswith("pyspark.sql.connect")
    assert (rows, "address" in columns) == (GARBAGE, True)
    assert place == "on Spark (local[2], by Spark Connect)"
    with driver(s3_server.env, tmp_path / "log") as commands:
        report = lake.went(commands(*lake.gc_run("--remote", server)))
        assert report["place"] == place
        code, out, err = commands("gc", "plan", *lake.words, "--remote", server, "--master", "local[1]")
        assert (code, out) == (2, "")
        assert "leave one out" in err


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("sc://127.0.0.1:1", 1, "no Spark Connect server answers at 127.0.0.1:1"),
        (f"sc://127.0.0.1:1/;token={PASSWORD}", 1, "no Spark Connect server answers at 127.0.0.1:1"),
        ("spark://127.0.0.1:1", 2, "write --remote so"),
        ("sc://host:port", 2, "write --remote so"),
    ],
)
def test_a_server_that_is_none_is_told_in_a_line(cli, uri, url, code, said):
    answered, out, err = cli("gc", "plan", uri, "--remote", url)
    assert (answered, out) == (code, "")
    assert said in err
    assert err.count("\n") <= 3
    assert PASSWORD not in err
