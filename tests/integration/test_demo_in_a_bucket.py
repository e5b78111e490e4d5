"""The story of the demo in a bucket: its objects are as old as the story says, and everything can be tried on them."""

import json
import re
import uuid
from datetime import UTC, datetime

import pytest

from desilt.executors import by_size
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.objects import open_store

GARBAGE, STORED = 14, 34


@pytest.fixture(scope="module")
def bucket(s3_server):
    return s3_server.create_bucket("story")


@pytest.fixture
def kept(cli, bucket, s3_server, monkeypatch, tmp_path):
    """What the repository of a demo is called that was kept there."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DESILT_DB", f"sqlite://{tmp_path}/demo.db")
    where = f"{bucket}/{uuid.uuid4().hex}"
    code, out, err = cli("demo", "--no-collect", "--keep", where)
    assert (code, err) == (0, "")
    assert f"{GARBAGE} of them" in out
    assert f"desilt lake log {where}#demo --all --graph" in out
    return f"{where}#demo"


def test_its_garbage_is_found_and_goes(cli, kept):
    report = json.loads(cli("gc", "plan", kept, "--json")[1])
    assert (report["removed"]["objects"], report["kept"]["objects"]) == (GARBAGE, STORED - GARBAGE)
    code, out, _ = cli("sweep", kept, report["run"], *report["passes"].split())
    assert code == 0
    assert f"Done: {GARBAGE} objects of 1.7 MB removed" in out
    assert cli("fsck", kept)[0] == 0


def test_there_is_a_way_back(cli, kept):
    offer = re.search(r"desilt (sweep .*)", cli("gc", "plan", kept, "--to", "trash")[1])[1]
    assert cli(*offer.split())[0] == 0
    assert cli("restore", kept, "last")[1].startswith(f"{GARBAGE} objects of 1.7 MB restored")
    assert cli("fsck", kept)[0] == 0


def test_workers_see_the_same_dates(cli, kept, monkeypatch):
    monkeypatch.setattr(by_size, "IN_ONE_PROCESS", -1)
    monkeypatch.setattr(by_size, "cores_here", lambda: 2)
    report = json.loads(cli("gc", "plan", kept, "--json")[1])
    assert (report["removed"]["objects"], report["place"]) == (GARBAGE, "in 2 processes")


def test_it_is_not_built_among_somebodys_objects(cli, kept):
    code, _, err = cli("demo", "--keep", kept.removesuffix("#demo"))
    assert code == 1
    assert "give --keep an empty bucket or prefix" in err
    assert cli("lake", "ls", kept, "main")[0] == 0


def test_what_has_no_date_of_its_own_stops_everything(cli, kept):
    repo = Lake.open(locate(kept)).repository("demo")
    open_store(kept.removesuffix("#demo")).put(f"{repo.prefix}branches/x/y/z", [b"stray"])
    code, _, err = cli("gc", "plan", kept)
    assert code == 1
    assert "has no date of its own" in err


def test_whoever_opens_it_by_its_uri_sees_the_dates_of_the_story(kept):
    repo = Lake.open(locate(kept)).repository("demo")
    elsewhere = open_store(repo.store.uri)
    dates = [date for batch in elsewhere.list(repo.prefix + "branches/") for date in batch["modified_at"].to_pylist()]
    assert (len(dates), max(dates) < datetime(2026, 3, 1, tzinfo=UTC)) == (STORED, True)


def test_what_lies_in_the_lake_is_not_taken_for_what_lies_elsewhere(cli, kept):
    repo = Lake.open(locate(kept)).repository("demo")
    inside = repo.stat("main", next(iter(repo.list("main"))).path).address
    said = cli("lake", "stage", kept, "main", "x", f"{repo.uri}{inside}", "--size", "1", "--checksum", "0" * 32)
    assert said[0] == 2
    assert "is inside the lake" in said[2]
