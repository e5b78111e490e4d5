"""What holds something by now: staged and committed, read again from the server.

Nothing can be condemned there, so what was read before a plan is read again right before its objects go, and once more
as soon as that is some seconds old. What commits hold that verdicts took into account need not be read twice: tables
never change. Verdicts by rules are judged again by those, with refs as they are now.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from desilt.cache.ranges import Placed
from desilt.clock import elapsed
from desilt.columns.arrays import Flags
from desilt.columns.buckets import every, present
from desilt.columns.files import Files
from desilt.columns.hashing import Hashes, address_hash
from desilt.columns.runs import distinct
from desilt.columns.schemas import DIVIDER
from desilt.domain.moved import Refs, kept_by_now
from desilt.domain.times import CLOCK_MARGIN, seconds
from desilt.errors import DamagedRun
from desilt.executors.executor import HERE
from desilt.lakefs import history, server_rules
from desilt.lakefs.core import LakefsCore
from desilt.lakefs.layout import LAYOUT
from desilt.lakefs.server_rules import SERVER, kept_by
from desilt.lakefs.source import LakefsSource
from desilt.lakefs.staged import staged_now
from desilt.records.holds import HoldKind
from desilt.repository.gate import Reliance, Rules
from desilt.repository.looks import Looks
from desilt.repository.policy import manner
from desilt.repository.snapshot import Revision, Snapshot
from desilt.sstable.values import RangeData


class LakefsHeld:
    """What is held by now, whatever verdicts have not taken into account."""

    def __init__(
        self,
        core: LakefsCore,
        run: str,
        since: Revision,
        relies_on: Reliance,
        *,
        swept: bool = False,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        self._core, self._run, self._since, self._relies_on, self._swept = core, run, since, relies_on, swept
        self._source = LakefsSource(core, HERE)
        self._looks = Looks(core, run, since, relies_on, swept=swept, clock=clock)
        self._judged: set[str] | None = None
        self._read: set[str] = set()  # tables
        self._committed: Hashes = np.zeros(0, np.uint64)
        self._now: Hashes = np.zeros(0, np.uint64)  # staged, or ordered to be kept
        self._prefixes: tuple[str, ...] = ()
        self._seen: Snapshot | None = None

    @property
    def generation(self) -> int:
        """Of what was seen last."""
        return self._looks.number

    def catch_up(self) -> None:
        """Read all that may hold something, unless that was done a moment ago. Staged first: it moves to commits."""
        if self._looks.is_fresh(self._source.seconds_looked):
            return
        with self._looks.look():
            staged = address_hash(staged_now(self._core))
            seen = history.read(self._core, min(self._relies_on.at, self._core.clock()))
            self._looks.check(seen.revision)
            self._add(self._holding(seen))
            ordered = pa.array([hold.value for hold in seen.held(HoldKind.ADDRESS)], pa.string())
            self._now = distinct(np.concatenate([staged, address_hash(ordered)]))
            self._prefixes = tuple(hold.value for hold in seen.held(HoldKind.PREFIX))
            self._seen = seen

    def holds(self, rows: pa.Table) -> Flags:
        """Which of a plan's rows are held, or so young that somebody may be about to."""
        hashes = address_hash(rows["address"].combine_chunks())
        found = present(hashes, self._now) | present(hashes, self._committed)
        if self._prefixes and self._relies_on.rules is not None:
            paths = [text.split(DIVIDER)[1:] for text in rows["detail"].to_pylist()]
            found |= np.array([any(path.startswith(self._prefixes) for path in some) for some in paths], np.bool_)
        if self._relies_on.rules is None or self._relies_on.judged is None:
            found |= self._young(rows)
        return found | self._served(rows.filter(pa.array(~found)), hashes)

    def _served(self, rows: pa.Table, hashes: Hashes) -> Flags:
        """Which a branch serves, though nothing lists it."""
        assert self._seen is not None
        found: Flags = np.isin(hashes, address_hash(self._source.served(self._seen, rows)))
        return found

    def _young(self, rows: pa.Table) -> Flags:
        """Which somebody may still be uploading, or about to link, by the times in their names or by the store's."""
        before = self._core.clock() - self._core.grace - CLOCK_MARGIN
        addresses = rows["address"].combine_chunks()
        objects = LAYOUT.objects(addresses)
        found: Flags = objects.copy()
        found[objects] = LAYOUT.address_seconds(addresses.filter(pa.array(objects))) >= seconds(before)
        return found | np.array([at is None or at >= before for at in rows["modified_at"].to_pylist()], np.bool_)

    def _holding(self, seen: Snapshot) -> dict[str, RangeData]:
        """The tables whose entries hold, but for those that verdicts took into account."""
        rules = self._relies_on.rules if self._relies_on.judged is not None else None
        if rules is None or rules.job == SERVER:
            kept = set(seen.commits) if rules is None else self._by_rules(rules, seen)
            found = self._source.lists([seen.commits[name] for name in sorted(kept)]).ranges
            return {name: found[name] for name in found.keys() - self._known()}
        ordered = {hold.value for hold in seen.held(HoldKind.REF)} & seen.commits.keys()
        return self._source.lists([seen.commits[name] for name in sorted(ordered)]).ranges | self._moved(rules, seen)

    def _by_rules(self, rules: Rules, seen: Snapshot) -> set[str]:
        """The commits that the server's rules keep; of what was swept long ago, those too that today's would."""
        kept = kept_by(rules.document, seen, self._relies_on.at) | self._source.ordered(seen)
        if not self._swept:
            server_rules.check(self._core.server, self._run, rules.document)
            return kept
        return kept | server_rules.kept_now(self._core.server, rules.document, seen, self._relies_on.at)

    def _moved(self, rules: Rules, seen: Snapshot) -> dict[str, RangeData]:
        """What refs that moved since the plan keep by now, but for what was judged with their bases."""
        then = Refs(rules.branches, rules.tags)
        now = Refs({branch.name: branch.head for branch in seen.branches}, {tag.name: tag.target for tag in seen.tags})
        new = history.made_since(self._core, self._since, seen)
        if now == then and not new:
            return {}
        found: dict[str, RangeData] = {}
        for one in kept_by_now(manner(rules), then, now, parents=seen.parents, new=new):
            bases = {listed.id for base in one.bases for listed in self._source.tables_of(seen.commits[base])}
            mine = self._source.tables_of(seen.commits[one.commit])
            found |= {listed.id: listed for listed in mine if listed.id not in bases}
        return found

    def _add(self, tables: dict[str, RangeData]) -> None:
        new = [tables[name] for name in sorted(tables.keys() - self._read)]
        for placed in self._source.entries(new) if new else ():
            self._committed = distinct(np.concatenate([self._committed, self._hashes(placed)]))
        self._read |= tables.keys()

    def _hashes(self, placed: Placed) -> Hashes:
        opened = Files(self._core.store)
        found = [opened.hashes([placed.held], bucket) for bucket in every(placed.file.buckets)]
        return np.concatenate([np.zeros(0, np.uint64), *found])

    def _known(self) -> set[str]:
        """The tables that verdicts took into account; none, where nobody vouches for any."""
        judged = self._relies_on.judged
        if judged is None:
            return set()
        if self._judged is None:
            data = judged.read(self._core.store)
            if data is None:
                raise DamagedRun(judged.key, "is not what was planned")
            self._judged = set(data.decode().split())
        return self._judged
