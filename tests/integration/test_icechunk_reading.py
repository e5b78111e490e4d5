"""From the shell, on a real Icechunk repository: what keeps bytes and why, whether all is sound; and bad input."""

import json
import os
import pickle

import numpy as np
import pytest

from desilt.records import ledger, removals
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import State
from desilt.repository.opening import repository_at
from icechunk_world import FORMATS, World


@pytest.fixture(params=FORMATS)
def world(request, place, monkeypatch):
    """Two branches and a tag; some chunks inline, some virtual, some of a snapshot that no ref reaches."""
    monkeypatch.setenv("DESILT_DB", f"sqlite://{place}/records.db")
    made = World(place, request.param)
    first = made.commit("first", a=np.arange(16.0).reshape(4, 4), b=np.arange(4), small=np.ones(1, "i1"))
    made.repo.create_branch("dev", first)
    made.commit("second", b=np.arange(1, 5))
    made.lost = made.commit("lost", branch="dev", c=np.arange(6))
    made.repo.create_tag("v1", first)
    made.repo.reset_branch("dev", first)
    made.virtual("v", 5)
    made.first, made.uri = first, f"icechunk+file://{made.root}"
    return made


def lines(cli, *arguments):
    code, out, err = cli(*arguments, "--json")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def refused(cli, *arguments):
    """What one line says."""
    code, out, err = cli(*arguments)
    assert (bool(code), out, err.count("\n")) == (True, "", 1)
    return err


# ---- what is there


def test_pins_say_what_each_ref_and_hold_keeps(cli, world):
    def alone():
        (found,) = lines(cli, "pins", world.uri)
        return {one["name"].partition(" (")[0]: one["alone"]["objects"] for one in found["pins"]}

    lists = {"branch dev": 0, "branch main": 2, "tag v1": 0}
    if world.version == 1:
        assert alone() == lists
    held = lines(cli, "hold", "add", world.uri, "--ref", world.lost, "--reason", "evidence")[0]["id"]
    assert alone() == {**lists, f"hold {held}": 3}


def test_a_chunk_is_explained_by_its_path_and_by_its_address(cli, world):
    (one,) = lines(cli, "explain", world.uri, "b/c/0", "--ref", "main")
    assert one["verdict"] == "committed"
    assert [commit["message"] for commit in one["commits"]] == ["second", "virtual v"]
    for wanted in (one["address"], one["uri"], f"icechunk+{one['uri']}"):
        (again,) = lines(cli, "explain", world.uri, wanted)
        assert (again["address"], again["paths"]) == (one["address"], ["b/c/0"])
    every = lines(cli, "explain", world.uri, "b/c/0")
    assert {tuple(one["places"]) for one in every} == {("dev", "tag v1"), ("main",)}
    assert len(lines(cli, "explain", world.uri, "a")) == 4
    assert len(lines(cli, "explain", world.uri, "a", "--ref", "v1")) == 4


def test_what_is_no_object_of_the_repository_is_explained_as_that(cli, world):
    (one,) = lines(cli, "explain", world.uri, "v/c/3")
    assert (one["verdict"], one["exists"]) == ("outside", None)
    assert "elsewhere/data" in one["address"]
    (one,) = lines(cli, "explain", world.uri, "small/c/0", "--ref", "main")
    assert one["address"].startswith("manifests/")
    having = [commit["message"] for commit in one["commits"] if commit["reachable"]]
    assert having == ["first", "second", "virtual v"]


def test_a_snapshot_and_its_log_are_explained_by_the_commit_that_they_are_of(cli, world):
    for folder in ("snapshots", "transactions"):
        (one,) = lines(cli, "explain", world.uri, f"{folder}/{world.first}")
        assert [commit["id"] for commit in one["commits"]] == [world.first]
        (one,) = lines(cli, "explain", world.uri, f"{folder}/{world.lost}")
        assert (one["verdict"], one["refs"]) == ("committed" if world.version == 2 else "young", [])


def test_what_is_nowhere_is_said_to_be(cli, world):
    for wanted in ("nowhere/c/0", "a/c/9/9", f"chunks/{world.first}", "a/c", ""):
        assert "there is no object" in refused(cli, "explain", world.uri, wanted)
    assert "there is no ref" in refused(cli, "explain", world.uri, "a", "--ref", "nowhere")
    assert "desilt lake" not in refused(cli, "explain", world.uri, "nowhere", "--ref", "main")


def test_figures_have_the_names_of_arrays(cli, world):
    code, out, err = cli("stats", world.uri)
    assert code == 0, err
    assert "  a/ " in out
    assert "  b/ " in out
    (found,) = lines(cli, "stats", world.uri)
    assert found["folders"].keys() == ({"a/", "b/", "c/"} if world.version == 2 else {"a/", "b/"})
    assert cli("runs", "list", world.uri)[0] == 0


