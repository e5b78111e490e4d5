"""What a user hands in as an inventory: its files, their kind, and when it was taken.

Either the ``manifest.json`` of an Amazon S3 Inventory, or files without one: a
single file, or all that lie directly in a folder. A manifest vouches for its
files by size and MD5; the time of an inventory without one is its oldest file's.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from desilt.domain.times import moment
from desilt.errors import BadRequest, DamagedInventory, NotFound
from desilt.objects import ObjectStore, open_store
from desilt.objects.local import LocalStore
from desilt.objects.store import flaw

MANIFEST = "manifest.json"
VERSION = "2016-11-30"
FORMATS = {"CSV": (".csv.gz", ".csv"), "Parquet": (".parquet",), "ORC": (".orc",)}
KINDS = (".parquet", ".csv", ".csv.gz", ".orc")


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a file is, or may be: ``key`` in the store ``root``, or, where that is empty, of this machine's disk."""

    root: str
    key: str

    @property
    def local(self) -> bool:
        return not self.root

    def opened(self) -> tuple[ObjectStore, str]:
        """The store the file is in, and its key there."""
        if not self.local:
            return open_store(self.root), self.key
        folder, _, name = f"/{self.key}".rpartition("/")
        return open_store(folder or "/"), name

    def beside(self, key: str) -> "FilePlace":
        return FilePlace(self.root, key)

    def __str__(self) -> str:
        return f"{self.root}/{self.key}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of rows."""

    name: str
    kind: str  # one of KINDS
    places: tuple[FilePlace, ...]  # where it may be, the likeliest first
    columns: tuple[str, ...] = ()  # of a CSV file that S3 wrote; all others name their own
    size: int | None = None  # that a manifest says it has
    md5: str | None = None

    def stored_size(self) -> int:
        """What it has, where it is likeliest to be; 0 if it is not there."""
        if self.size is not None:
            return self.size
        store, key = self.places[0].opened()
        try:
            return store.head(key).size
        except NotFound:
            return 0


@dataclass(frozen=True, slots=True)
class Given:
    """An inventory as it was supplied, not yet read."""

    files: tuple[DataFile, ...]
    taken_at: datetime
    bucket: str | None  # what it is an inventory of, where it says so


def find(uri: str) -> Given:
    """The inventory at ``uri``: a manifest, a file, or a folder with either."""
    place = place_of(uri)
    try:
        if not place.key:
            return of_folder(place)
        store, key = place.opened()
        taken_at = store.head(key).modified_at
    except NotFound:
        return of_folder(place)
    if key.endswith(".json"):
        return of_manifest(place)
    return Given((DataFile(str(place), kind_of(str(place)), (place,)),), taken_at, None)


def place_of(uri: str) -> FilePlace:
    scheme, divided, rest = uri.partition("://")
    if divided and scheme != "file":
        bucket, _, key = rest.partition("/")
        return FilePlace(f"{scheme}://{bucket}", key.rstrip("/"))
    store = open_store(uri)
    assert isinstance(store, LocalStore)
    return FilePlace("", str(Path(store.root).resolve()).lstrip("/"))  # where links lead: a store follows none


def of_folder(folder: FilePlace) -> Given:
    """The manifest directly in ``folder``, or else every file there."""
    found = dict(files_in(folder))
    if MANIFEST in found:
        return of_manifest(folder.beside(joined(folder.key, MANIFEST)))
    if not found:
        raise NotFound("inventory", str(folder), f"name a {MANIFEST}, a file or a folder of {', '.join(KINDS)} files")
    places = [folder.beside(joined(folder.key, name)) for name in found]
    files = tuple(DataFile(str(place), kind_of(str(place)), (place,)) for place in places)
    return Given(files, min(found.values()), None)


def files_in(folder: FilePlace) -> Iterator[tuple[str, datetime]]:
    """Names and times of what lies directly in ``folder``; Spark's own ``_SUCCESS`` and ``.crc`` files are no rows."""
    if folder.local and not Path(f"/{folder.key}").is_dir():
        return
    store = open_store(f"/{folder.key}" if folder.local else folder.root)
    prefix = f"{folder.key}/" if folder.key and not folder.local else ""
    for batch in store.list(prefix):
        for key, modified_at in zip(batch["key"].to_pylist(), batch["modified_at"].to_pylist(), strict=True):
            name = key.removeprefix(prefix)
            if "/" not in name and name[0] not in "._":
                yield name, modified_at


def kind_of(name: str) -> str:
    kind = next((kind for kind in KINDS if name.endswith(kind)), None)
    if kind is None:
        raise BadRequest(f"{name} is no inventory; hand in a {MANIFEST}, or files that end in {', '.join(KINDS)}")
    return kind


def of_manifest(place: FilePlace) -> Given:
    """What the manifest at ``place`` says."""
    store, key = place.opened()
    try:
        said = json.loads(store.get(key))
        version, file_format, schema = said["version"], said["fileFormat"], said["fileSchema"]
        bucket, taken_at = said["sourceBucket"], moment(int(said["creationTimestamp"]) * 1000)
        entries = [(str(one["key"]), int(one["size"]), str(one["MD5checksum"])) for one in said["files"]]
    except KeyError as error:
        raise DamagedInventory(str(place), f"a manifest has {error}, this one has not") from error
    except (ValueError, TypeError, OverflowError) as error:
        raise DamagedInventory(str(place), f"it is not the manifest of an inventory: {error}") from error
    if version != VERSION:
        raise BadRequest(f"{place} is of version {version!r}, this desilt reads {VERSION}; upgrade desilt")
    if file_format not in FORMATS:
        raise BadRequest(f"{place} lists {file_format!r} files; configure the inventory as {', '.join(FORMATS)}")
    columns = tuple(name.strip() for name in schema.split(",")) if file_format == "CSV" else ()
    files = tuple(
        DataFile(name, kind_in(place, name, file_format), candidates(place, name), columns, size, md5)
        for name, size, md5 in entries
    )
    return Given(files, taken_at, bucket)


def kind_in(manifest: FilePlace, name: str, file_format: str) -> str:
    if reason := flaw(name):
        raise BadRequest(f"{manifest} lists a file {name!r}, which {reason}; hand in the manifest as S3 wrote it")
    kind = next((kind for kind in FORMATS[file_format] if name.endswith(kind)), None)
    if kind is None:
        raise BadRequest(
            f"{manifest} lists {name}, which is no {file_format} file; hand in the manifest as S3 wrote it"
        )
    return kind


def candidates(manifest: FilePlace, key: str) -> tuple[FilePlace, ...]:
    """Where the file ``key`` may be: in the manifest's bucket, or in a copy of the bucket or of a part of it.

    S3 puts ``config/2026-01-01T00-00Z/manifest.json`` beside ``config/data/``: so a
    copy of ``config`` is looked into as well as a folder that holds everything.
    """
    parts, segments = manifest.key.split("/")[:-1], key.split("/")
    above = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]  # the root of the store first
    found = [joined(folder, key) for folder in above]
    for folder in reversed(above[-2:]):
        found += [joined(folder, "/".join(segments[at:])) for at in range(1, len(segments))]
        found += [joined(folder, f"data/{segments[-1]}"), joined(folder, segments[-1])]
    return tuple(manifest.beside(one) for one in dict.fromkeys(found))


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
