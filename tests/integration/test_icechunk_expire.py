"""History of an Icechunk repository made shorter from the shell; what that frees its own collector then deletes."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from desilt.repository.gate import Safety
from desilt.repository.opening import repository_at
from icechunk_world import FORMATS, World, icechunk, made_in_a_bucket, put_array, zarr


@pytest.fixture(params=FORMATS)
def world(request, place, monkeypatch):
    """Eight commits, a tag on the fourth, a branch on the fifth; ``cut`` is between the sixth and the seventh."""
    monkeypatch.setenv("DESILT_DB", f"sqlite://{place}/records.db")
    made = World(place, request.param)
    made.uri, made.ids = f"icechunk+file://{made.root}", []
    for at in range(8):
        if at == 6:
            time.sleep(0.01)
            made.cut = datetime.now(UTC).isoformat()
            time.sleep(0.01)
        made.ids.append(made.commit(f"commit {at}", a=np.arange(at, at + 4 + at)))
        if at == 3:
            made.repo.create_tag("v1", made.ids[-1])
        if at == 4:
            made.repo.create_branch("dev", made.ids[-1])
    return made


def answer(cli, *arguments):
    code, out, err = cli(*arguments, "--json")
    assert code == 0, err
    return json.loads(out.splitlines()[-1])


def test_a_plan_says_what_goes_and_what_a_collection_would_free_and_changes_nothing(cli, world):
    before = {path: path.read_bytes() for path in world.root.rglob("*") if path.is_file()}
    code, out, err = cli("expire", "plan", world.uri, "--older-than", world.cut)
    assert code == 0, err
    assert out.splitlines()[0].startswith("Safety: grace: nothing but age protects")
    assert "A collection afterwards would free" in out
    for path, body in before.items():
        assert path.read_bytes() == body
    page = re.search(r"file://(\S*report\.html)", out)[1]
    text = Path(page).read_text()
    assert f"mode v{world.version}" in text
    assert "Safety: grace" in text
    for word in ("commit 7", "(main)", "would free"):
        assert word.strip("()") in text


@pytest.mark.parametrize("mode", ["its own", "design"])
def test_what_it_says_it_would_free_its_own_collector_deletes(cli, world, mode):
    words = () if mode == "its own" else ("--mode", mode)
    told = answer(cli, "expire", "plan", world.uri, "--older-than", world.cut, *words)
    freed = told["frees"]["total"]
    assert freed["objects"] > 0
    done = answer(cli, "expire", "run", world.uri, "--older-than", world.cut, "--confirm", "--max-share", "90%", *words)
    assert done["frees"]["total"] == freed
    world.reopen()
    gone = world.repo.garbage_collect(datetime.now(UTC) + timedelta(days=1))
    assert (gone.chunks_deleted, gone.snapshots_deleted) == (freed["objects"], 4 if mode == "its own" else 1)
    for branch, at in (("main", 7), ("dev", 4)):
        found = zarr.open_group(world.repo.readonly_session(branch).store, mode="r")["a"][:]
        assert found.tolist() == np.arange(at, at + 4 + at).tolist()
    assert answer(cli, "fsck", world.uri)["sound"]
    again = answer(cli, "expire", "run", world.uri, "--older-than", world.cut, "--confirm", *words)
    assert again["history"]["edited"] == 0


def test_a_held_snapshot_keeps_what_it_has_from_being_counted_as_freed(cli, world):
    def freed():
        told = answer(cli, "expire", "plan", world.uri, "--older-than", world.cut)
        return told["frees"]["total"]["objects"]

    before = freed()
    cli("hold", "add", world.uri, "--ref", world.ids[5], "--reason", "evidence")
    assert freed() < before


def test_a_mode_of_another_format_is_refused(cli, world):
    other = "v2" if world.version == 1 else "v1"
    code, out, err = cli("expire", "plan", world.uri, "--older-than", world.cut, "--mode", other)
    assert (bool(code), out, err.count("\n")) == (True, "", 1)
    assert other in err


@pytest.mark.parametrize("version", FORMATS)
def test_in_a_bucket_history_is_edited_by_one_conditional_write_where_the_format_has_one(
    cli, version, s3_server, monkeypatch, tmp_path
):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DESILT_DB", f"sqlite://{tmp_path}/records.db")
    bucket = f"expired{version}"
    _, repo = made_in_a_bucket(s3_server, bucket, version)
    for at in range(6):
        if at == 4:
            time.sleep(0.01)
            cut = datetime.now(UTC).isoformat()
            time.sleep(0.01)
        session = repo.writable_session("main")
        put_array(zarr.open_group(session.store, mode="a"), "a", np.arange(9.0) + at)
        session.commit(f"commit {at}")
    uri = f"icechunk+s3://{bucket}/some/where"
    with repository_at(uri) as found:
        assert found.gate.safety is (Safety.CONDITIONAL if version == 2 else Safety.GRACE)
    assert answer(cli, "pins", uri)["total"]["objects"] > 0
    told = answer(cli, "expire", "run", uri, "--older-than", cut, "--confirm", "--max-share", "90%")
    assert told["safety"] == ("conditional" if version == 2 else "grace")
    repo = icechunk.Repository.open(repo.storage)
    assert [one.message for one in repo.ancestry(branch="main")] == [
        "commit 5",
        "commit 4",
        "Repository initialized",
    ]
    assert answer(cli, "fsck", uri, "--deep")["sound"]
