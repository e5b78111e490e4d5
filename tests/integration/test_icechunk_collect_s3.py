"""A collection of an Icechunk repository in a bucket, where times are whole seconds and a move is a copy."""

import time

import numpy as np
import pytest

from desilt.errors import Dangling
from desilt.executors.executor import HERE
from desilt.icechunk.history import history
from desilt.jobs.trash import bring_back
from desilt.objects import open_store
from icechunk_collecting import FOLDERS, collected, desilt_on, planned
from icechunk_world import FORMATS, made_in_a_bucket, natives, put_array, zarr


@pytest.fixture(params=FORMATS)
def bucket(request, s3_server, monkeypatch):
    """The place of a repository, and its library's own handle."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = f"collected-{request.param}-{time.time_ns()}"
    return made_in_a_bucket(s3_server, bucket, request.param)


def commit(repo, branch, name, values):
    session = repo.writable_session(branch)
    put_array(zarr.open_group(session.store, mode="a"), name, values)
    return session.commit(name)


def keys(store, folder):
    return {key for batch in store.list(f"{folder}/") for key in batch["key"].to_pylist()}


@pytest.mark.parametrize("action", ["delete", None], ids=["for good", "to the trash"])
def test_what_nobody_reaches_goes_and_from_the_trash_it_comes_back(bucket, tmp_path, action):
    place, repo = bucket
    head = commit(repo, "main", "a", np.arange(8))
    repo.create_branch("lost", head)
    lost = commit(repo, "lost", "b", np.arange(8) + 1)
    repo.delete_branch("lost")
    store = open_store(place)
    there = {folder: keys(store, folder) for folder in FOLDERS}
    time.sleep(2.1)  # until all is older than the second before this one
    with desilt_on(place, records=tmp_path / "records.db", store=store) as repository:
        report = collected(repository, action=action)
        assert (report.action, report.swept.failed) == (action or "trash", 0)
        left = {folder: keys(store, folder) for folder in FOLDERS}
        assert there["snapshots"] - left["snapshots"] == {f"snapshots/{lost}"}
        assert left["chunks"] == {f"chunks/{name}" for name in natives(store, [head])}
        assert {len(there[folder] - left[folder]) for folder in ("manifests", "transactions")} == {1}
        if action is None:
            assert bring_back(repository, HERE, report.run).restored == report.swept.removed
            assert {folder: keys(store, folder) for folder in FOLDERS} == there
    assert history(store).seen.below({head}) == {name.rpartition("/")[2] for name in left["snapshots"]}
    group = zarr.open_group(repo.readonly_session("main").store, mode="r")
    assert group["a"][...].tolist() == list(range(8))


def test_a_chunk_that_is_missing_there_stops_it_too(bucket, tmp_path):
    place, repo = bucket
    head = commit(repo, "main", "a", np.arange(8))
    store = open_store(place)
    lost = min(natives(store, [head]))
    store.delete_many([f"chunks/{lost}"])
    opened = desilt_on(place, records=tmp_path / "records.db", store=store)
    with opened as repository, pytest.raises(Dangling, match=lost):
        planned(repository)
