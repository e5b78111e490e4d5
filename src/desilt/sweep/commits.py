"""Commits that nothing reaches, taken out of history before anything that they had is touched.

From the transaction that takes a commit on, whoever asks for it is told that it is
gone. What refs and holds reach by then stays. Children go before their parents, and
whatever stays keeps all that it descends from: no commit is ever without its parents.
"""

import json
from collections.abc import Sequence

from desilt.domain.history import Commit
from desilt.errors import DamagedRun
from desilt.objects.store import ObjectStore
from desilt.repository.protocol import Repository
from desilt.repository.sealed import Sealed, seal
from desilt.runs.history import GoingCommit
from desilt.runs.steps import TakeCommits
from desilt.sweep.sweep import Sweep, editor_of


def write(store: ObjectStore, folder: str, going: Sequence[Commit]) -> Sealed:
    """Keep the commits that go, children before parents, beside the plan, a line each."""
    text = "".join(f"{one.id}\t{one.created_at.isoformat()}\t{json.dumps(one.message)}\n" for one in going)
    return seal(store, f"{folder}inputs/commits.txt", text.encode())


def take(sweep: Sweep, step: TakeCommits) -> None:
    """Take what is still out of reach. Cut off and done again, it ends the same."""
    plan = sweep.plan
    ids = planned(sweep.repository.store, step)
    editor_of(sweep).take(sweep.lock, plan.run, ids, plan.evidence.revision, plan.now, step.released_since)


def planned(store: ObjectStore, step: TakeCommits) -> list[str]:
    """The commits that go, as they were written down."""
    return [one.id for one in listed(store, step)]


def listed(store: ObjectStore, step: TakeCommits) -> list[GoingCommit]:
    """The same, with what people know them by."""
    data = step.commits.read(store)
    if data is None:
        raise DamagedRun(step.commits.key, "is missing, or not what was planned")
    rows = (line.split("\t", 2) for line in data.decode().splitlines())
    return [GoingCommit(name, at, json.loads(message)) for name, at, message in rows]


def done(repository: Repository, step: TakeCommits) -> int:
    """How many of them are gone by now."""
    ids = planned(repository.store, step)
    return len(ids) - len(repository.editor.there(ids)) if repository.editor else 0