def test_holds_are_made_listed_and_lifted(cli, world):
    chunk = f"chunks/{min(world.files('chunks'))}"
    made = [
        lines(cli, "hold", "add", world.uri, *words, "--reason", "x")[0]
        for words in (("--ref", "dev"), ("--ref", world.lost), ("--address", chunk))
    ]
    assert [one["value"] for one in made] == [world.first, world.lost, chunk]
    assert [one["id"] for one in lines(cli, "hold", "ls", world.uri)] == [one["id"] for one in made]
    for one in made:
        lines(cli, "hold", "rm", world.uri, one["id"])
    assert lines(cli, "hold", "ls", world.uri) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prefix", "a"), "hold the branch, tag or snapshot with --ref instead"),
        (("--ref", "nowhere"), "write a branch, a tag or the id of a snapshot"),
        (("--ref", "1CECHNKREP0F1RSTCMT1"), "write a branch, a tag or the id of a snapshot"),
        (("--address", "chunks/1CECHNKREP0F1RSTCMT0"), "there is no object"),
        (("--address", "elsewhere"), "not the address of an object here; `desilt explain` shows that of a path"),
    ],
)
def test_what_a_hold_cannot_keep_is_refused(cli, world, words, said):
    assert said in refused(cli, "hold", "add", world.uri, *words, "--reason", "x")
    assert lines(cli, "hold", "ls", world.uri) == []


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("gc", "plan"), "desilt collect"),
        (("gc", "run"), "desilt collect"),
        (("lifecycle", "plan"), "desilt expire"),
        (("retention", "plan"), "desilt expire"),
        (("harddelete", "status"), "desilt collect"),
        (("lake", "branches"), "its own library"),
    ],
)
def test_what_cannot_be_done_there_is_refused_in_one_line_that_says_what_can(cli, world, command, instead):
    assert instead in refused(cli, *command, world.uri)


# ---- whether it is sound


def check(cli, world, *words):
    code, out, err = cli("fsck", world.uri, *words, "--json")
    assert not err
    found = json.loads(out)
    assert code == (not found["sound"])
    return found


def test_a_sound_repository(cli, world):
    for words in ((), ("--deep",)):
        found = check(cli, world, *words)
        assert found["sound"]
        totals = found["totals"]
        assert (totals["outside"], totals["inside"], totals["objects"]) == (5, 1, len(world.files("chunks")))
        loose = {} if world.version == 2 else {"unreferenced-object": 3, "unreferenced-table": 3}
        assert found["counts"] == (loose or {"dangling-commit": 1})
    (world.root / "chunks" / "notes.txt").write_text("mine")
    (world.root / "README").write_text("mine")
    counts = check(cli, world)["counts"]
    assert counts["foreign-file"] == 2


def test_a_chunk_that_is_lost_is_told_from_one_that_a_run_removed(cli, world):
    (one,) = lines(cli, "explain", world.uri, "b/c/0", "--ref", "v1")
    (world.root / one["address"]).unlink()
    found = check(cli, world)
    assert found["counts"]["missing-object"] == 1
    (lost,) = (one for one in found["findings"] if one["kind"] == "missing-object")
    assert (lost["about"]["path"], lost["about"]["address"]) == ("b/c/0", one["address"])
    with repository_at(world.uri) as repository, repository.records.write() as tx:
        run = "62000000000000-00000001"
        now = repository.clock()
        ledger.begin(tx, repository.uid, RunRow(run, "collect", "a policy", "delete", now, now, RunState.SWEPT, 1, 1))
        stone = removals.Tombstone(one["address"], run, "a rule", now, state=State.REMOVED)
        removals.condemn(tx, repository.uid, [stone])
    found = check(cli, world)
    assert found["sound"]
    assert found["counts"]["removed"] == 1


def test_a_chunk_that_is_shorter_than_its_reference_is_found(cli, world):
    (one,) = lines(cli, "explain", world.uri, "b/c/0", "--ref", "v1")
    (world.root / one["address"]).write_bytes(b"x")
    assert check(cli, world)["counts"]["wrong-size"] == 1


