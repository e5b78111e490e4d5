"""A repository of format 2 that a newer library wrote is read on every Python, as that library said."""

import hashlib
import json
from pathlib import Path

import pytest

from desilt.icechunk.format import manifest, states, transactions
from desilt.icechunk.format.container import AssetKind, fetched
from desilt.icechunk.format.ids import name_of, names_of
from desilt.icechunk.history import history
from desilt.objects import open_store

FIXTURE = Path(__file__).parents[2] / "fixtures" / "icechunk-v2"
TRUTH = json.loads((FIXTURE / "truth.json").read_text())
STORE = open_store(str(FIXTURE / "repo"))


@pytest.fixture(scope="module")
def found():
    return history(STORE)


def reached(found):
    return found.seen.below(found.seen.tips)


def test_refs_and_ancestry(found):
    assert found.format == 2
    assert {one.name: one.head for one in found.seen.branches} == TRUTH["branches"]
    assert {one.name: one.target for one in found.seen.tags} == TRUTH["tags"]
    assert sorted(found.deleted_tags) == TRUTH["deleted_tags"]
    assert reached(found) == TRUTH["snapshots"].keys()
    for name, (parent, at, message, metadata) in TRUTH["snapshots"].items():
        commit = found.seen.commits[name]
        assert (list(commit.parents), commit.created_at.isoformat()) == ([parent] if parent else [], at)
        assert (commit.message, dict(states.fetch(STORE, name).metadata)) == (message, metadata)


def test_manifests_of_both_formats(found):
    files = {name: states.fetch(STORE, name) for name in reached(found)}
    assert {one.format for one in files.values()} == {1, 2}
    listed = {name: [[one.id, one.size, one.references] for one in file.manifests] for name, file in files.items()}
    assert listed == TRUTH["manifests"]


def test_references():
    for head, said in TRUTH["references"].items():
        rows, places = [], []
        for listed in states.fetch(STORE, head).manifests:
            for row in manifest.references(manifest.fetch(STORE, listed), locations=True).to_pylist():
                body = b""
                if row["kind"] == "native":
                    body = STORE.get(f"chunks/{name_of(row['chunk'])}", start=row["offset"], length=row["length"])
                rows.append([name_of(row["node"]), row["index"], row["kind"], hashlib.sha256(body).hexdigest()])
                places += [row["location"]] if row["kind"] == "virtual" else []
        inline = [row[:3] for row in said["chunks"] if row[2] == "inline"]
        assert [row[:3] for row in sorted(rows) if row[2] == "inline"] == inline
        assert [row for row in sorted(rows) if row[2] != "inline"] == [
            row for row in said["chunks"] if row[2] != "inline"
        ]
        assert sorted(places) == said["places"]
    kinds = {row[2] for said in TRUTH["references"].values() for row in said["chunks"]}
    assert kinds == {"native", "inline", "virtual"}


def test_what_is_held_is_what_the_librarys_collector_left(found):
    kept, left = reached(found), TRUTH["left"]
    manifests = {one for name in kept for one in states.fetch(STORE, name).manifests}
    chunks = {
        name for one in manifests for name in names_of(manifest.native_ids(manifest.fetch(STORE, one))).to_pylist()
    }
    assert sorted(kept) == left["snapshots"]
    assert sorted(one.id for one in manifests) == left["manifests"]
    assert sorted(chunks) == left["chunks"]
    assert chunks < {key.name for key in (FIXTURE / "repo" / "chunks").iterdir()}


def test_logs_of_snapshots_that_are_gone_are_needed_by_those_that_took_their_place(found):
    logs = {path.name for path in (FIXTURE / "repo" / "transactions").iterdir()}
    pruned = {name for one in reached(found) for name in found.pruned.get(one, ())}
    assert pruned & logs
    assert sorted((reached(found) | pruned) & logs) == TRUTH["left"]["transactions"]
    for name in logs:
        transactions.check(fetched(STORE, f"transactions/{name}", AssetKind.TRANSACTION), name)
