"""Names tell what a file is, and nothing else; what has another name is nobody's to remove."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.icechunk.format.ids import ROOT, bytes_of, name_of, names_of
from desilt.icechunk.layout import FOREIGN, LAYOUT, kind_of, kinds
from desilt.sstable.varint import Malformed

ID = "EE6Z83PJ29P739G6ZTXG"
KEYS = {
    f"chunks/{ID}": "chunk",
    f"manifests/{ID}": "manifest",
    f"snapshots/{ROOT}": "snapshot",
    f"transactions/{ID}": "transaction",
    "refs/branch.main/ref.json": "ref",
    "refs/tag.a.b/ref.json": "ref",
    "refs/tag.a/ref.json.deleted": "tombstone",
    f"overwritten/repo.30708662441759.{ID}": "backup",
    f"overwritten/config.yaml.30708662441759.{ID}": "backup",
    "repo": "repo",
    "config.yaml": "config",
    **dict.fromkeys(
        [
            f"chunks/{ID}x",
            f"chunks/{ID.lower()}",
            f"chunks/{ID[:-1]}1",  # bits beyond the last byte
            f"chunks/{ID[:-1]}",
            f"chunks/a/{ID}",
            f"Chunks/{ID}",
            f"x/chunks/{ID}",
            f"chunks/{ID}\n",
            f"chunks/{ID[:-2]}I0",
            f"{ID}",
            f"attributes/{ID}",
            "refs/branch.main/ref.json.deleted",
            "refs/branch.a/b/ref.json",
            "repo.bak",
            "config_yaml",
            f"overwritten/{ID}",
        ],
        FOREIGN,
    ),
}


def test_every_key_is_of_one_kind():
    keys = pa.array(list(KEYS))
    assert dict(zip(KEYS, map(kind_of, KEYS), strict=True)) == KEYS
    assert kinds(keys).to_pylist() == list(KEYS.values())
    assert LAYOUT.objects(keys).tolist() == [kind == "chunk" for kind in KEYS.values()]
    assert [LAYOUT.is_object(key) for key in KEYS] == LAYOUT.objects(keys).tolist()
    tables = [kind in ("manifest", "snapshot", "transaction", "backup") for kind in KEYS.values()]
    assert LAYOUT.tables_among(keys).tolist() == [LAYOUT.is_table(key) for key in KEYS] == tables


def test_objects_are_found_by_folder_and_name_too():
    folders, found = pa.array(["chunks/", "manifests/", "chunks/", "chunks/a/"]), pa.array([ID, ID, "x", ID])
    assert LAYOUT.ours(folders.dictionary_encode(), found).tolist() == [True, False, False, False]


def test_no_name_says_when_it_was_made():
    assert LAYOUT.seconds(pa.array([ID, ROOT])).tolist() == [-1, -1]
    assert LAYOUT.named_at(f"chunks/{ID}") is None
    assert not LAYOUT.settled("chunks/", {"chunks": ""})


def test_every_file_of_a_real_repository_is_known(world):
    world.commit(a=np.arange(5))
    world.repo.create_tag("t", world.repo.lookup_branch("main"))
    world.repo.delete_tag("t")
    keys = [key for batch in world.store.list() for key in batch["key"].to_pylist()]
    expected = {"chunk", "manifest", "snapshot", "transaction"}
    expected |= {"ref", "tombstone", "config"} if world.version == 1 else {"repo", "backup"}
    assert expected <= set(map(kind_of, keys)) <= expected | {"backup"}


@given(st.binary(min_size=12, max_size=12))
def test_an_id_and_its_name_are_one_to_one(raw):
    assert bytes_of(name_of(raw)) == raw
    assert kind_of(f"chunks/{name_of(raw)}") == "chunk"


@given(st.lists(st.binary(min_size=12, max_size=12)), st.lists(st.binary(min_size=8, max_size=8)))
def test_names_of_a_column_are_those_of_each(ids, nodes):
    assert names_of(pa.array(ids, pa.binary(12))).to_pylist() == list(map(name_of, ids))
    assert names_of(pa.array(nodes, pa.binary(8))).to_pylist() == list(map(name_of, nodes))


@pytest.mark.parametrize("name", ["", ID.lower(), ID + "0", ID[:-1] + "1", "I" * 20, "../" + ID])
def test_what_is_no_id_has_no_bytes(name):
    with pytest.raises(Malformed):
        bytes_of(name)


def test_the_first_snapshot_has_the_name_that_is_known(world):
    assert ROOT in world.files("snapshots")
