"""What is staged, and no list of uncommitted objects has it.

An upload of the bytes that its path has in the branch's commit changes nothing that a server compares; so it is listed
nowhere, and the branch serves it all the same. Of candidates, only those can be such uploads whose size some head's
entry has: at each such path, the branch is asked what it serves. Where that would be more requests than to list those
branches whole, they are listed. A local blockstore leaves out more, and there every branch is listed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import Placed
from desilt.columns.buckets import every
from desilt.columns.files import Files
from desilt.domain.entry import decode_path
from desilt.lakefs.core import Core
from desilt.lakefs.server import PAGE
from desilt.logs import logger
from desilt.objects.store import ObjectStore

AT_ONCE = 8  # requests
LISTED_WHOLE = "local"  # the blockstore that keeps whole addresses
Sizes = npt.NDArray[np.int64]
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


def served(core: Core, heads: Sequence[Head], files: Sequence[Placed], rows: pa.Table) -> pa.Array:
    """Of candidates, as PLAN, the addresses that some branch serves."""
    if not rows.num_rows:
        return pa.array([], pa.string())
    wanted = rows["address"].combine_chunks()
    if core.blockstore == LISTED_WHOLE:
        return _listed(core, [head.branch for head in heads], wanted)
    sizes = np.unique(rows["size_bytes"].to_numpy())
    asked = _questions(core.store, heads, files, sizes)
    whole = {head.branch for head in heads if len(asked.get(head.branch, ())) > head.pages}
    pairs = [(branch, path) for branch, paths in asked.items() if branch not in whole for path in paths]
    log.info("%s paths are asked for, %s branches listed", len(pairs), len(whole))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(lambda pair: core.server.served(*pair), pairs)
        found = [answer.address for answer in answers if answer is not None]
    held = _among(core, pa.array(found, pa.string()), wanted)
    return pa.concat_arrays([held, _listed(core, sorted(whole), wanted)])


def _questions(
    store: ObjectStore, heads: Sequence[Head], files: Iterable[Placed], sizes: Sizes
) -> Mapping[str, list[str]]:
    """By branch: the paths of its commit's entries that have one of ``sizes``."""
    found: dict[str, list[str]] = {}
    branches: dict[str, list[str]] = {}
    for head in heads:
        for name in head.ranges:
            branches.setdefault(name, []).append(head.branch)
    for name, path in _matching(store, files, branches.keys(), sizes):
        for branch in branches[name]:
            found.setdefault(branch, []).append(path)
    return found


def _matching(
    store: ObjectStore, files: Iterable[Placed], ranges: Iterable[str], sizes: Sizes
) -> Iterator[tuple[str, str]]:
    """Range and path of cached entries of such a size."""
    opened, counted = Files(store), set(ranges)
    for placed in files:
        mine = {owner: name for owner, name in placed.ranges.items() if name in counted}
        if not mine:
            continue
        owners = np.fromiter(mine, np.int32)
        for bucket in every(placed.file.buckets):
            rows = opened.rows(placed.file, bucket, ["hash", "owner", "path", "size_bytes"])
            fits = np.isin(rows["size_bytes"].to_numpy(), sizes) & np.isin(rows["owner"].to_numpy(), owners)
            some = rows.filter(pa.array(fits))
            for owner, path in zip(some["owner"].to_pylist(), some["path"].to_pylist(), strict=True):
                yield mine[owner], decode_path(path)


def _listed(core: Core, branches: Sequence[str], wanted: pa.Array) -> pa.Array:
    """Of ``wanted``, what is served anywhere on ``branches``."""
    found = [pa.array([], pa.string())]
    for branch in branches:
        addresses = [one.address for one in core.server.listing(branch)]
        found.append(_among(core, pa.array(addresses, pa.string()), wanted))
    return pc.unique(pa.concat_arrays(found))


def _among(core: Core, uris: pa.Array, wanted: pa.Array) -> pa.Array:
    inside = core.place.inside(uris).drop_null()
    return inside.filter(pc.is_in(inside, value_set=wanted))
