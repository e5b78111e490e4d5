"""Where the next run of a job begins: what the last one that really swept left to it."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from desilt.records.database import Transaction


def find(tx: Transaction, repository: str, job: str) -> tuple[str, Mapping[str, Any]] | None:
    """The run that wrote it, and what it wrote."""
    row = tx.one("SELECT run, value FROM watermarks WHERE repository = ? AND job = ?", repository, job)
    return (str(row[0]), json.loads(row[1])) if row else None


def every(tx: Transaction, repository: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The same of all jobs."""
    rows = tx.rows("SELECT run, value FROM watermarks WHERE repository = ? ORDER BY job", repository)
    return [(str(run), json.loads(value)) for run, value in rows]


def write(tx: Transaction, repository: str, job: str, run: str, value: Mapping[str, Any]) -> None:
    tx.execute(
        "INSERT INTO watermarks (repository, job, run, value) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (repository, job) DO UPDATE SET run = excluded.run, value = excluded.value",
        *(repository, job, run, json.dumps(value)),
    )


def forget_all(tx: Transaction, repository: str) -> None:
    """The next run of every job does."""
    for (job,) in tx.rows("SELECT job FROM watermarks WHERE repository = ?", repository):
        forget(tx, repository, job)


def forget(tx: Transaction, repository: str, job: str) -> None:
    """The next run looks at everything again. The row stays, under a name that no plan has seen."""
    write(tx, repository, job, f"none-{secrets.token_hex(4)}", {})
