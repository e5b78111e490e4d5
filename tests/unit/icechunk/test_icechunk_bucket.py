"""A repository in a bucket is read as one in a directory; names of refs are stored there as they are."""

import pytest

import icechunk_world
from desilt.icechunk.history import history
from desilt.objects import open_store
from icechunk_world import FORMATS, made_in_a_bucket, natives


@pytest.mark.parametrize("version", FORMATS)
def test_a_repository_in_a_bucket(version, s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = f"icechunk{version}"
    place, repo = made_in_a_bucket(s3_server, bucket, version)
    session = repo.writable_session("main")
    group = icechunk_world.zarr.group(session.store)
    icechunk_world.put_array(group, "a", range(20))
    head = session.commit("first")
    names = ["ü", "a b", "%C3%BC", "x.y"]
    for name in names:
        repo.create_branch(name, head)
        repo.create_tag(name, head)
    store = open_store(place)
    found = history(store)
    assert {one.name: one.head for one in found.seen.branches} == dict.fromkeys([*names, "main"], head)
    assert {one.name: one.target for one in found.seen.tags} == dict.fromkeys(names, head)
    chunks = {key.removeprefix("chunks/") for batch in store.list("chunks/") for key in batch["key"].to_pylist()}
    assert natives(store, found.seen.commits) == chunks
    assert len(chunks) == 10
