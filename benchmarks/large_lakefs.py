"""A large repository on a lakeFS server, made directly; served by the model of one that tests have.

Of a hundred objects seventy are committed, twenty-five staged, five garbage. ``main`` has most commits, each with new
paths behind those before it; every other branch begins somewhere along it and has one commit of its own. So heads share
their tables, as they do on servers: each branch has nearly all entries. Tables are cut as a server cuts them, and a
commit writes the last one anew. A few uploads have the very bytes that are committed at their path: no list has them.
An object is a file that is all hole, as long as its entry says, as old as its name says.

    python benchmarks/large_lakefs.py DIRECTORY '{"objects": 100000, …}'    # a line with the endpoint; ends with stdin
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.domain.entry import Entry
from desilt.domain.history import Commit
from desilt.objects.local import LocalStore
from desilt.sstable.ranges import Ranges
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData, encode_entry
from lakefs_files import STAGED as STAGED_COLUMNS
from lakefs_files import YEAR_4000
from lakefs_http import Answer, route
from lakefs_model import REF, B, LakefsModel, R
from lakefs_state import Branch
from large_lake import COMMITTED, GARBAGE, STAGED, Numbers, digits, kind_of, texts, written

NAME = "bench"
OLD = datetime(2026, 1, 1, tzinfo=UTC)
TO_A_FOLDER = 2_000  # objects
UNLISTED = 20  # uploads of the bytes that their path has
PATHS = {COMMITTED: "tables/", STAGED: "uploads/"}
LETTERS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)
STAGED_PAGE = 100_000  # entries to a page of prepare_uncommited
SIZES = (1 << 14, 1 << 21)  # bytes: all of them take three bytes to write


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a repository is, and what its server says of itself."""

    objects: int
    commits: int
    branches: int
    blockstore: str = "s3"  # as it is told; files are in a directory either way
    equal_sizes: bool = False

    @property
    def own(self) -> int:
        """Commits of main; every other branch has one more."""
        return self.commits - self.branches + 1

    def numbers(self, kind: int) -> Numbers:
        found = np.arange(self.objects)
        return found[kind_of(found) == kind]

    def sizes(self, numbers: Numbers) -> Numbers:
        """From 16 KB to 2 MB, as many of each order."""
        if self.equal_sizes:
            return np.full(len(numbers), SIZES[0])
        mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
        part = ((mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB) >> np.uint64(11)) / 2.0**53
        low, high = SIZES
        return (low * (high / low) ** part).astype(np.int64)


def addresses_of(numbers: Numbers) -> pa.Array:
    """``data/<partition>/<object>``, each with the second in which a partition of so many was opened."""
    folders = numbers // TO_A_FOLDER
    rows = written("data/" + "0" * 20 + "/" + "0" * 20, len(numbers))
    opened = int(OLD.timestamp()) + 3600 * folders
    xids(rows[:, 5:25], (YEAR_4000 - opened) % 2**32, folders)
    xids(rows[:, 26:46], opened, numbers)
    return texts(rows, pa.string())


def xids(rows: Any, seconds: Numbers, counts: Numbers) -> None:
    """Write xids: four bytes of time, five of a machine, three that count."""
    raw = np.zeros((len(counts), 12), np.uint8)
    raw[:, :4] = seconds.astype(">u4").view(np.uint8).reshape(-1, 4)
    raw[:, 4:9] = np.frombuffer(b"bench", np.uint8)
    raw[:, 9:] = counts.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    bits = np.pad(np.unpackbits(raw, axis=1), ((0, 0), (0, 4)))
    rows[:] = LETTERS[bits.reshape(-1, 20, 5) @ np.array([16, 8, 4, 2, 1])]


def entries(shape: Shape, numbers: Numbers) -> pa.RecordBatch:
    """Entries in the order of their paths; all are made from one, with what differs put in its place."""
    address, checksum, mark = addresses_of(np.zeros(1, np.int64))[0].as_py(), "7" * 32, SIZES[0] + 0x1234
    template = encode_entry(Entry("", address, mark, checksum, int(OLD.timestamp()) * 10**9))
    values = np.tile(np.frombuffer(template, np.uint8), (len(numbers), 1))
    at = template.index(address.encode())
    values[:, at : at + 46] = np.frombuffer(addresses_of(numbers).buffers()[2], np.uint8).reshape(-1, 46)
    digits(values, template.index(checksum.encode()), numbers, 32 - 14)
    sizes, at = shape.sizes(numbers), template.index(bytes(_varint(mark)))
    for place in range(3):
        values[:, at + place] = (sizes >> 7 * place & 0x7F) | (0x80 if place < 2 else 0)
    paths = written(PATHS[COMMITTED] + "0" * 10, len(numbers))
    digits(paths, len(PATHS[COMMITTED]), numbers, 10)
    return pa.record_batch([texts(paths, pa.binary()), texts(values, pa.binary())], schema=RAW)


def _varint(number: int) -> list[int]:
    return [number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14]


