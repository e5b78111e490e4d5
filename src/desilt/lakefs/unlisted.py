"""What is staged, and no list of uncommitted objects has it.

An upload of the bytes that its path has in the branch's commit changes nothing that a server compares; so it is listed
nowhere, and the branch serves it all the same. Of candidates, only those can be such uploads whose size some head's
entry has: at each such path, the branch is asked what it serves. Where that would be more requests than to list those
branches whole, they are listed. A local blockstore leaves out more, and there every branch is listed.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import Placed
from desilt.columns.buckets import HASH, Bucket, every
from desilt.columns.files import Files, among
from desilt.columns.hashing import address_hash
from desilt.domain.entry import decode_path
from desilt.lakefs.branches import PAGE
from desilt.lakefs.core import LakefsCore
from desilt.logs import logger
from desilt.objects.store import ObjectStore

AT_ONCE = 8  # requests
LISTED_WHOLE = "local"  # the blockstore that keeps whole addresses
Sizes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
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


def served(core: LakefsCore, heads: Sequence[Head], files: Sequence[Placed], rows: pa.Table) -> pa.Array:
    """Of candidates, as PLAN, the addresses that some branch serves, and not because its commit has them."""
    if not rows.num_rows:
        return pa.array([], pa.string())
    wanted, entries = rows["address"].combine_chunks(), _Entries(core.store, heads, files)
    if core.blockstore == LISTED_WHOLE:
        return _listed(core, [head.branch for head in heads], wanted, entries)
    sizes = np.unique(rows["size_bytes"].to_numpy())
    counts = entries.alike(sizes, wanted)
    whole = [head for head in heads if sum(counts.get(name, 0) for name in head.ranges) > head.pages]
    pairs = entries.paths(sizes, wanted, except_of={head.branch for head in whole})
    log.info("%s paths are asked for, %s branches listed", len(pairs), len(whole))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(lambda pair: core.server.served(*pair), pairs)
        found = [answer.address for answer in answers if answer is not None]
    listed = _listed(core, [head.branch for head in whole], wanted, entries)
    return pa.concat_arrays([_among(core, found, wanted), listed])


class _Entries:
    """What the commits at the heads of branches have."""

    def __init__(self, store: ObjectStore, heads: Sequence[Head], files: Iterable[Placed]) -> None:
        self._opened, self._files = Files(store), files
        self._branches: dict[str, list[str]] = {}  # by range
        for head in heads:
            for name in head.ranges:
                self._branches.setdefault(name, []).append(head.branch)

    def alike(self, sizes: Sizes, wanted: pa.Array) -> Counter[str]:
        """By range: how many entries have one of ``sizes``, and are not ``wanted`` themselves; or a little less."""
        found, hashes = Counter[str](), address_hash(wanted)
        for placed, bucket, mine in self._parts(self._branches):
            rows = self._opened.rows(placed.file, bucket, [HASH, "owner", "size_bytes"])
            fits = np.isin(rows["size_bytes"].to_numpy(), sizes) & ~np.isin(rows[HASH].to_numpy(), hashes)
            counts = np.bincount(rows["owner"].to_numpy()[fits])
            found.update({name: int(counts[owner]) for owner, name in mine.items() if owner < len(counts)})
        return found

    def paths(self, sizes: Sizes, wanted: pa.Array, *, except_of: Set[str]) -> list[tuple[str, str]]:
        """Branches and the paths of such entries, but for those of some branches."""
        asked = {name: [one for one in some if one not in except_of] for name, some in self._branches.items()}
        asked = {name: some for name, some in asked.items() if some}
        found = []
        for placed, bucket, mine in self._parts(asked):
            rows = self._opened.rows(placed.file, bucket, [HASH, "owner", "path", "size_bytes", "address"])
            fits = among(rows["owner"].to_numpy(), mine.keys()) & np.isin(rows["size_bytes"].to_numpy(), sizes)
            some = rows.filter(pa.array(fits & ~_flags(rows["address"], wanted)))
            for owner, path in zip(some["owner"].to_pylist(), some["path"].to_pylist(), strict=True):
                told = decode_path(path)
                found += [(branch, told) for branch in asked[mine[owner]]]
        return found

    def having(self, wanted: pa.Array) -> set[tuple[str, str, str]]:
        """Branch, path and address of entries that have one of ``wanted``."""
        found, hashes = set[tuple[str, str, str]](), address_hash(wanted)
        for placed, bucket, mine in self._parts(self._branches):
            if not np.isin(self._opened.rows(placed.file, bucket, [HASH]).column(HASH).to_numpy(), hashes).any():
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


def _listed(core: LakefsCore, branches: Sequence[str], wanted: pa.Array, entries: _Entries) -> pa.Array:
    """Of ``wanted``, what is served anywhere on ``branches``."""
    if not branches:
        return pa.array([], pa.string())
    committed = entries.having(wanted)
    known: dict[str, str | None] = {}  # branches have most addresses in common

    def found_on(branch: str) -> set[str]:
        found = set[str]()
        for page in core.server.places(branch):
            new = [uri for _, uri in page if uri not in known]
            inside = core.place.inside(pa.array(new, pa.string()))
            told = pc.if_else(_flags(inside, wanted), inside, pa.scalar(None, pa.string()))
            known.update(zip(new, told.to_pylist(), strict=True))
            hits = [(path, address) for path, uri in page if (address := known[uri]) is not None]
            found |= {address for path, address in hits if (branch, path, address) not in committed}
        return found

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return pa.array(sorted(set[str]().union(*threads.map(found_on, branches))), pa.string())


def _among(core: LakefsCore, uris: Sequence[str], wanted: pa.Array) -> pa.Array:
    inside = core.place.inside(pa.array(uris, pa.string())).drop_null()
    return inside.filter(pc.is_in(inside, value_set=wanted))
