"""Writes tests/fixtures/icechunk-v2 anew: a repository of format 2, and what the library that made it says of it.

Run by hand where the library writes both formats: ``python tests/icechunk_fixture.py``, with ``src`` to import from.
"""

import hashlib
import json
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from icechunk_world import World, icechunk, make_old, zarr

FIXTURE = Path(__file__).parent / "fixtures" / "icechunk-v2"
ELSEWHERE = "s3://elsewhere/"


def main():
    shutil.rmtree(FIXTURE / "repo", ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        world = World.__new__(World)
        world.place, world.version = Path(place), 2
        config = icechunk.RepositoryConfig.default()
        config.inline_chunk_threshold_bytes = 16
        container = icechunk.VirtualChunkContainer(ELSEWHERE, icechunk.s3_store(region="us-east-1"))
        config.set_virtual_chunk_container(container)
        settings = icechunk.ManifestVirtualChunkLocationCompressionConfig(10)
        config.manifest = icechunk.ManifestConfig(virtual_chunk_location_compression=settings)
        storage = icechunk.local_filesystem_storage(str(world.root))
        world.repo = icechunk.Repository.create(storage, config=config, spec_version=1)
        world.repo.save_config()
        live(world)
        shutil.copytree(world.root, FIXTURE / "repo")
        said = truth(world)
    (FIXTURE / "truth.json").write_text(json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def live(world):
    """A life: of format 1 first, then upgraded; branches, tags, a reset, an expiration."""
    first = world.commit(
        "first", a=[[1, 2, 3], [4, 5, 6]], small=np.ones(1, "i1"), metadata={"n": 1, "deep": [{"x": None}, "ü"]}
    )
    world.repo.create_branch("dev", first)
    world.commit("second", a=[[1, 2, 3], [4, 5, 7]])
    world.upgrade()
    world.commit("third", b=[1.5, 2.5, 3.5])
    world.repo.create_tag("gone", first)
    world.repo.delete_tag("gone")
    lost = world.commit("lost", b=[9.0])
    world.repo.reset_branch("main", world.ancestry(lost)[1][0])
    last = world.commit("on dev", branch="dev", c=[7])
    world.repo.create_tag("größe", last)
    world.repo.expire_snapshots(next(world.repo.ancestry(branch="dev")).written_at)
    session = world.repo.writable_session("main")
    group = zarr.open_group(session.store, mode="a")
    group.create_array("v", shape=(20,), chunks=(1,), dtype="i4", compressors=None)
    for at in range(20):
        session.store.set_virtual_ref(f"v/c/{at}", f"{ELSEWHERE}data/of/some/file{at % 3}.nc", offset=4 * at, length=4)
    session.commit("virtual")


def truth(world):
    """What the library says, and what its collector leaves."""
    branches, tags = world.heads()
    lines = {head: world.ancestry(head) for head in {*branches.values(), *tags.values()}}
    commits = {
        name: (parent, at.isoformat(), message, data)
        for line in lines.values()
        for name, parent, at, message, data in line
    }
    chunks = {}
    for head in lines:
        found, places = world.chunks(head)
        rows = [(node, index, kind, hashlib.sha256(body).hexdigest()) for (node, index), (kind, body) in found.items()]
        chunks[head] = {"chunks": sorted(rows), "places": places}
    said = {
        "library": icechunk.__version__,
        "branches": branches,
        "tags": tags,
        "deleted_tags": world.repo.inspect_repo_info()["deleted_tags"],
        "snapshots": commits,
        "manifests": {name: world.manifests(name) for name in commits},
        "references": chunks,
    }
    make_old(world.root)
    world.repo.garbage_collect(datetime.now(UTC))
    folders = ("snapshots", "manifests", "transactions", "chunks")
    return {**said, "left": {folder: sorted(world.files(folder)) for folder in folders}}


if __name__ == "__main__":
    main()
