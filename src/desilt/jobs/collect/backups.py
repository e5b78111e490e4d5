"""Copies of what names all refs and snapshots, as it was before each change: they go by age, and only if asked for.

Nothing reads them but the library's log of operations, and whoever wants the past back. So they go to the trash first.
The newest of each stays, however old: that there is one tells who lost what it is a copy of from who never had it.
"""

from datetime import datetime

import pyarrow as pa

from desilt.domain.times import EPOCH, SECOND
from desilt.errors import BadRequest
from desilt.jobs.collect.folder import listed, written
from desilt.jobs.collect.options import Options
from desilt.jobs.collect.spared import Spared
from desilt.jobs.counts import Counts
from desilt.jobs.job import Work
from desilt.repository.assets import Assets
from desilt.runs.steps import Action

BACKUPS = "backups"


def going(work: Work[Options], assets: Assets, spared: Spared) -> Counts:
    """Those older than was asked for, by the store's clock and by the time in their names."""
    if (age := work.options.backups_older_than) is None:
        return Counts()
    if work.request.action is not Action.TRASH:
        raise BadRequest("--backups-older-than moves copies of history to the trash, and no further; pass --to trash")
    before = (work.run.now - age).replace(microsecond=0)
    files = listed(work.repository, assets.folders.backups, f"older than {age}, and asked for")
    newest: dict[str, datetime] = {}
    for address, at in _named(assets, files.rows):
        newest[of(address)] = max(at or EPOCH, newest.get(of(address), EPOCH))
    rows = files.going(spared.ids(assets.folders.backups), before)
    old = [at is not None and at < min(newest[of(one)], before - SECOND) for one, at in _named(assets, rows)]
    return written(work, BACKUPS, rows.filter(pa.array(old, pa.bool_())))


def of(backup: str) -> str:
    """What it is a copy of: names end in a time and an id."""
    return backup.rsplit(".", 2)[0]


def _named(assets: Assets, rows: pa.Table) -> list[tuple[str, datetime | None]]:
    return [(address, assets.named_at(address)) for address in rows["address"].to_pylist()]