@pytest.mark.parametrize("folder", ["snapshots", "manifests", "transactions"])
@pytest.mark.parametrize("how", ["lost", "cut off", "of a later version", "of another kind", "another's"])
def test_a_file_that_cannot_be_relied_on_is_named_and_nothing_is_called_garbage(cli, world, folder, how):
    name = world.first if folder != "manifests" else world.manifests(world.first)[0][0]
    path = world.root / folder / name
    whole = path.read_bytes()
    others = [one for one in path.parent.iterdir() if one != path]
    bad = {
        "cut off": whole[: len(whole) // 2],
        "of a later version": whole[:36] + b"\x07" + whole[37:],
        "of another kind": whole[:37] + b"\x05" + whole[38:],
        "another's": others[0].read_bytes(),
    }
    path.unlink() if how == "lost" else path.write_bytes(bad[how])
    found = check(cli, world)
    kind = "missing-table" if how == "lost" else "corrupt-table"
    assert found["counts"][kind] == 1
    blamed = [one["about"]["table"] for one in found["findings"] if one["severity"] == "error"]
    assert blamed == [f"{folder}/{name}"]
    assert "unreferenced-object" not in found["counts"]
    assert found["left_out"]
    if folder != "transactions":  # which nothing else reads
        err = refused(cli, "pins", world.uri)
        assert f"{folder}/{name}" in err


# ---- opening


def test_one_place_is_one_repository_however_it_is_written(world, tmp_path):
    (tmp_path / "link").symlink_to(world.root)
    names = [world.uri, f"{world.uri}/", f"icechunk+file://{world.root}/../repo", f"icechunk+file://{tmp_path}/link"]
    names.append(world.uri.replace("icechunk+file", "ICECHUNK+FILE"))
    uids = set()
    for name in names:
        with repository_at(name) as found:
            uids.add(found.uid)
    assert len(uids) == 1


def test_an_executor_opens_it_from_a_handle(world):
    with repository_at(world.uri) as repository:
        sent = pickle.dumps(repository.handle)
        there = pickle.loads(sent)()
        assert (there.uid, there.secret) == (repository.uid, repository.secret)
        there.records.close()
        assert repository.secret.encode() not in sent


def test_records_of_another_database_are_refused_once_there_are_some(cli, world, place):
    lines(cli, "hold", "add", world.uri, "--ref", "dev", "--reason", "x")
    other = f"sqlite://{place}/other.db"
    order = ("hold", "add", world.uri, "--ref", "dev", "--reason", "x", "--db", other)
    assert "--db" in refused(cli, *order)
    assert "wrote beside the objects" in refused(cli, "lakefs", "adopt", world.uri, "--db", other, "--confirm")
    for path in (world.root / "_desilt").rglob("*"):
        os.utime(path, (path.stat().st_mtime - 2 * 3600,) * 2)  # nobody has been at work for so long
    assert "--confirm" in refused(cli, "lakefs", "adopt", world.uri, "--db", other)
    lines(cli, "lakefs", "adopt", world.uri, "--db", other, "--confirm")
    lines(cli, *order)


@pytest.mark.parametrize(
    ("place_of_it", "said"),
    [
        ("nowhere", "is not a directory"),
        ("empty", "there is no Icechunk repository"),
        ("notes", "there is no Icechunk repository"),
        ("lost", "has no refs any more"),
        ("damaged", "repo cannot be relied on"),
        ("later", "upgrade desilt"),
        ("overwritten", "the file is missing"),
    ],
)
def test_where_there_is_nothing_or_nothing_that_can_be_read_one_line_says_which(cli, tmp_path, place_of_it, said):
    root = tmp_path / place_of_it
    if place_of_it != "nowhere":
        root.mkdir()
    if place_of_it == "notes":
        (root / "notes").mkdir()
        (root / "notes" / "chunks").write_text("mine")
    if place_of_it in ("lost", "overwritten"):
        (root / "snapshots").mkdir()
        (root / "snapshots" / "1CECHNKREP0F1RSTCMT0").write_bytes(b"x")
    if place_of_it == "overwritten":
        (root / "overwritten").mkdir()
        (root / "overwritten" / "repo.1.1CECHNKREP0F1RSTCMT0").write_bytes(b"x")
        (root / "refs" / "branch.main").mkdir(parents=True)
        (root / "refs" / "branch.main" / "ref.json").write_text(json.dumps({"snapshot": "1CECHNKREP0F1RSTCMT0"}))
    if place_of_it in ("damaged", "later"):
        head = "ICE🧊CHUNK".encode() + b"x" * 24
        (root / "repo").write_bytes(head + bytes([3 if place_of_it == "later" else 2, 6, 1]) + b"not zstd")
    assert said in refused(cli, "pins", f"icechunk+file://{root}", "--db", f"sqlite://{tmp_path}/records.db")


@pytest.mark.parametrize(
    "uri",
    [
        "icechunk+file:/x",
        "icechunk+file://host/x",
        "icechunk+s3://",
        "icechunk://x",
        "icechunk+ftp://x",
        "icechunk+s3://b#x",
    ],
)
def test_a_uri_that_names_no_place_is_refused_in_one_line(cli, uri):
    refused(cli, "pins", uri)
