"""The tombstones of a batch, written together: a row costs no statement of its own."""

import json
from collections.abc import Mapping
from datetime import datetime

from desilt.domain.times import microseconds
from desilt.records.database import Transaction
from desilt.records.removals import COLUMNS, PASSING, State


def condemn(
    tx: Transaction, repository: str, run: str, batch: int, rules: Mapping[str, Mapping[str, int]], *, at: datetime
) -> None:
    """Write tombstones of sizes by address by rule; an address that has one passes to the run that condemns it now."""
    for rule, sizes in rules.items():
        tx.execute(
            f"INSERT INTO tombstones (repository, {COLUMNS}) "
            f"SELECT ?, given.key, ?, ?, ?, CAST(given.value AS BIGINT), ?, ? FROM {tx.pairs} AS given "
            f"WHERE true {PASSING}",
            *(repository, run, rule, microseconds(at), batch, State.CONDEMNED, json.dumps(sizes, ensure_ascii=False)),
        )
