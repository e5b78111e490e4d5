"""A lake of millions of objects, made directly: hundreds of branches, thousands of commits.

Of a hundred objects seventy are committed, twenty-five staged, five garbage. To
upload and commit them one by one would only take long; what comes out is the same.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.domain.entry import Entry
from desilt.domain.history import new_commit
from desilt.lake import Lake, LakeRepository, commits, refs, restored
from desilt.lake.apply import apply
from desilt.lake.lake import locate
from desilt.lake.staging import CHANGES
from desilt.sstable.values import encode_entry

BRANCHES, COMMITS = 200, 2_000
OLD = datetime(2026, 1, 1, tzinfo=UTC)
ADDRESS = "branches/d5ari0dei0bs72fp{branch:04d}/62293363200000_d5ari0dei0bs72fpblu0/d5ari0dei0{number:010d}"
COMMITTED, STAGED, GARBAGE = range(3)
SHARES = [0.70, 0.25, 0.05]

Kinds = npt.NDArray[np.int64]


def make(directory: Path, objects: int) -> tuple[LakeRepository, pa.Array, Kinds]:
    """The repository with its branches and commits, every address, and of which kind each is."""
    addresses = pa.array([ADDRESS.format(branch=number % BRANCHES, number=number) for number in range(objects)])
    kinds = np.random.default_rng(1).choice(3, objects, p=SHARES)
    repo = Lake.create(locate(f"{directory}/lake")).create_repository("bench")
    for number in range(BRANCHES):
        repo.create_branch(f"branch-{number:04d}", "main")
    commit(repo, addresses.filter(pa.array(kinds == COMMITTED)))
    return repo, addresses, kinds


def commit(repo: LakeRepository, addresses: pa.Array) -> None:
    """Commits over so many entries, the first of each branch with ranges of its own."""
    changes = entries(addresses)
    size = -(-len(addresses) // BRANCHES)
    parent = repo.resolve("main").commit
    with repo.database.write() as tx:
        for number in range(COMMITS):
            if number < BRANCHES:
                metarange = apply(repo.ranges, "", [changes.slice(number * size, size)])
            made = new_commit(
                parents=[parent], metarange=metarange, created_at=OLD, committer="", message=str(number), metadata={}
            )
            commits.insert(tx, repo.uid, made)


def stage(repo: LakeRepository, addresses: pa.Array) -> None:
    """As many entries, staged evenly on all branches."""
    rows = entries(addresses)
    with repo.database.write() as tx:
        tokens = [branch.token for branch in refs.branches(tx, repo.uid)]
        size = -(-len(addresses) // len(tokens))
        for number, token in enumerate(tokens):
            part = rows.slice(number * size, size)
            some = zip(
                part["key"].to_pylist(),
                part["value"].to_pylist(),
                addresses.slice(number * size, size).to_pylist(),
                strict=True,
            )
            tx.execute_many(
                "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?)",
                ((token, path, value, address) for path, value, address in some),
            )


def store(repo: LakeRepository, root: Path, addresses: pa.Array, body: bytes = b"") -> None:
    """A file for each address, as old as its name says, in partitions that the database knows."""
    seconds = int(OLD.timestamp())
    folders = set()
    for address in addresses.to_pylist():
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


def entries(addresses: pa.Array) -> pa.RecordBatch:
    """Entries in the order of their paths; all are made from one, with the address put in its place."""
    count, width = len(addresses), len(ADDRESS.format(branch=0, number=0))
    made_at = int(OLD.timestamp()) * 10**9
    template = encode_entry(Entry("", ADDRESS.format(branch=0, number=0), 1_000, "0" * 32, made_at))
    at = template.index(b"branches/")
    values = np.tile(np.frombuffer(template, np.uint8), (count, 1))
    values[:, at : at + width] = np.frombuffer("".join(addresses.to_pylist()).encode(), np.uint8).reshape(-1, width)
    packed = pa.Array.from_buffers(pa.binary(len(template)), count, [None, pa.py_buffer(values.tobytes())])
    paths = pa.array([f"tables/{number:010d}".encode() for number in range(count)], pa.binary())
    return pa.record_batch([paths, packed.cast(pa.binary())], schema=CHANGES)
