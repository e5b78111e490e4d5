"""History edited in place, as a plan says: every commit keeps its id, some get other parents, expired refs go.

All of it is one transaction that holds the repository alone. What a plan says is
decided again from what is there by then, and only what comes out both times is
done: edits do not depend on each other, so any of them may be left out.
"""

from dataclasses import dataclass
from typing import Any

from desilt.domain.expiration import Expiration, part
from desilt.domain.expiry import read_wish
from desilt.errors import BadRequest, NotFound, OtherPolicy
from desilt.lake import locks, repositories
from desilt.lake.changes import HistoryEdited
from desilt.lake.locks import Lock
from desilt.lake.moves import Move, intend, moving_in
from desilt.lake.repository import Repository
from desilt.runs.plan import Plan
from desilt.sources.graph import Seen, see
from desilt.sweep.branches import DELETED, delete

LOOKS = 10


def facts(expiration: Expiration, wish: dict[str, Any], *, reached: int) -> dict[str, Any]:
    """What a plan says of history, in which refs reach so many commits."""
    edits = [[edit.id, list(edit.old_parents), list(edit.new_parents)] for edit in expiration.edits]
    abandoned = len(expiration.abandoned)
    return {"wish": wish, "edits": edits, "count": len(edits), "abandoned": abandoned, "reached": reached}


@dataclass(frozen=True, slots=True)
class Edited:
    """What was done: to the history that was seen, and what became of the plan's refs."""

    seen: Seen
    done: Expiration
    fates: dict[str, str]
    again: bool  # it had been done before


def edit(repository: Repository, lock: Lock, plan: Plan) -> Edited:
    """Carry out what is still right of ``plan``. Done twice, it is done once."""
    looks = 0
    while True:
        mark = intend(repository.core)
        with repository.database.read() as tx:
            seen = see(tx, repository.core, plan.now)
        now = _decided(plan, seen)
        with repository.database.write() as tx:
            generation = repositories.condemning(tx, repository.uid)
            locks.check(tx, lock)
            if generation != seen.generation and looks == LOOKS:  # refs move faster than that: hold them
                seen = see(tx, repository.core, plan.now)
                now = _decided(plan, seen)
            if generation == seen.generation:
                with moving_in(tx, repository.core, mark) as made:
                    return _edit(made, repository, plan, seen, now)
        looks += 1


def _decided(plan: Plan, seen: Seen) -> Expiration:
    assert plan.history is not None
    try:
        return read_wish(plan.history["wish"]).decide(seen.graph)
    except (BadRequest, NotFound) as error:
        raise OtherPolicy(plan.run, f"does not fit any more ({error})") from error


def _edit(move: Move, repository: Repository, plan: Plan, seen: Seen, now: Expiration) -> Edited:
    assert plan.history is not None
    planned = {(name, tuple(old), tuple(new)) for name, old, new in plan.history["edits"]}
    edits = [one for one in now.edits if (one.id, one.old_parents, one.new_parents) in planned]
    if edits or plan.refs:
        move.do(HistoryEdited(tuple((one.id, one.old_parents, one.new_parents) for one in edits)))
    expired = {(ref.kind, ref.name, ref.target) for ref in now.deleted_refs}
    spared: dict[tuple[str, str], str] = {(ref.kind, ref.name): why for ref, why in now.skipped.items()}
    fates = {
        one["name"]: delete(move, repository, plan, one)
        if (one["kind"], one["name"], one["head"]) in expired
        else f"kept: {spared.get((one['kind'], one['name']), 'it is not expired any more')}"
        for one in plan.refs
    }
    kept = {ref: fates.get(ref.name, "kept") for ref in now.deleted_refs if fates.get(ref.name) != DELETED}
    again = any(name in seen.commits and seen.commits[name].parents == new for name, _, new in planned)
    return Edited(seen, part(seen.graph.nodes, seen.graph.refs, now, edits, kept), fates, again)
