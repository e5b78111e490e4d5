"""The files of one kind that history consists of, as the store lists them; thousands, on the driver.

Each gets a verdict: it lives, it is young by the store's clock, or it goes. What has a name that such files do not have
stays, and is counted.
"""

from collections import Counter
from collections.abc import Collection, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.schemas import MOMENT, PLAN
from desilt.domain.reason import Reason, Verdict
from desilt.errors import Dangling
from desilt.inventory.listing import addresses_below
from desilt.jobs.collect.options import Options
from desilt.jobs.counts import Counts
from desilt.jobs.job import Work
from desilt.repository.protocol import Repository
from desilt.runs import plan_files
from desilt.runs.report import Amount


@dataclass(frozen=True)
class AssetFiles:
    """What lies in one folder."""

    folder: str
    rows: pa.Table  # PLAN, each as if it went
    foreign: int  # files besides

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self._ids())

    @property
    def amount(self) -> Amount:
        return Amount(self.rows.num_rows, pc.sum(self.rows["size_bytes"]).as_py() or 0)

    def young(self, before: datetime) -> set[str]:
        """The ids of those that are not from before ``before``; what has no time is young."""
        return {name for name, old in zip(self._ids(), self._old(before).to_pylist(), strict=True) if not old}

    def check(self, needed: Set[str], what: str) -> None:
        """Refuse to go on where some that are needed are not listed: the store tells of a part, or has lost them."""
        if missing := sorted(needed - self.names):
            raise Dangling(what, len(missing), [self.folder + name for name in missing])

    def going(self, live: Collection[str], before: datetime) -> pa.Table:
        """Those from before ``before`` that are not ``live``."""
        dead = pa.array([name not in live for name in self._ids()], pa.bool_())
        return self.rows.filter(pc.and_(dead, self._old(before))).combine_chunks()

    def _ids(self) -> list[str]:
        return [address.removeprefix(self.folder) for address in self.rows["address"].to_pylist()]

    def _old(self, before: datetime) -> pa.Array:
        old = pc.less(self.rows["modified_at"].combine_chunks(), pa.scalar(before, MOMENT))
        return pc.fill_null(old, False)


def listed(repository: Repository, folder: str, detail: str) -> AssetFiles:
    """All that lies in ``folder``; ``detail`` is why what goes of it does."""
    found, foreign = [PLAN.empty_table()], 0
    for batch in repository.store.list(repository.prefix + folder):
        addresses = addresses_below(batch["key"], repository.prefix)
        said = (Verdict.REMOVE.value, Reason.COLLECTED.value, detail)
        columns = [addresses, batch["size_bytes"], batch["modified_at"].cast(MOMENT)]
        columns += [pa.repeat(text, len(addresses)) for text in said]
        ours = pa.table(columns, schema=PLAN).filter(pa.array(repository.layout.tables_among(addresses)))
        foreign += len(addresses) - ours.num_rows
        found.append(ours)
    return AssetFiles(folder, pa.concat_tables(found).combine_chunks(), foreign)


def written(work: Work[Options], group: str, rows: pa.Table) -> Counts:
    """Files that go, as a part of the plan; in figures they are one ``group``."""
    if not rows.num_rows:
        return Counts()
    key, what = f"{work.folder}plan/{group.replace(' ', '-')}.parquet", (group, Reason.COLLECTED.value)
    files = plan_files.write(work.repository.store, key, rows)
    return Counts(Counter({what: rows.num_rows}), Counter({what: sum(one.bytes for one in files)}), files=files)
