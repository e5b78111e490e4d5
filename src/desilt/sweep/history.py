"""History edited in place, as a plan says: every commit keeps its id, some get other parents, expired refs go.

All of it is one transaction that holds the repository alone. What a plan says is
decided again from what is there by then, and only what comes out both times is
done: edits do not depend on each other, so any of them may be left out.
"""

from typing import Any

from desilt.domain.expiration import Expiration
from desilt.domain.expiry import read_wish
from desilt.domain.history import Fetch
from desilt.errors import BadRequest, BranchMoved, DesiltError, NotFound, OtherPolicy
from desilt.lake import commits, locks, repositories
from desilt.lake.database import Transaction
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.runs.plan import Plan
from desilt.sources.graph import Seen, see
from desilt.sweep.branches import delete

TRIES = 10


def facts(expiration: Expiration, wish: dict[str, Any]) -> dict[str, Any]:
    """What a plan says of history."""
    edits = [[edit.id, list(edit.old_parents), list(edit.new_parents)] for edit in expiration.edits]
    return {"wish": wish, "edits": edits, "count": len(edits)}


def edit(repository: Repository, lock: Lock, plan: Plan) -> dict[str, str]:
    """Carry out what is still right of ``plan``; what became of its refs. Done twice, it is done once."""
    for left in reversed(range(TRIES)):
        with repository.database.read() as tx:
            seen = see(tx, repository.core)
        now = _decided(plan, seen)
        with repository.database.write() as tx:
            generation = repositories.condemning(tx, repository.uid)
            locks.check(tx, lock)
            if generation == seen.generation:
                return _edit(tx, repository, plan, now)
            if not left:  # refs move faster than that: hold them
                return _edit(tx, repository, plan, _decided(plan, see(tx, repository.core)))
    raise BranchMoved("of this repository", "editing history")


def done(repository: Repository, plan: Plan) -> int:
    """How many of a plan's edits are made by now."""
    assert plan.history is not None
    with repository.database.read() as tx:
        fetch = commits.fetching(tx, repository.uid)
        return sum(_parents(fetch, name) != tuple(old) for name, old, _ in plan.history["edits"])


def _decided(plan: Plan, seen: Seen) -> Expiration:
    assert plan.history is not None
    try:
        return read_wish(plan.history["wish"]).decide(seen.graph)
    except (BadRequest, NotFound) as error:
        raise OtherPolicy(plan.run, f"does not fit any more ({error})") from error


def _edit(tx: Transaction, repository: Repository, plan: Plan, now: Expiration) -> dict[str, str]:
    assert plan.history is not None
    right = {(one.id, one.old_parents, one.new_parents) for one in now.edits}
    edits = [(name, tuple(old), tuple(new)) for name, old, new in plan.history["edits"]]
    wanted = [one for one in edits if one in right]
    if wanted or plan.refs:
        repositories.edit(tx, repository.uid)
    for name, old, new in wanted:
        if not commits.edit(tx, repository.uid, name, seen=old, parents=new):
            raise AssertionError(f"commit {name} changed under a lock")
    expired = {(ref.kind, ref.name, ref.target) for ref in now.deleted_refs}
    spared: dict[tuple[str, str], str] = {(ref.kind, ref.name): why for ref, why in now.skipped.items()}
    return {
        one["name"]: delete(tx, repository, plan, one)
        if (one["kind"], one["name"], one["head"]) in expired
        else f"kept: {spared.get((one['kind'], one['name']), 'it is not expired any more')}"
        for one in plan.refs
    }


def _parents(fetch: Fetch, name: str) -> tuple[str, ...]:
    try:
        return fetch(name).parents
    except DesiltError:
        return ()  # collected since
