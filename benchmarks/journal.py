"""What the journal adds to a move, and how that grows with the number of moves.

    python benchmarks/journal.py [--times 40]

A tag and a commit of ten staged files, on SQLite with a directory and on PostgreSQL
with an S3 server, against the same without a record: nothing is listed, nothing put.
Then the same on a lake that has had 1,000, 100,000 and 1,000,000 moves.
"""

import argparse
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from desilt.domain.record import Record
from desilt.lake import Lake, LakeRepository, journal, moves, repositories
from desilt.lake.lake import locate
from desilt.testing import servers
from machine import keep

SIZES = (1_000, 100_000, 1_000_000)
FILES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=40)
    times = parser.parse_args().times
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        local = Lake.create(locate(f"{directory}/lake")).create_repository("bench")
        rows += told("SQLite, directory", local, times)
        for size in SIZES:
            age(local, size, Path(directory))
            rows += told(f"SQLite, directory, {size:,} moves", local, times, against=False)
        with servers.postgres(Path(directory) / "pg") as url, servers.seaweedfs(Path(directory) / "s3") as s3:
            os.environ.update(s3.env)
            bucket = s3.create_bucket(f"bench-{uuid.uuid4().hex[:8]}")
            far = Lake.create(locate(f"{bucket}/lake", db=url)).create_repository("bench")
            rows += told("PostgreSQL, S3", far, times)
    keep("journal", {"rows": rows})


def told(where: str, repo: LakeRepository, times: int, *, against: bool = True) -> list[dict[str, object]]:
    rows = []
    for what, act in (("tag", tag), ("commit", commit)):
        with_it, without = [], []
        for _ in range(times):  # in turns: whatever else the machine does falls on both
            with_it.append(act(repo))
            if against:
                with unrecorded():
                    without.append(act(repo))
        ours, bare = statistics.median(with_it), statistics.median(without) if against else None
        row: dict[str, object] = {"where": where, "what": what, "ms": round(ours * 1000, 2)}
        if bare:
            row |= {"without_ms": round(bare * 1000, 2), "times": round(ours / bare, 2)}
        rows.append(row)
        print(f"{where:<36} {what:<8} {ours * 1000:>8.2f} ms", f"{ours / bare:.2f}× without" if bare else "")
    return rows


def tag(repo: LakeRepository) -> float:
    return timed(lambda: repo.create_tag(uuid.uuid4().hex, "main"))


def commit(repo: LakeRepository) -> float:
    for number in range(FILES):
        repo.put("main", f"files/{number}", uuid.uuid4().bytes)
    return timed(lambda: repo.commit("main", "files"))


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


@contextmanager
def unrecorded() -> Iterator[None]:
    """Moves as they would be without a journal; the numbers that they take are given back."""
    with (
        mock.patch.object(journal, "newer", return_value=(None, [])),
        mock.patch.object(journal, "write", journal_kept),
        mock.patch.object(moves, "new_intent", side_effect=lambda _: moves.new_mark()),
    ):
        yield


def journal_kept(core: object, record: Record) -> bool:
    """Not timed against: written all the same, but only into memory that is thrown away."""
    LEFT_OUT.append((core, record))
    return True


LEFT_OUT: list[tuple[object, Record]] = []


def age(repo: LakeRepository, size: int, directory: Path) -> None:
    """As if ``size`` moves had been made: empty files have their names, and the last is a record."""
    root = directory / "lake" / repo.prefix
    for number in range(size):
        path = root / journal.name_of(number)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    with repo.database.write() as tx:
        tx.execute("UPDATE repositories SET generation = ? WHERE uid = ?", size - 1, repo.uid)
        repositories.begin_move(tx, repo.uid)
        repositories.end_move(tx, repo.uid, size, "0" * 16)
    record = Record(size, size - 1, "", "0" * 16, repo.clock(), ())
    journal.write(repo.core, record)
    moves.check(repo.core)


if __name__ == "__main__":
    main()
