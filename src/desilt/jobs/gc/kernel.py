"""Inventory against what is held, bucket by bucket, on the executors: the plan, and what it comes to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags
from desilt.columns.breakdown import breakdown
from desilt.columns.buckets import HASH, Bucket, without
from desilt.columns.files import Files, HeldFile, put
from desilt.columns.folders import Uploaded, totals
from desilt.columns.hashing import Hashes, address_hash
from desilt.columns.kernel import Judge
from desilt.columns.layout import Layout
from desilt.columns.mark import ORDER, reasons
from desilt.columns.schemas import DIVIDER, INVENTORY, PLAN
from desilt.columns.settled import below, settled
from desilt.columns.together import add
from desilt.domain.reason import Reason, Verdict
from desilt.errors import NotReadBack
from desilt.jobs.counts import EXAMPLES, Counts, Missing
from desilt.runs import plan_files

GOES = ORDER.index(Reason.UNREFERENCED)
FOR_GOOD = np.isin(ORDER, [Reason.COMMITTED, Reason.FOREIGN])  # by verdict: whether no later run changes it
SAID = {
    "verdict": Verdict.REMOVE.value,
    "reason": Reason.UNREFERENCED.value,
    "detail": "no commit, staging area or ticket holds it",
}
BY_RULES = SAID | {"detail": f"the server's rules{DIVIDER}"}  # nothing that they keep holds it; paths are not known
INVENTORY_ROWS = INVENTORY.insert(0, pa.field(HASH, pa.uint64()))


@dataclass(frozen=True, slots=True)
class GarbageJudge(Judge[Counts]):
    """Every listed object gets a verdict; those that go are written down."""

    layout: Layout
    inventory: tuple[HeldFile, ...]
    held: Mapping[Reason, Sequence[HeldFile]]
    now: datetime  # that ages are counted to
    before: datetime
    copied_at: datetime | None  # what is younger stays, where a database was restored from a copy of then
    folder: str  # the run's: a part of the plan goes there, and of what the next run looks at again
    scope: str = ""  # addresses that do not begin so are not judged, and pass on to the next run
    settled: Mapping[str, str] = field(default_factory=dict)  # by branch: from which partition on nothing new appears
    said: Mapping[str, str] = field(default_factory=lambda: SAID)  # of what goes
    whole: bool = False  # whether what commits hold must all be in the inventory: what is not is counted

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield self.inventory
        yield from self.held.values()

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> Counts:
        none = INVENTORY_ROWS.empty_table()
        counts, plan, pending, passed, gaps = Counts(), [none], [none], 0, Missing()
        for bucket in buckets:
            known = {reason: files.hashes(some, bucket) for reason, some in self.held.items()}
            rows = stored(files, self.inventory, bucket)
            if self.whole:
                gaps += missing(files, self.held[Reason.COMMITTED], bucket, known[Reason.COMMITTED], rows)
            if self.scope:
                mine = below(rows, self.scope)
                pending.append(rows.filter(pa.array(~mine)))
                passed += pending[-1].num_rows
                rows = rows.filter(pa.array(mine))
            found = reasons(rows, known, layout=self.layout, before=self.before, copied_at=self.copied_at)
            over = settled(rows, self.settled, self.layout)
            count_kept(counts, rows, found, over, self.layout)
            plan.append(rows.filter(pa.array(found == GOES)))
            if over.any():
                pending.append(rows.filter(pa.array(over & ~FOR_GOOD[found] & (found != GOES))))
        gone = pa.concat_tables(plan).unify_dictionaries().combine_chunks()
        uploaded = count_gone(counts, gone, self.layout)
        name = f"part-{buckets[0].number:05d}.parquet"
        plan_rows = going(gone, self.said)
        planned = plan_files.write(files.store, f"{self.folder}plan/{name}", plan_rows)
        left = pa.concat_tables(pending).unify_dictionaries().combine_chunks()
        order = np.argsort(left[HASH].to_numpy(), kind="stable")
        target = f"{self.folder}pending/{name}"
        again = [put(files.store, target, left.take(pa.array(order)))] if left.num_rows else []
        parts = breakdown(plan_rows, self.layout, self.now, uploaded)
        return counts + Counts(gone=parts, passed=passed, files=planned, pending=tuple(again), missing=gaps)


def stored(files: Files, listed: Sequence[HeldFile], bucket: Bucket) -> pa.Table:
    """All listed objects of a bucket: what is done once for all of them costs no more with many files than with one."""
    found = [files.rows(one, bucket, INVENTORY_ROWS.names) for one in listed]
    return pa.concat_tables([INVENTORY_ROWS.empty_table(), *found]).unify_dictionaries()


def missing(files: Files, held: Sequence[HeldFile], bucket: Bucket, known: Hashes, rows: pa.Table) -> Missing:
    """The objects that are ``held``, with hashes ``known``, and not among the ``rows`` of a bucket; some by address."""
    lost = np.unique(without(known, np.sort(rows[HASH].to_numpy())))
    examples: set[str] = set()
    for file in held if len(lost) else ():
        mine = files.rows(file, bucket, [HASH, "address"])
        found = mine["address"].filter(pa.array(np.isin(mine[HASH].to_numpy(), lost)))
        examples |= set(found.slice(0, EXAMPLES).to_pylist())
    return Missing(len(lost), tuple(sorted(examples)[:EXAMPLES]))


def going(gone: pa.Table, said: Mapping[str, str] = SAID, called: pa.Array | None = None) -> pa.Table:
    """INVENTORY rows that go, as PLAN; ``called`` are their addresses, where they are known."""
    addresses = addresses_of(gone).combine_chunks() if called is None else called
    if not np.array_equal(address_hash(addresses), gone[HASH].to_numpy()):
        raise NotReadBack("inventory", "an address is not the one that was listed")
    columns = [addresses, gone["size_bytes"], gone["modified_at"]]
    columns += [pa.repeat(text, gone.num_rows) for text in said.values()]
    return pa.table(columns, schema=PLAN)


def addresses_of(rows: pa.Table) -> pa.ChunkedArray:
    """The whole addresses of INVENTORY rows."""
    return pc.binary_join_element_wise(rows["folder"].cast(pa.string()), rows["name"], "")


def count_kept(counts: Counts, rows: pa.Table, found: npt.NDArray[np.int8], over: Flags, layout: Layout) -> None:
    """Add to ``counts`` what stays, by reason, and what of it no later run need look at."""
    sizes = rows["size_bytes"].to_numpy()
    for place in np.flatnonzero(np.bincount(found)).tolist():
        if ORDER[place].verdict is Verdict.KEEP:
            mine = found == place
            counts.objects["", ORDER[place].value] += int(np.count_nonzero(mine))
            counts.bytes["", ORDER[place].value] += int((sizes * mine).sum())
    for_good = over & FOR_GOOD[found]
    if for_good.any():
        mine = rows["folder"].combine_chunks().filter(pa.array(for_good))
        done = totals(mine, sizes[for_good], layout)
        add(counts.done_objects, zip(done.groups, done.objects, strict=True))
        add(counts.done_bytes, zip(done.groups, done.bytes, strict=True))


def count_gone(counts: Counts, gone: pa.Table, layout: Layout, reason: Reason = Reason.UNREFERENCED) -> Uploaded:
    """Add what goes, by branch; and what that is."""
    found = totals(gone["folder"].combine_chunks(), gone["size_bytes"].to_numpy(), layout)
    value = reason.value  # looked up once: there may be thousands of branches
    said = [(group, value) for group in found.groups]
    add(counts.objects, zip(said, found.objects, strict=True))
    add(counts.bytes, zip(said, found.bytes, strict=True))
    return found
