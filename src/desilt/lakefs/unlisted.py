"""What is staged, and no list of uncommitted objects has it.

An upload of the bytes that its path has in the branch's commit changes nothing that a server compares; so it is listed
nowhere, and the branch serves it all the same. Of candidates, only those can be such uploads whose size some head's
entry has, wherever its own object is. Nor is a whole address listed that leads inside by another spelling: those can be
at paths that differ from the commit, with an entry of that size. At each such path, the branch is asked what it serves.
Where that would be more requests than to list those branches whole, they are listed. A local blockstore leaves out
more, and there every branch is listed.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import Placed
from desilt.columns.arrays import Flags
from desilt.columns.buckets import HASH, Bucket, every, present
from desilt.columns.files import Files, among
from desilt.columns.hashing import Hashes, address_hash
from desilt.domain.entry import decode_path
from desilt.lakefs.branches import PAGE
from desilt.lakefs.core import LakefsCore
from desilt.lakefs.inquiry import AT_ONCE, Inquiry
from desilt.logs import logger
from desilt.objects.store import ObjectStore

LISTED_WHOLE = "local"  # the blockstore that keeps whole addresses
Sizes = npt.NDArray[np.int64]
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
    inquiry: Inquiry,
) -> pa.Array:
    """Of candidates, as PLAN, the addresses that some branch serves, and not because its commit has them."""
    if not rows.num_rows:
        return pa.array([], pa.string())
    wanted, entries = rows["address"].combine_chunks(), _Entries(core.store, heads, files)
    if core.blockstore == LISTED_WHOLE:
        return _listed(core, [head.branch for head in heads], wanted, entries, inquiry)
    sizes, how_many = np.unique(rows["size_bytes"].to_numpy(), return_counts=True)
    alike = _Alike(sizes, sizes[how_many == 1], wanted)
    besides = set(entries.paths_outside(sizes, outside)) | set(_changed_to(inquiry, set(sizes.tolist())))
    more, counts = Counter(branch for branch, _ in besides), entries.count(alike)
    whole = {
        head.branch
        for head in heads
        if sum(counts[name] for name in head.ranges) + more[head.branch] > head.pages
        or inquiry.changed.get(head.branch, ()) is None
    }
    pairs = sorted({*entries.paths(alike, except_of=whole), *(one for one in besides if one[0] not in whole)})
    log.info("%s paths are asked for, %s branches listed", len(pairs), len(whole))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(lambda pair: core.server.served(*pair), pairs)
        found = [answer.address for answer in answers if answer is not None]
    return pa.concat_arrays([_among(core, found, wanted), _listed(core, sorted(whole), wanted, entries, inquiry)])


def _changed_to(inquiry: Inquiry, sizes: Container[int]) -> Iterator[tuple[str, str]]:
    """Branch and path of what was put somewhere, and has one of ``sizes``."""
    for branch, changes in inquiry.changed.items():
        yield from ((branch, path) for path, size in changes or () if size is None or size in sizes)


class _Alike:
    """Which entries have the size of a candidate; but for one that is itself the only candidate of its size, for then
    no other can be there."""

    def __init__(self, sizes: Sizes, alone: Sizes, wanted: pa.Array) -> None:
        self._sizes, self._alone = np.sort(_words(sizes)), np.sort(_words(alone))
        self._wanted, self._hashes = wanted, np.sort(address_hash(wanted))

    def rows(self, rows: pa.Table) -> Flags:
        theirs = _words(rows["size_bytes"].to_numpy())
        return present(theirs, self._sizes) & ~(present(theirs, self._alone) & _flags(rows["address"], self._wanted))

    def about(self, rows: pa.Table) -> Flags:
        """The same, or a little less, by hashes alone."""
        theirs, hashes = _words(rows["size_bytes"].to_numpy()), rows[HASH].to_numpy()
        return present(theirs, self._sizes) & ~(present(theirs, self._alone) & present(hashes, self._hashes))


def _words(sizes: Sizes) -> Hashes:
    """Sizes as what can be looked up among sorted ones."""
    return np.ascontiguousarray(sizes, np.int64).view(np.uint64)


class _Entries:
    """What the commits at the heads of branches have."""

    def __init__(self, store: ObjectStore, heads: Sequence[Head], files: Iterable[Placed]) -> None:
        self._opened, self._files = Files(store), files
        self._branches: dict[str, list[str]] = {}  # by range
        for head in heads:
            for name in head.ranges:
                self._branches.setdefault(name, []).append(head.branch)

    def count(self, alike: _Alike) -> Counter[str]:
        """By range: how many entries are ``alike``, about."""
        found = Counter[str]()
        for placed, bucket, mine in self._parts(self._branches):
            rows = self._opened.rows(placed.file, bucket, [HASH, "owner", "size_bytes"])
            counts = np.bincount(rows["owner"].to_numpy()[alike.about(rows)])
            found.update({name: int(counts[owner]) for owner, name in mine.items() if owner < len(counts)})
        return found

    def paths(self, alike: _Alike, *, except_of: Set[str]) -> Iterator[tuple[str, str]]:
        """Branches and the paths of such entries, but for those of some branches."""
        asked = {name: [one for one in some if one not in except_of] for name, some in self._branches.items()}
        asked = {name: some for name, some in asked.items() if some}
        for placed, bucket, mine in self._parts(asked):
            rows = self._opened.rows(placed.file, bucket, [HASH, "owner", "path", "size_bytes", "address"])
            some = rows.filter(pa.array(among(rows["owner"].to_numpy(), mine.keys()) & alike.rows(rows)))
            for owner, path in zip(some["owner"].to_pylist(), some["path"].to_pylist(), strict=True):
                yield from ((branch, decode_path(path)) for branch in asked[mine[owner]])

    def paths_outside(self, sizes: Sizes, outside: Outside) -> Iterator[tuple[str, str]]:
        """Branch and path of entries that have one of ``sizes``, and whose objects lie elsewhere."""
        names = {name for placed in self._files for name in placed.elsewhere} & self._branches.keys()
        for name in sorted(names):
            for path in outside(name, sizes):
                yield from ((branch, path) for branch in self._branches[name])

    def having(self, wanted: pa.Array) -> set[tuple[str, str, str]]:
        """Branch, path and address of entries that have one of ``wanted``."""
        found, hashes = set[tuple[str, str, str]](), np.sort(address_hash(wanted))
        for placed, bucket, mine in self._parts(self._branches):
            if not present(self._opened.rows(placed.file, bucket, [HASH])[HASH].to_numpy(), hashes).any():
                continue
            rows = self._opened.rows(placed.file, bucket, [HASH, "owner", "path", "address"])
            fits = among(rows["owner"].to_numpy(), mine.keys()) & _flags(rows["address"], wanted)
            columns = (rows.filter(pa.array(fits))[name].to_pylist() for name in ("owner", "path", "address"))
            for owner, path, address in zip(*columns, strict=True):
                found |= {(branch, decode_path(path), address) for branch in self._branches[mine[owner]]}
        return found

    def _parts(self, names: Container[str]) -> Iterator[tuple[Placed, Bucket, dict[int, str]]]:
        """The buckets of files that have any of these ranges, and which owners those are."""
        for placed in self._files:
            if mine := {owner: name for owner, name in placed.ranges.items() if name in names}:
                yield from ((placed, bucket, mine) for bucket in every(placed.file.buckets))


def _flags(addresses: pa.ChunkedArray | pa.Array, wanted: pa.Array) -> Flags:
    found: Flags = pc.is_in(addresses, value_set=wanted).to_numpy(zero_copy_only=False)
    return found


def _listed(
    core: LakefsCore, branches: Sequence[str], wanted: pa.Array, entries: _Entries, inquiry: Inquiry
) -> pa.Array:
    """Of ``wanted``, what is served anywhere on ``branches``."""
    if not branches:
        return pa.array([], pa.string())
    there = wanted.filter(pa.array(present(address_hash(wanted), inquiry.listed(branches))))
    committed = entries.having(there)
    theirs = pa.array(sorted({address for _, _, address in committed}), pa.string())
    is_theirs = pc.is_in(there, value_set=theirs)
    return pa.concat_arrays([there.filter(pc.invert(is_theirs)), _moved(core, branches, theirs, committed)])


def _moved(
    core: LakefsCore, branches: Sequence[str], wanted: pa.Array, committed: Set[tuple[str, str, str]]
) -> pa.Array:
    """Of addresses that some head's commit has, those that a branch serves elsewhere than there."""
    if not len(wanted):
        return wanted

    def found_on(branch: str) -> set[str]:
        found = set[str]()
        for page in core.server.places(branch):
            inside = core.place.inside(page.addresses)
            for place in np.flatnonzero(_flags(inside, wanted)).tolist():
                address = inside[place].as_py()
                if (branch, page.paths[place].as_py(), address) not in committed:
                    found.add(address)
        return found

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return pa.array(sorted(set[str]().union(*threads.map(found_on, branches))), pa.string())


def _among(core: LakefsCore, uris: Sequence[str], wanted: pa.Array) -> pa.Array:
    inside = core.place.inside(pa.array(uris, pa.string())).drop_null()
    return inside.filter(pc.is_in(inside, value_set=wanted))