@dataclass(frozen=True, slots=True)
class Head:
    """A commit: how much of main's paths it has, which of its own, and its tables."""

    along: int
    own: Numbers
    listed: tuple[RangeData, ...]
    metarange: str


class History:
    """Tables of all commits, written below ``root``."""

    def __init__(self, root: Path, shape: Shape) -> None:
        self.shape, self._ranges = shape, Ranges(LocalStore(root, fsync=False), "")
        committed = shape.numbers(COMMITTED)
        self.main = committed[: len(committed) * shape.own // shape.commits]
        self._rest = committed[len(self.main) :]

    def heads(self) -> tuple[list[Head], list[tuple[int, Head]]]:
        """The commits of main; those of other branches, each with the place of its parent."""
        found = list[Head]()
        for one in range(1, self.shape.own + 1):
            found.append(self._commit(found[-1] if found else None, len(self.main) * one // self.shape.own))
        others = []
        for number, own in enumerate(np.array_split(self._rest, max(self.shape.branches - 1, 1)), 1):
            if number < self.shape.branches:
                at = self.shape.own * number // self.shape.branches
                others.append((at, self._commit(found[at], found[at].along, own)))
        return found, others

    def _commit(self, parent: Head | None, along: int, own: Numbers | None = None) -> Head:
        """The last table of the parent is written anew, with what is new behind it."""
        kept = parent.listed[:-1] if parent else ()
        start = sum(one.count for one in kept)
        own = np.zeros(0, np.int64) if own is None else own
        writer = self._ranges.writer()
        batch = entries(self.shape, np.concatenate([self.main[start:along], own]))
        listed = (*kept, *map(self._ranges.put, [*writer.add(batch), *writer.finish()]))
        return Head(along, own, listed, self._ranges.put_metarange(list(listed)))


class Server(LakefsModel):
    """The model, with one large repository; what is asked for often is answered from columns."""

    def __init__(self, root: Path, shape: Shape) -> None:
        super().__init__(root)
        self.shape, self.where = shape, root / NAME
        self.repository = self.create(NAME)
        history = History(self.where, shape)
        self.main, self.views = history.main, dict[str, Head]()
        commits, others = history.heads()
        tips = [self.repository.branches["main"].head]
        for number, one in enumerate(commits):
            tips.append(self._add(tips[-1], one, number, "main"))
        for number, (at, one) in enumerate(others, 1):
            self._add(tips[at + 1], one, shape.own + number, f"branch-{number:04d}")
        self._stage(shape.numbers(STAGED))

    def _add(self, parent: str, made: Head, number: int, branch: str) -> str:
        """A commit, to which the branch goes."""
        self.clock.now = OLD + timedelta(seconds=number)
        commit: Commit = self.repository._add([parent], made.metarange, f"commit {number}", {})
        self.repository.branches[branch] = Branch(branch, commit.id)
        self.views[branch] = made
        return commit.id

    def _stage(self, numbers: Numbers) -> None:
        """Evenly on all branches; the first few over paths of main's, with their bytes."""
        names = sorted(self.views)
        some = names[:: -(-len(names) // UNLISTED)]
        places = [(one, self.views[one].along * (2 * n + 1) // 41) for n in range(20) for one in some]
        keys = [(one, int(self.main[at])) for one, at in dict.fromkeys(places)][:UNLISTED]
        self.over = dict(zip(keys, numbers[:UNLISTED].tolist(), strict=True))
        listed = numbers[~np.isin(numbers, list(self.over.values()))]
        self.listed = listed
        self.staged = dict(zip(names, np.array_split(listed, len(names)), strict=True))
        self.sizes = {number: int(self.shape.sizes(np.array([at]))[0]) for (_, at), number in self.over.items()}

    def alike(self, going: Numbers) -> tuple[int, int]:
        """Paths of all branches where one that is going might be served unseen: by its size, and by its bytes."""
        sizes, views = np.union1d(self.shape.sizes(going), list(self.sizes.values())), self.views.values()
        unseen = np.array([number for _, number in self.over])
        heads = [np.concatenate([self.main[: view.along], view.own]) for view in views]
        by_size = sum(int(np.isin(self.shape.sizes(one), sizes).sum()) for one in heads)
        return by_size, sum(int(np.isin(one, unseen).sum()) for one in heads)

    def store(self) -> None:
        """A file for each object."""
        for start in range(0, self.shape.objects, 100_000):
            numbers = np.arange(start, min(start + 100_000, self.shape.objects))
            rows = zip(
                numbers.tolist(), addresses_of(numbers).to_pylist(), self.shape.sizes(numbers).tolist(), strict=True
            )
            for number, address, size in rows:
                path = f"{self.where}/{address}"
                if number % TO_A_FOLDER == 0:
                    Path(path).parent.mkdir(parents=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
                os.truncate(descriptor, self.sizes.get(number, size))
                os.utime(descriptor, (int(OLD.timestamp()) + 3600 * (number // TO_A_FOLDER),) * 2)
                os.close(descriptor)

    # answers

    @property
    def _storage(self) -> Any:
        return {**super()._storage, "blockstore_type": self.shape.blockstore}

    @route("GET", "/asked")
    def get_asked(self, _: Any) -> Answer:
        """How often what was asked for, since the last time."""
        found = {f"{method} {path}": count for (method, path), count in self.asked.items() if path != "/asked"}
        self.asked.clear()
        return Answer(200, found)

    @route("POST", R + "/gc/prepare_uncommited")
    def prepare_uncommitted(self, ask: Any) -> Answer:
        token = ask.json.get("continuation_token") or f"{self.names.falling()} 0"
        run, at = token.split()
        some = self.listed[int(at) : int(at) + STAGED_PAGE]
        where = f"_lakefs/retention/gc/uncommitted/{run}/uncommitted/"
        columns = [addresses_of(some), pa.array(np.full(len(some), int(OLD.timestamp())))]
        out = pa.BufferOutputStream()
        pq.write_table(pa.table(columns, schema=STAGED_COLUMNS), out, compression="gzip")
        self.repository.place.put(where + self.names.rising(), out.getvalue().to_pybytes())
        after = int(at) + STAGED_PAGE
        more = {"continuation_token": f"{run} {after}"} if after < len(self.listed) else {}
        return Answer(201, {"gc_uncommitted_location": self.repository.place.shown + where, "run_id": run, **more})

    @route("GET", REF + "/objects/ls")
    def list_objects(self, ask: Any) -> Answer:
        """Paths of tables, then of uploads; after the one that is named."""
        after, amount = ask.query.get("after", ""), int(ask.query["amount"])
        places = [part for part in self._parts(ask.ref) if not after or part[0] >= after.rpartition("/")[0]]
        rows, more = list[str](), False
        for folder, numbers in places:
            start = np.searchsorted(numbers, int(after[-10:]), "right") if after.startswith(folder) else 0
            some = numbers[start : start + amount - len(rows) + 1]
            more = more or len(rows) + len(some) > amount
            rows += self._rows(ask.ref, folder, some[: amount - len(rows)])
        return _page(rows, more, json.loads(rows[-1])["path"] if more else "")

    @route("GET", B + "/diff")
    def diff_branch(self, ask: Any) -> Answer:
        """What is staged and listed: a server goes by what is staged, and looks those paths up in the commit."""
        after, amount, numbers = ask.query.get("after", ""), int(ask.query["amount"]), self.staged[ask.branch]
        start = np.searchsorted(numbers, int(after[-10:]), "right") if after else 0
        some = numbers[start : start + amount]
        paths = [f"{PATHS[STAGED]}{number:010d}" for number in some.tolist()]
        rows = [
            f'{{"path":"{path}","path_type":"object","size_bytes":{size},"type":"added"}}'
            for path, size in zip(paths, self.shape.sizes(some).tolist(), strict=True)
        ]
        more = bool(start + len(some) < len(numbers))
        return _page(rows, more, paths[-1] if more else "")

    @route("GET", REF + "/objects/stat")
    def stat_object(self, ask: Any) -> Answer:
        path = ask.key.decode()
        (row,) = self._rows(ask.ref, path[:-10], np.array([int(path[-10:])]))
        return Answer(200, row.encode())

    def _parts(self, branch: str) -> Iterator[tuple[str, Numbers]]:
        view = self.views[branch]
        yield PATHS[COMMITTED], self.main[: view.along]
        yield PATHS[COMMITTED], view.own
        yield PATHS[STAGED], self.staged[branch]

    def _rows(self, branch: str, folder: str, numbers: Numbers) -> list[str]:
        there = [self.over.get((branch, number), number) for number in numbers.tolist()]
        sizes = self.shape.sizes(numbers).tolist()
        shown, rows = self.repository.place.shown, addresses_of(np.array(there, np.int64)).to_pylist()
        return [
            f'{{"checksum":"{number:018d}77777777777777","content_type":"application/octet-stream","mtime":1767225600,'
            f'"path":"{folder}{number:010d}","path_type":"object","physical_address":"{shown}{address}",'
            f'"size_bytes":{size}}}'
            for number, address, size in zip(numbers.tolist(), rows, sizes, strict=True)
        ]


def _page(rows: Sequence[str], more: bool, last: str) -> Answer:
    head = {"has_more": more, "max_per_page": 1000, "next_offset": last, "results": len(rows)}
    return Answer(200, f'{{"pagination":{json.dumps(head)},"results":[{",".join(rows)}]}}'.encode())


def main(words: Sequence[str]) -> None:
    shape = Shape(**json.loads(words[1]))
    with Server(Path(words[0]), shape) as server:
        server.store()
        by_size, by_bytes = server.alike(shape.numbers(GARBAGE))
        told = {
            "endpoint": server.endpoint,
            "garbage": len(shape.numbers(GARBAGE)),
            "unlisted": len(server.over),
            "entries_of_heads": sum(view.along + len(view.own) for view in server.views.values()),
            "paths_of_equal_size": by_size,
            "paths_of_equal_bytes": by_bytes,
            **asdict(shape),
        }
        print(json.dumps(told), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
