"""Three-way merges: what one side changed since the base, made to the other side."""

from collections.abc import Iterator
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.entry import decode_path
from desilt.errors import MergeConflict
from desilt.lake.apply import apply
from desilt.lake.diff import diff
from desilt.lake.staging import CHANGES
from desilt.sstable.columns import identities
from desilt.sstable.ranges import Ranges
from desilt.sstable.records import DIFFERENCES, joined

Strategy = Literal["source-wins", "dest-wins"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def merge(
    ranges: Ranges, *, base: str, source: str, destination: str, strategy: Strategy | None, names: tuple[str, str]
) -> str:
    """The metarange of ``destination`` with what ``source`` changed since ``base``.

    Where both sides changed a key, equal content is no conflict and the
    destination keeps its own; else the strategy decides; else all such keys are
    a :class:`MergeConflict` between ``names``, and no metarange is written.
    """
    changes = _changes(
        diff(ranges, base, source), joined(diff(ranges, base, destination), DIFFERENCES), strategy, names
    )
    return apply(ranges, destination, changes)


def _changes(
    ours: Iterator[pa.RecordBatch], theirs: pa.RecordBatch, strategy: Strategy | None, names: tuple[str, str]
) -> Iterator[pa.RecordBatch]:
    conflicts: list[bytes] = []
    for batch in ours:
        match = pc.index_in(batch["key"], value_set=theirs["key"])
        contested = pc.is_valid(match)
        if pc.any(contested).as_py():
            same = _same_content(batch["right"], theirs["right"].take(match))
            conflict = pc.and_(contested, pc.invert(same))
            if strategy is None:
                conflicts += batch["key"].filter(conflict).to_pylist()
            wanted = conflict if strategy == "source-wins" else pc.and_(conflict, pa.scalar(False))
            batch = batch.filter(pc.or_(pc.invert(contested), wanted))
        if batch.num_rows and not conflicts:
            yield pa.record_batch([batch["key"], batch["right"]], schema=CHANGES)
    if conflicts:
        raise MergeConflict(*names, [decode_path(key) for key in conflicts], len(conflicts))


def _same_content(left: pa.Array, right: pa.Array) -> pa.Array:
    """True where two values have the same identity, or are both gone."""
    there = pc.and_(pc.is_valid(left), pc.is_valid(right))
    both_gone = pc.and_(pc.is_null(left), pc.is_null(right))
    equal = pc.equal(identities(left.filter(there)), identities(right.filter(there)))
    return pc.replace_with_mask(both_gone, there, equal)
