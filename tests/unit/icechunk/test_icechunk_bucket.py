"""A repository in a bucket is read as one in a directory; names of refs are stored there as they are."""

import pytest

import icechunk_world
from desilt.icechunk.history import history
from desilt.objects import open_store
from icechunk_world import FORMATS, icechunk, natives


@pytest.mark.parametrize("version", FORMATS)
def test_a_repository_in_a_bucket(version, s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = f"icechunk{version}"
    s3_server.create_bucket(bucket)
    storage = icechunk.s3_storage(
        bucket=bucket,
        prefix="some/where",
        endpoint_url=s3_server.endpoint,
        access_key_id=s3_server.access_key,
        secret_access_key=s3_server.secret_key,
        region="us-east-1",
        allow_http=True,
        force_path_style=True,
    )
    words = {"spec_version": version} if icechunk_world.WRITES_BOTH else {}
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 0
    repo = icechunk.Repository.create(storage, config=config, **words)
    session = repo.writable_session("main")
    group = icechunk_world.zarr.group(session.store)
    icechunk_world.put_array(group, "a", range(20))
    head = session.commit("first")
    names = ["ü", "a b", "%C3%BC", "x.y"]
    for name in names:
        repo.create_branch(name, head)
        repo.create_tag(name, head)
    store = open_store(f"s3://{bucket}/some/where")
    found = history(store)
    assert {one.name: one.head for one in found.seen.branches} == dict.fromkeys([*names, "main"], head)
    assert {one.name: one.target for one in found.seen.tags} == dict.fromkeys(names, head)
    chunks = {key.removeprefix("chunks/") for batch in store.list("chunks/") for key in batch["key"].to_pylist()}
    assert natives(store, found.seen.commits) == chunks
    assert len(chunks) == 10
