"""Commits that nothing reaches, taken out of history before anything that they had is touched.

From the transaction that takes a commit on, whoever asks for it is told that it is
gone. It holds the repository alone, and what refs and holds reach by then stays.
Children go before their parents, and whatever stays keeps all that it descends
from: no commit is ever without its parents.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from desilt.domain.history import Commit
from desilt.domain.keeping import walk_down
from desilt.domain.run import Run
from desilt.errors import CorruptTable, NotFound, OtherPolicy
from desilt.lake import commits, holds, locks, repositories
from desilt.lake.changes import CommitsCollected
from desilt.lake.database import Transaction
from desilt.lake.holds import Kind
from desilt.lake.locks import Lock
from desilt.lake.moves import intend, moving_in
from desilt.lake.repository import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.sources.graph import see
from desilt.sources.unreached import let_go_since

FILE = "inputs/commits.txt"
PAGE = 5_000
LOOKS = 10


def write(repository: Repository, run: Run, going: Sequence[Commit]) -> dict[str, Any]:
    """Keep the commits that go, children before parents, beside the plan, a line each; what the plan says of them."""
    text = "".join(f"{one.id}\t{one.created_at.isoformat()}\t{json.dumps(one.message)}\n" for one in going)
    Folder(repository.store, repository.prefix, run).put_text(FILE, text)
    return {"commits": hashlib.sha256(text.encode()).hexdigest(), "count": len(going)}


def take(repository: Repository, lock: Lock, plan: Plan) -> dict[str, str]:
    """Take what is still out of reach. Cut off and done again, it ends the same."""
    ids, page = planned(repository, plan), 0
    live, generation, looks = set[str](), plan.generation, 0
    while page * PAGE < len(ids):
        mark = intend(repository.core)
        with repository.database.write() as tx:
            now = repositories.condemning(tx, repository.uid)
            locks.check(tx, lock)
            if now != generation and looks == LOOKS:  # refs move faster than that: hold them
                live, generation = staying(tx, repository, plan, ids[page * PAGE :])
            if now == generation:
                _check_holds(tx, repository, plan)
                _take(tx, repository, plan, [name for name in ids[page * PAGE :][:PAGE] if name not in live], mark)
                generation, page = repositories.generation(tx, repository.uid), page + 1
                continue
        with repository.database.read() as tx:
            live, generation = staying(tx, repository, plan, ids[page * PAGE :])
        looks += 1
    return {}


def staying(tx: Transaction, repository: Repository, plan: Plan, ids: Sequence[str]) -> tuple[set[str], int]:
    """The commits that stay by now, and the generation that refs are at.

    What refs and holds reach, or let go of lately; and all that any commit descends from which is not among
    ``ids``, still to go: one that was left alone before, or was made since the plan.
    """
    seen = see(tx, repository.core, plan.now)
    tips = {ref.target for ref in seen.graph.refs} | (seen.graph.nodes.keys() - set(ids))
    if since := (plan.history or {}).get("since"):
        tips |= let_go_since(tx, repository.core, datetime.fromisoformat(since)) & seen.graph.nodes.keys()
    return set(walk_down(tips, lambda name: seen.graph.nodes[name].parents)), seen.generation


def planned(repository: Repository, plan: Plan) -> list[str]:
    """The commits that a plan lets go, as it wrote them down."""
    assert plan.history is not None
    folder = Folder(repository.store, repository.prefix, run_of(plan))
    try:
        text = folder.get_text(FILE)
    except NotFound:
        raise CorruptTable(folder.root + FILE, "it is missing") from None
    if hashlib.sha256(text.encode()).hexdigest() != plan.history["commits"]:
        raise CorruptTable(folder.root + FILE, "it is not what was planned")
    return [line.partition("\t")[0] for line in text.splitlines()]


def left(tx: Transaction, repository: Repository, ids: Sequence[str]) -> set[str]:
    """The metaranges of those commits, planned to go, that are still there: something reaches them again."""
    fetch = commits.fetching(tx, repository.uid)
    return {fetch(name).metarange for name in commits.there(tx, repository.uid, ids)}


def done(repository: Repository, plan: Plan) -> int:
    """How many commits of a plan are gone by now."""
    ids = planned(repository, plan)
    with repository.database.read() as tx:
        return len(ids) - len(commits.there(tx, repository.uid, ids))


def _check_holds(tx: Transaction, repository: Repository, plan: Plan) -> None:
    since = holds.since(tx, repository.uid, plan.generation)
    if any(hold.kind is Kind.PREFIX for hold in since):
        raise OtherPolicy(plan.run, "was made before somebody ordered a prefix to be held")


def _take(tx: Transaction, repository: Repository, plan: Plan, ids: Sequence[str], mark: str) -> None:
    there = commits.there(tx, repository.uid, ids)
    if there:
        with moving_in(tx, repository.core, mark) as made:
            made.do(CommitsCollected(tuple(name for name in ids if name in there), plan.run))
