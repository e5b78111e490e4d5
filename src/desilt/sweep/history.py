"""History edited in place, as a plan says: every commit keeps its id, some get other parents, expired refs go.

What a plan says is decided again from what is there by then, and only what comes out
both times is done: edits do not depend on each other, so any of them may be left out.
What was really done is kept beside the plan, in place of what was planned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

from desilt.domain.expiration import Expiration, Ref, leaving, part
from desilt.domain.expiry import read_wish
from desilt.domain.history import walk
from desilt.errors import BadRequest, NoLongerFits, NotFound
from desilt.repository.editor import DELETED, Edits, GoingRef, Parents
from desilt.repository.graph import graph_of
from desilt.repository.snapshot import Snapshot
from desilt.runs.history import FILE, Dot, Fate, HistoryChange
from desilt.runs.steps import EditHistory
from desilt.sweep.sweep import Sweep, editor_of


@dataclass(slots=True)
class Decision:
    """What a step says of a history, decided anew as often as it moves."""

    run: str
    step: EditHistory
    now: Expiration = field(init=False)
    parents: list[str] = field(init=False, default_factory=list)
    released: frozenset[str] = field(init=False, default=frozenset())

    def __call__(self, seen: Snapshot) -> Edits:
        try:
            self.now = read_wish(self.step.wish).decide(graph_of(seen))
        except (BadRequest, NotFound) as error:
            raise NoLongerFits(self.run, str(error)) from error
        planned = set(self.step.edits)
        edits = [(one.id, one.old_parents, one.new_parents) for one in self.now.edits]
        edits = [one for one in edits if one in planned]
        self.parents = [name for name, _, _ in edits]
        expired = {(ref.kind, ref.name, ref.target) for ref in self.now.deleted_refs}
        spared: dict[tuple[str, str], str] = {(ref.kind, ref.name): why for ref, why in self.now.skipped.items()}
        there = {(ref.kind, ref.name) for ref in graph_of(seen).refs}
        going = [one for one in self.step.refs if (one.kind, one.name, one.head) in expired]
        self.released = self._released(seen, edits, going)
        return Edits(
            edits,
            going,
            {
                one.name: f"kept: {spared.get((one.kind, one.name), 'it is not expired any more')}"
                if (one.kind, one.name) in there
                else DELETED
                for one in self.step.refs
                if (one.kind, one.name, one.head) not in expired
            },
            self.released,
        )

    def _released(
        self, seen: Snapshot, edits: Sequence[tuple[str, Parents, Parents]], refs: Sequence[GoingRef]
    ) -> frozenset[str]:
        """What the plan released and what is released now, but for what is needed by others than those it edits."""
        going = self.now.released.intersection(self.step.released)
        gone = {(one.kind, one.name) for one in refs}
        tips = [ref.target for ref in graph_of(seen).refs if (ref.kind, ref.name) not in gone]
        return leaving(seen.commits, {name: new for name, _, new in edits}, going, tips)


def edit(sweep: Sweep, step: EditHistory) -> Mapping[str, str]:
    """Carry out what is still right of ``step``; what became of its refs. Done twice, it is done once."""
    plan, decide = sweep.plan, Decision(sweep.plan.run, step)
    seen, fates = editor_of(sweep).edit(sweep.lock, plan.evidence.revision, plan.relies_on, decide)
    again = any(name in seen.commits and seen.commits[name].parents == new for name, _, new in step.edits)
    if not again and seen.commits.keys() >= set(step.released):
        kept = {ref: fates.get(ref.name, "kept") for ref in decide.now.deleted_refs if fates.get(ref.name) != DELETED}
        graph, made = graph_of(seen), set(decide.parents)
        now = replace(decide.now, released=decide.released)
        done = part(graph.nodes, graph.refs, now, [one for one in now.edits if one.id in made], kept)
        sweep.folder.put_text(FILE, drawn(seen, done).to_json())
    return fates


def drawn(seen: Snapshot, found: Expiration) -> HistoryChange:
    """Every commit that a ref reaches, before and after, and others that leave history at once."""
    edits = {edit.id: edit for edit in found.edits}
    names: dict[str, list[str]] = {}
    for ref in sorted(graph_of(seen).refs):
        names.setdefault(ref.target, []).append(called(ref))
    dots = []
    for commit in walk(seen.commits.__getitem__, *names, *sorted(found.released.difference(found.abandoned))):
        edit = edits.get(commit.id)
        by: tuple[str, ...] = ()
        fate, why = Fate.KEPT, found.kept.get(commit.id, "")
        if commit.id in found.released:
            by = tuple(map(called, found.abandoned.get(commit.id, ())))
            fate, why = Fate.RELEASED, "no ref names it, and no young commit needs it"
        elif commit.id in found.abandoned:
            by = tuple(map(called, found.abandoned[commit.id]))
            fate, why = Fate.ABANDONED, "no ref reaches it any more"
        elif edit is not None:
            fate, why = Fate.EDITED, edit.why
        elif commit.id in found.pointed:
            fate, why = Fate.POINTED, f"old, and {', '.join(map(called, found.pointed[commit.id]))} points to it"
        dots.append(
            Dot(
                commit.id,
                commit.parents,
                edit.new_parents if edit else commit.parents,
                commit.created_at.astimezone(UTC).isoformat(),
                commit.message,
                fate,
                why,
                tuple(names.get(commit.id, ())),
                by,
            )
        )
    skipped = {called(ref): why for ref, why in found.skipped.items()}
    return HistoryChange(tuple(dots), skipped, {called(ref): why for ref, why in found.deleted_refs.items()})


def called(ref: Ref) -> str:
    """A ref as people call it."""
    return ref.name if ref.kind == "branch" else f"{ref.kind} {ref.name}"
