"""What a lifecycle run leaves to the next: what it applied, who reached which commit, and what is deferred."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from desilt.columns.files import HeldFile, from_json
from desilt.domain.cutoffs import Cutoff
from desilt.domain.potential import Last
from desilt.domain.run import Run
from desilt.errors import DamagedWatermark, NotFound
from desilt.jobs import watermark
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder

VERSION = 1
DEFERRED = "deferred"


@dataclass(frozen=True, slots=True)
class Saved:
    """Where to go on; empty, every commit is looked into."""

    run: str = ""
    last: Last | None = None
    deferred: tuple[HeldFile, ...] = ()


nothing = Saved()


def read(repository: Repository, job: str) -> Saved:
    """What the last run that swept has left; nothing, if one was cut off since."""
    found = watermark.standing(repository, job, version=VERSION)
    if found is None:
        return nothing
    run, value = found
    try:
        data = repository.store.get(value["last"])
    except NotFound:
        raise DamagedWatermark(value["last"], "it is missing") from None
    if not value["last"].endswith(f"{hashlib.sha256(data).hexdigest()}.json"):
        raise DamagedWatermark(value["last"], "it is not what was written")
    return Saved(run, _last(json.loads(data)), tuple(from_json(file) for file in value[DEFERRED]))


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


def _last(facts: Mapping[str, Any]) -> Last:
    return Last(
        tuple(Cutoff(rule, prefix, branch, datetime.fromisoformat(at)) for rule, prefix, branch, at in facts["table"]),
        tuple(frozenset(one) for one in facts["sets"]),
        tuple(frozenset(one) for one in facts["behind"]),
        facts["known"],
    )
