"""What the owner of a repository told a job to do."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from desilt.domain.times import microseconds, moment
from desilt.records.database import Transaction


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy as it was set."""

    document: Mapping[str, Any]
    set_at: datetime
    agreed: frozenset[str]  # what lint wanted a yes to then, and got


def write(
    tx: Transaction, repository: str, job: str, document: Mapping[str, Any], agreed: Iterable[str], *, at: datetime
) -> None:
    tx.execute(
        "INSERT INTO policies (repository, job, document, set_at, agreed) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (repository, job) DO UPDATE SET document = excluded.document, set_at = excluded.set_at, "
        "agreed = excluded.agreed",
        *(repository, job, json.dumps(document), microseconds(at), json.dumps(sorted(agreed))),
    )


def find(tx: Transaction, repository: str, job: str) -> PolicyRow | None:
    """The policy that a job goes by."""
    row = tx.one("SELECT document, set_at, agreed FROM policies WHERE repository = ? AND job = ?", repository, job)
    return PolicyRow(json.loads(row[0]), moment(row[1]), frozenset(json.loads(row[2]))) if row else None
