"""What the owner of a repository told a job to do."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from desilt.domain.times import microseconds, moment
from desilt.lake.database import Transaction


def write(tx: Transaction, repository: str, job: str, document: Mapping[str, Any], *, at: datetime) -> None:
    tx.execute(
        "INSERT INTO policies (repository, job, document, set_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (repository, job) DO UPDATE SET document = excluded.document, set_at = excluded.set_at",
        *(repository, job, json.dumps(document), microseconds(at)),
    )


def find(tx: Transaction, repository: str, job: str) -> tuple[Mapping[str, Any], datetime] | None:
    """The policy as it was set, and when."""
    row = tx.one("SELECT document, set_at FROM policies WHERE repository = ? AND job = ?", repository, job)
    return (json.loads(row[0]), moment(row[1])) if row else None
