"""What is staged, and no list of uncommitted objects has it.

An upload of the bytes that its path has in the branch's commit changes nothing that a server compares; so it is listed
nowhere, and the branch serves it all the same. Of candidates, only those can be such uploads whose size some head's
entry has, wherever its own object is. Nor is a whole address listed that leads inside by another spelling: those can be
at paths that differ from the commit, with an entry of that size. At each such path, the branch is asked what it serves.
Where that would be more requests than to list those branches whole, they are listed. A local blockstore leaves out
more, and there every branch is listed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import Placed
from desilt.columns.buckets import every
from desilt.columns.files import Files
from desilt.domain.entry import decode_path
from desilt.errors import NotFound
from desilt.lakefs.branches import PAGE, UNSURE, Served
from desilt.lakefs.core import LakefsCore
from desilt.logs import logger
from desilt.objects.store import ObjectStore

AT_ONCE = 8  # requests
REMOVED = "removed"  # what was done to a path
LISTED_WHOLE = "local"  # the blockstore that keeps whole addresses
Sizes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Change = tuple[str, int | None]  # a path, and the size of what was put there
Changed = Mapping[str, Sequence[Change] | None]  # by branch; None: it must be listed
Outside = Callable[[str, Sizes], Iterable[str]]  # of a range: the paths of such entries, of those sizes
log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Head:
    """A branch, and the ranges that its commit lists."""

    branch: str
    ranges: frozenset[str]
    entries: int

    @property
    def pages(self) -> int:
        """Requests that it takes to list it."""
        return -(-self.entries // PAGE) + 1


def served(
    core: LakefsCore,
    heads: Sequence[Head],
    files: Sequence[Placed],
    rows: pa.Table,
    *,
    outside: Outside,
    changed: Callable[[], Changed],
) -> pa.Array:
    """Of candidates, as PLAN, the addresses that some branch serves, and not because its commit has them."""
    if not rows.num_rows:
        return pa.array([], pa.string())
    wanted, entries = rows["address"].combine_chunks(), _Entries(core.store, heads, files)
    if core.blockstore == LISTED_WHOLE:
        return _listed(core, [head.branch for head in heads], wanted, entries)
    sizes, how_many = np.unique(rows["size_bytes"].to_numpy(), return_counts=True)
    asked = entries.paths(sizes, sizes[how_many == 1], wanted)
    for branch, path in entries.paths_outside(sizes, outside):
        asked.setdefault(branch, set()).add(path)
    differing, known = changed(), set(sizes.tolist())
    for branch, changes in differing.items():
        asked.setdefault(branch, set()).update(path for path, size in changes or () if size is None or size in known)
    whole = [
        head.branch
        for head in heads
        if len(asked.get(head.branch, ())) > head.pages or differing.get(head.branch, ()) is None
    ]
    pairs = [(branch, path) for branch, paths in asked.items() if branch not in whole for path in sorted(paths)]
    log.info("%s paths are asked for, %s branches listed", len(pairs), len(whole))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(lambda pair: core.server.served(*pair), pairs)
        found = [answer.address for answer in answers if answer is not None]
    return pa.concat_arrays([_among(core, found, wanted), _listed(core, whole, wanted, entries)])


class _Entries:
    """What the commits at the heads of branches have."""

    def __init__(self, store: ObjectStore, heads: Sequence[Head], files: Iterable[Placed]) -> None:
        self._opened, self._files = Files(store), files
        self._branches: dict[str, list[str]] = {}  # by range
        for head in heads:
            for name in head.ranges:
                self._branches.setdefault(name, []).append(head.branch)

    def paths(self, sizes: Sizes, alone: Sizes, wanted: pa.Array) -> dict[str, set[str]]:
        """By branch: the paths of entries that have one of ``sizes``; but not of one that is itself the only ``wanted``
        of its size, for then no other can be there."""

        def fits(rows: pa.Table) -> Flags:
            theirs = rows["size_bytes"].to_numpy()
            found: Flags = np.isin(theirs, sizes) & ~(_flags(rows["address"], wanted) & np.isin(theirs, alone))
            return found

        found: dict[str, set[str]] = {}
        for branch, path, _ in self._matching(fits):
            found.setdefault(branch, set()).add(path)
        return found

    def paths_outside(self, sizes: Sizes, outside: Outside) -> Iterator[tuple[str, str]]:
        """Branch and path of entries that have one of ``sizes``, and whose objects lie elsewhere."""
        names = {name for placed in self._files for name in placed.elsewhere} & self._branches.keys()
        for name in sorted(names):
            for path in outside(name, sizes):
                yield from ((branch, path) for branch in self._branches[name])

    def having(self, wanted: pa.Array) -> set[tuple[str, str, str]]:
        """Branch, path and address of entries that have one of ``wanted``."""
        return set(self._matching(lambda rows: _flags(rows["address"], wanted)))

    def _matching(self, fits: Callable[[pa.Table], Flags]) -> Iterator[tuple[str, str, str]]:
        for placed in self._files:
            mine = {owner: name for owner, name in placed.ranges.items() if name in self._branches}
            if not mine:
                continue
            owners = np.fromiter(mine, np.int32)
            for bucket in every(placed.file.buckets):
                rows = self._opened.rows(placed.file, bucket, ["hash", "owner", "path", "size_bytes", "address"])
                some = rows.filter(pa.array(fits(rows) & np.isin(rows["owner"].to_numpy(), owners)))
                for owner, path, address in zip(
                    *(some[name].to_pylist() for name in ("owner", "path", "address")), strict=True
                ):
                    for branch in self._branches[mine[owner]]:
                        yield branch, decode_path(path), address


def changed(core: LakefsCore, heads: Mapping[str, str]) -> Changed:
    """What differs on each branch from ``heads``; of one that has moved since, nothing that would be sure."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return dict(zip(heads, threads.map(lambda name: _changes(core, name, heads[name]), heads), strict=True))


def _changes(core: LakefsCore, branch: str, head: str) -> list[Change] | None:
    try:
        found = [(path, size) for path, kind, size in core.server.changes(branch) if kind != REMOVED]
    except NotFound:
        found = []
    at = core.server.head_of(branch)
    if at is None:
        return []  # what was staged there is gone with it
    return None if at != head or any(UNSURE in path for path, _ in found) else found


def _flags(addresses: pa.ChunkedArray, wanted: pa.Array) -> Flags:
    found: Flags = pc.is_in(addresses, value_set=wanted).to_numpy(zero_copy_only=False)
    return found


def _listed(core: LakefsCore, branches: Sequence[str], wanted: pa.Array, entries: _Entries) -> pa.Array:
    """Of ``wanted``, what is served anywhere on ``branches``."""
    if not branches:
        return pa.array([], pa.string())
    committed = entries.having(wanted)
    found: set[str] = set()
    for branch in branches:
        for some in _pages(core.server.listing(branch)):
            inside = core.place.inside(pa.array([one.address for one in some], pa.string()))
            for place in np.flatnonzero(_flags(pa.chunked_array([inside]), wanted)).tolist():
                address = inside[place].as_py()
                if (branch, some[place].path, address) not in committed:
                    found.add(address)
    return pa.array(sorted(found), pa.string())


def _pages(served: Iterator[Served]) -> Iterator[list[Served]]:
    while some := list(islice(served, PAGE)):
        yield some


def _among(core: LakefsCore, uris: Sequence[str], wanted: pa.Array) -> pa.Array:
    inside = core.place.inside(pa.array(uris, pa.string())).drop_null()
    return inside.filter(pc.is_in(inside, value_set=wanted))
