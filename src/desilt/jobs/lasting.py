"""What a lifecycle run leaves to the next: what it applied, who reached which commit, and what is deferred."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from desilt.domain.cutoffs import Cutoff
from desilt.domain.potential import Last
from desilt.domain.run import Run
from desilt.errors import CorruptTable, NotFound
from desilt.lake import ledger, watermarks
from desilt.lake.database import Transaction
from desilt.lake.ledger import RunState
from desilt.lake.repository import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan
from desilt.sources.held import HeldFile, from_json

VERSION = 1


@dataclass(frozen=True, slots=True)
class Lasting:
    """Where to go on; empty, every commit is looked into."""

    run: str = ""
    last: Last | None = None
    deferred: tuple[HeldFile, ...] = ()


nothing = Lasting()


def read(repository: Repository, job: str) -> Lasting:
    """What the last run that swept has left; nothing, if one was cut off since."""
    with repository.database.read() as tx:
        found = watermarks.find(tx, repository.uid, job)
        runs = ledger.every(tx, repository.uid, job=job)
    if found is None or found[1].get("version") != VERSION or any(row.state is RunState.SWEEPING for row in runs):
        return nothing
    run, value = found
    try:
        data = repository.store.get(value["last"])
    except NotFound:
        raise CorruptTable(value["last"], "it is missing; pass --full") from None
    if not value["last"].endswith(f"{hashlib.sha256(data).hexdigest()}.json"):
        raise CorruptTable(value["last"], "it is not what was written; pass --full")
    return Lasting(run, _last(json.loads(data)), tuple(from_json(file) for file in value["deferred"]))


def write(repository: Repository, run: Run, last: Last) -> str:
    """Keep ``last`` in the run's folder; the key, by which it can be told from anything else."""
    facts = {
        "table": [[row.rule_id, row.prefix, row.branch, row.before.isoformat()] for row in last.table],
        "sets": [sorted(one) for one in last.sets],
        "behind": [sorted(one) for one in last.behind],
        "known": dict(last.known),
    }
    data = json.dumps(facts).encode()
    key = f"{Folder(repository.store, repository.prefix, run).root}last-{hashlib.sha256(data).hexdigest()}.json"
    repository.store.put(key, [data])
    return key


def current(repository: Repository, job: str) -> str:
    """The run whose watermark stands, though this one does not begin there."""
    with repository.database.read() as tx:
        found = watermarks.find(tx, repository.uid, job)
    return found[0] if found else ""


def moving(repository: Repository, job: str, plan: Plan, value: Mapping[str, Any]) -> Callable[[Transaction], None]:
    """The watermark moves if it stands where ``plan`` began; else the next run looks at everything."""

    def move(tx: Transaction) -> None:
        found = watermarks.find(tx, repository.uid, job)
        if (found[0] if found else "") == plan.base:
            watermarks.write(tx, repository.uid, job, plan.run, value)
        else:
            watermarks.forget(tx, repository.uid, job)

    return move


def _last(facts: Mapping[str, Any]) -> Last:
    return Last(
        tuple(Cutoff(rule, prefix, branch, datetime.fromisoformat(at)) for rule, prefix, branch, at in facts["table"]),
        tuple(frozenset(one) for one in facts["sets"]),
        tuple(frozenset(one) for one in facts["behind"]),
        facts["known"],
    )
