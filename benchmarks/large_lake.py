"""A lake of millions of objects, made directly: a thousand branches, thirty commits on each.

Of a hundred objects seventy are committed, twenty-five staged, five garbage. To
upload and commit them one by one would only take long; what comes out is the same.
Everything is made branch by branch and by the column: memory does not grow with
the lake. A commit adds its entries behind those of the one before, as one range, and
its metarange lists all of its branch's ranges so far.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.domain.entry import Entry
from desilt.domain.history import new_commit
from desilt.lake import Lake, LakeRepository, commits, refs, restored
from desilt.lake.lake import locate
from desilt.lake.staging import CHANGES
from desilt.objects.local import LocalStore
from desilt.sstable.ranges import Ranges
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData, encode_entry

OLD = datetime(2026, 1, 1, tzinfo=UTC)
ADDRESS = "branches/d5ari0dei0bs72fp{branch:04d}/62293363200000_d5ari0dei0bs72fpblu0/d5ari0dei0{number:010d}"
PATH = "tables/{number:010d}"
COMMITTED, STAGED, GARBAGE = range(3)
SHARES = [0.70, 0.25, 0.05]
SIZE = 1_000  # bytes, that each object is said to have

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a lake is."""

    objects: int
    branches: int = 1_000
    commits: int = 30_000

    @property
    def each(self) -> int:
        """Objects of a branch; the last one may have fewer."""
        return -(-self.objects // self.branches)

    def numbers(self, branch: int, *kinds: int) -> Numbers:
        """The objects of a branch that are of these kinds."""
        found = np.arange(min(branch * self.each, self.objects), min((branch + 1) * self.each, self.objects))
        return found[np.isin(kind_of(found), kinds)]

    def count(self, *kinds: int) -> int:
        return sum(len(self.numbers(branch, *kinds)) for branch in range(self.branches))

    def addresses(self, *kinds: int, at_once: int) -> Iterator[pa.Array]:
        """All addresses of these kinds, some at a time."""
        waiting: list[Numbers] = []
        for branch in range(self.branches):
            waiting.append(self.numbers(branch, *kinds))
            if branch == self.branches - 1 or sum(map(len, waiting)) >= at_once:
                together = np.concatenate(waiting)
                yield from (self.addresses_of(together[at : at + at_once]) for at in range(0, len(together), at_once))
                waiting.clear()

    def addresses_of(self, numbers: Numbers) -> pa.Array:
        return addresses_of(numbers, numbers // self.each)


def kind_of(numbers: Numbers) -> npt.NDArray[np.int64]:
    """Whether each object is committed, staged or garbage: by its number alone, in no order."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.searchsorted(np.cumsum(SHARES)[:-1], (mixed >> np.uint64(11)) / 2.0**53, side="right")


def make(directory: Path, shape: Shape, *, database: str = "") -> LakeRepository:
    """The repository with its branches and commits."""
    lake = Lake.create(locate(f"{directory}/lake", db=database or None))
    hasty = Lake(lake.database, LocalStore(directory / "lake", fsync=False)).create_repository("bench")
    for number in range(shape.branches):
        hasty.create_branch(f"branch-{number:04d}", "main")
    commit(hasty, directory / "lake", shape)
    return lake.repository("bench")


@dataclass(frozen=True, slots=True)
class History:
    """What is to be committed to one branch."""

    root: str
    prefix: str
    shape: Shape
    branch: int


def commit(repo: LakeRepository, root: Path, shape: Shape) -> None:
    """Commits over all that is to be committed."""
    parent, made = repo.resolve("main").commit, 0
    histories = [History(str(root), repo.prefix, shape, branch) for branch in range(shape.branches)]
    repo.database.close()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes:
        for metaranges in processes.map(write_tables, histories, chunksize=16):
            with repo.database.write() as tx:
                tip = parent
                for metarange in metaranges:
                    tip = new_commit(
                        parents=[tip],
                        metarange=metarange,
                        created_at=OLD + timedelta(seconds=made),
                        committer="",
                        message=str(made),
                        metadata={},
                    )
                    commits.insert(tx, repo.uid, tip)
                    made += 1


def write_tables(history: History) -> list[str]:
    """The metaranges of one branch, its oldest commit's first; where there is nothing to commit, there are fewer."""
    shape = history.shape
    ranges = Ranges(LocalStore(history.root, fsync=False), history.prefix)
    count = (history.branch + 1) * shape.commits // shape.branches - history.branch * shape.commits // shape.branches
    mine = shape.numbers(history.branch, COMMITTED)
    listed: list[RangeData] = []
    found = []
    for some in np.array_split(mine, count) if count else []:
        if len(some):
            writer = ranges.writer()
            batch = entries(some, shape.addresses_of(some)).cast(RAW)
            listed += map(ranges.put, [*writer.add(batch), *writer.finish()])
            found.append(ranges.put_metarange(listed))
    return found


def stage(repo: LakeRepository, shape: Shape) -> None:
    """All that is to be staged, evenly on all branches."""
    stage_parts(repo, [(shape.numbers(branch, STAGED), shape.each) for branch in range(shape.branches)])


def stage_parts(repo: LakeRepository, parts: Sequence[tuple[Numbers, int]]) -> None:
    """Objects by their numbers, so many to a folder: each part on the next branch."""
    with repo.database.read() as tx:
        tokens = sorted(branch.token for branch in refs.branches(tx, repo.uid))
    with repo.database.write() as tx:
        for place, (numbers, each) in enumerate(parts):
            token, addresses = tokens[place % len(tokens)], addresses_of(numbers, numbers // each)
            rows = entries(numbers, addresses)
            columns = (rows["key"].to_pylist(), rows["value"].to_pylist(), addresses.to_pylist())
            tx.execute_many(
                "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?)",
                ((token, *row) for row in zip(*columns, strict=True)),
            )


def store(repo: LakeRepository, root: Path, addresses: Iterable[pa.Array], body: bytes = b"") -> None:
    """A file for each address, as old as its name says, in partitions that the database knows."""
    seconds = int(OLD.timestamp())
    folders = set()
    for address in (one for some in addresses for one in some.to_pylist()):
        path = f"{root}/{repo.prefix}{address}"
        if (folder := address[: address.rindex("/") + 1]) not in folders:
            Path(f"{root}/{repo.prefix}{folder}").mkdir(parents=True, exist_ok=True)
            folders.add(folder)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        if body:
            os.write(descriptor, body)
        os.utime(descriptor, (seconds, seconds))
        os.close(descriptor)
    with repo.database.write() as tx:
        restored.adopt(tx, sorted(folders))


def entries(numbers: Numbers, addresses: pa.Array) -> pa.RecordBatch:
    """Entries in the order of their paths; all are made from one, with the address put in its place."""
    made_at = int(OLD.timestamp()) * 10**9
    some = ADDRESS.format(branch=0, number=0)
    template = encode_entry(Entry("", some, SIZE, "0" * 32, made_at))
    values = np.tile(np.frombuffer(template, np.uint8), (len(numbers), 1))
    at = template.index(some.encode())
    values[:, at : at + len(some)] = np.frombuffer(addresses.buffers()[2], np.uint8).reshape(-1, len(some))
    paths = written(PATH.format(number=0), len(numbers))
    digits(paths, PATH.index("{"), numbers, 10)
    return pa.record_batch([texts(paths, pa.binary()), texts(values, pa.binary())], schema=CHANGES)


def addresses_of(numbers: Numbers, folders: Numbers) -> pa.Array:
    """Addresses of objects, by their numbers and those of their folders."""
    rows = written(ADDRESS.format(branch=0, number=0), len(numbers))
    digits(rows, ADDRESS.index("{"), folders, 4)
    digits(rows, rows.shape[1] - 10, numbers, 10)
    return texts(rows, pa.string())


def written(text: str, count: int) -> npt.NDArray[np.uint8]:
    return np.tile(np.frombuffer(text.encode(), np.uint8), (count, 1))


def digits(rows: npt.NDArray[np.uint8], at: int, numbers: Numbers, width: int) -> None:
    """Write ``numbers`` into ``rows``, with leading zeros."""
    for place in range(width):
        rows[:, at + place] = ord("0") + numbers // 10 ** (width - 1 - place) % 10


def texts(rows: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
    """Each row of bytes as one text."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(rows))])
