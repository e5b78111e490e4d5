"""Icechunk repositories in a directory, made and asked by its own library; tests that need it are skipped without."""

import asyncio
import json
import logging
import os
from pathlib import Path

import numpy as np
import pytest

from desilt.icechunk.format import manifest, states
from desilt.icechunk.format.ids import name_of, names_of
from desilt.objects import open_store

icechunk = pytest.importorskip("icechunk", reason="desilt[icechunk] is not installed: nothing of Icechunk is tested")
zarr = pytest.importorskip("zarr", reason="desilt[icechunk] is not installed: nothing of Icechunk is tested")
default_buffer_prototype = zarr.core.buffer.default_buffer_prototype

WHERE_BOTH = "this library writes format 1 alone; the one that Python 3.12 gets writes both"
WRITES_BOTH = int(icechunk.__version__.split(".")[0]) >= 2
FORMATS = (1, 2) if WRITES_BOTH else (1,)
INLINE_BELOW = 16  # bytes

icechunk.set_logs_filter("error")
logging.getLogger("icechunk").setLevel(logging.ERROR)


def made_in_a_bucket(s3_server, bucket, version):
    """A repository in a new bucket, every chunk an object of its own: where it is, and its library's own handle."""
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
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 0
    words = {"spec_version": version} if WRITES_BOTH else {}
    return f"s3://{bucket}/some/where", icechunk.Repository.create(storage, config=config, **words)


class World:
    """One repository; ``version`` is its format."""

    def __init__(self, place, version, *, compress_locations=0):
        self.place, self.version = Path(place), version
        self.outside = f"file://{place}/elsewhere/"
        config = icechunk.RepositoryConfig.default()
        config.inline_chunk_threshold_bytes = INLINE_BELOW
        container = icechunk.local_filesystem_store(str(self.place / "elsewhere"))
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(self.outside, container))
        if compress_locations:
            settings = icechunk.ManifestVirtualChunkLocationCompressionConfig(compress_locations)
            config.manifest = icechunk.ManifestConfig(virtual_chunk_location_compression=settings)
        words = {"spec_version": version} if WRITES_BOTH else {}
        self.repo = icechunk.Repository.create(self._storage, config=config, **words)
        self.repo.save_config()

    @property
    def root(self):
        return self.place / "repo"

    @property
    def _storage(self):
        return icechunk.local_filesystem_storage(str(self.root))

    @property
    def store(self):
        return open_store(str(self.root))

    def reopen(self):
        self.repo = icechunk.Repository.open(self._storage)

    def upgrade(self):
        icechunk.upgrade_icechunk_repository(self.repo, dry_run=False, delete_unused_v1_files=False)
        self.reopen()

    def commit(self, message="", *, branch="main", metadata=None, **arrays):
        """Arrays by name, whole; each in chunks of two along each axis."""
        session = self.repo.writable_session(branch)
        group = zarr.open_group(session.store, mode="a")
        for name, values in arrays.items():
            put_array(group, name, values)
        return session.commit(message or f"commit of {', '.join(arrays)}", metadata=metadata)

    def virtual(self, name, count, *, files=3, branch="main"):
        """An array whose chunks are parts of files elsewhere."""
        session = self.repo.writable_session(branch)
        group = zarr.open_group(session.store, mode="a")
        group.create_array(name, shape=(count,), chunks=(1,), dtype="i4", compressors=None, overwrite=True)
        for at in range(count):
            place = f"{self.outside}data/of/some/ü/file{at % files}.nc"
            session.store.set_virtual_ref(f"{name}/c/{at}", place, offset=4 * at, length=4)
        return session.commit(f"virtual {name}")

    def remove(self, name, *, branch="main"):
        """Takes an array away; None if there is none."""
        session = self.repo.writable_session(branch)
        group = zarr.open_group(session.store, mode="a")
        if name not in group:
            return None
        del group[name]
        return session.commit(f"without {name}")

    # ---- what the library says

    def heads(self):
        branches = {name: self.repo.lookup_branch(name) for name in self.repo.list_branches()}
        return branches, {name: self.repo.lookup_tag(name) for name in self.repo.list_tags()}

    def ancestry(self, snapshot):
        found = self.repo.ancestry(snapshot_id=snapshot)
        return [(one.id, one.parent_id, one.written_at, one.message, one.metadata) for one in found]

    def inspected(self, snapshot):
        found = self.repo.inspect_snapshot(snapshot)
        return json.loads(found) if isinstance(found, str) else found

    def manifests(self, snapshot):
        listed = self.inspected(snapshot)["manifests"]
        return sorted((one["id"], one["size_bytes"], one["num_chunk_refs"]) for one in listed)

    def chunks(self, snapshot):
        """By node and index, what kind each is, and its bytes; or the places of virtual ones, apart."""
        return asyncio.run(self._chunks(snapshot))

    async def _chunks(self, snapshot):
        session, found = self.repo.readonly_session(snapshot_id=snapshot), {}
        for node in self.inspected(snapshot)["nodes"]:
            if node["node_type"] != "array":
                continue
            async for index in session.chunk_coordinates(node["path"]):
                kind = str(await session.chunk_type_async(node["path"], list(index))).rpartition(".")[2].lower()
                body = b""
                if kind != "virtual":
                    key = f"{node['path'].strip('/')}/c{''.join(f'/{one}' for one in index)}"
                    body = (await session.store.get(key, default_buffer_prototype())).to_bytes()
                found[node["id"], tuple(index)] = (kind, body)
        return found, sorted(session.all_virtual_chunk_locations())

    # ---- what lies in the directory

    def files(self, folder):
        return {path.name for path in (self.root / folder).glob("*")}

    def file(self, key):
        return (self.root / key).read_bytes()


def put_array(group, name, values):
    values = np.asarray(values)
    chunks = tuple(min(2, size) for size in values.shape)
    array = group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, overwrite=True)
    array[...] = values


def told(store, snapshot):
    """The references of a snapshot, as we read them: rows of every manifest that it lists."""
    listed = states.fetch(store, snapshot).manifests
    return [
        row for one in listed for row in manifest.references(manifest.fetch(store, one), locations=True).to_pylist()
    ]


def told_chunks(world, snapshot):
    """The same in the words of :meth:`World.chunks`."""
    found, places = {}, []
    for row in told(world.store, snapshot):
        key, body = (name_of(row["node"]), tuple(row["index"])), b""
        if row["kind"] == "native":
            whole = world.file(f"chunks/{name_of(row['chunk'])}")
            body = whole[row["offset"] : row["offset"] + row["length"]]
        elif row["kind"] == "virtual":
            places.append(row["location"])
        assert key not in found
        found[key] = (row["kind"], body, row["length"])
    return found, sorted(places)


def same(world, snapshot):
    """Our references of a snapshot, which are those that the library tells."""
    said, places = world.chunks(snapshot)
    found, found_places = told_chunks(world, snapshot)
    assert found.keys() == said.keys()
    for key, (kind, body) in said.items():
        assert found[key][:2] == (kind, body if kind == "native" else b"")
        if kind == "inline":
            assert found[key][2] == len(body)
    assert found_places == places
    return found


def natives(store, snapshots):
    """The names of all objects that these refer to."""
    found = set()
    for listed in {one for snapshot in snapshots for one in states.fetch(store, snapshot).manifests}:
        found |= set(names_of(manifest.native_ids(manifest.fetch(store, listed))).to_pylist())
    return found


def make_old(place):
    """Every file as of a year ago, so that no collector finds it too young."""
    for path in Path(place).rglob("*"):
        if path.is_file():
            os.utime(path, (path.stat().st_mtime - 365 * 86400,) * 2)
