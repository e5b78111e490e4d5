"""Expiration: history from before a moment is hidden from refs. No object is removed, and no commit is, yet.

The oldest young commit of each ref gets the root, or the nearest commit that a rule
keeps, as its parent. What no ref reaches any more stays readable by its id until
it is collected.
"""

from collections.abc import Mapping
from datetime import UTC

from desilt.domain.expiration import Expiration, Ref
from desilt.domain.expiry import Expiry, Omission, Wish, read_wish
from desilt.domain.history import walk
from desilt.domain.run import Run
from desilt.errors import BadRequest
from desilt.jobs.job import COMMITS, Ask, Job, Marked, Stages
from desilt.jobs.judging import Answer
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.runs.folder import Folder
from desilt.runs.history import FILE, Change, Dot, Fate
from desilt.runs.plan import Plan, run_of
from desilt.runs.report import Amount
from desilt.sources.graph import Seen, see
from desilt.sources.lake import LakeSource
from desilt.sources.spread import Spread
from desilt.sweep import history
from desilt.sweep.branches import tag_uid

JOB = "expire"


def mark(run: Run, source: LakeSource, spread: Spread, ask: Ask) -> Marked:
    """What is done to history; nothing is written but the run's folder."""
    core, wish = source.repository.core, ask.wish
    now = min(run.now, core.clock())  # of what people agree to: a period by either clock
    if wish is None:
        raise AssertionError("an expiration is told what to expire")
    if isinstance(wish, Expiry) and wish.before > now:
        raise BadRequest(f"{wish.before:%Y-%m-%d %H:%M:%S %Z} is not over yet; give a time that has passed")
    stage = Stages(spread.watch)
    with stage("history"), core.database.read() as tx:
        seen = see(tx, core, run.now)
    with stage("decision"):
        wish = whole(wish, source.repository)
        found = wish.decide(seen.graph)
        change = drawn(seen, found)
    told = {
        "edited": len(found.edits),
        "abandoned": len(found.abandoned),
        "pointed at": len(found.pointed),
        "kept by rules": len(found.kept),
        "tags deleted": sum(ref.kind == "tag" for ref in found.deleted_refs),
        "branches deleted": sum(ref.kind == "branch" for ref in found.deleted_refs),
    }
    inputs = {
        "commits": len(seen.commits),
        "branches": len(seen.branches),
        "tags": sum(ref.kind == "tag" for ref in seen.graph.refs),
        "holds": sum(ref.kind == "hold" for ref in seen.graph.refs),
        "generation": seen.generation,
    }
    return Marked(
        Answer(),
        wish.policy,
        wish.before if isinstance(wish, Expiry) else run.now,
        {},
        inputs,
        stage.seconds,
        seen.generation,
        seen.mark,
        held=len(seen.commits) - len(found.abandoned),
        stored=Amount(),
        measure=COMMITS,
        period=now - wish.before if isinstance(wish, Expiry) else None,
        base="",
        saves=None,
        refs=[_going(seen, ref, why) for ref, why in found.deleted_refs.items()],
        history=history.facts(found, wish.facts(), reached=len(change.dots)),
        change=change,
        told=told,
        by="ref",
    )


def whole(wish: Wish, repository: Repository) -> Wish:
    """``wish`` with commits by their whole ids."""
    if isinstance(wish, Expiry):
        return wish
    return Omission(wish.ref, *(repository.resolve(name).commit.id for name in (wish.first, wish.last)))


def carry_out(repository: Repository, lock: Lock, plan: Plan) -> Mapping[str, str]:
    """Edit history, and keep what was really done beside the plan, in place of what was planned."""
    edited = history.edit(repository, lock, plan)
    if not edited.again:
        folder = Folder(repository.store, repository.prefix, run_of(plan))
        folder.put_text(FILE, drawn(edited.seen, edited.done).to_json())
    return edited.fates


def drawn(seen: Seen, found: Expiration) -> Change:
    """Every commit that a ref reaches, before and after."""
    edits = {edit.id: edit for edit in found.edits}
    names: dict[str, list[str]] = {}
    for ref in sorted(seen.graph.refs):
        names.setdefault(ref.target, []).append(called(ref))
    dots = []
    for commit in walk(seen.commits.__getitem__, *names):
        edit = edits.get(commit.id)
        by: tuple[str, ...] = ()
        fate, why = Fate.KEPT, found.kept.get(commit.id, "")
        if commit.id in found.abandoned:
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
    return Change(tuple(dots), skipped, {called(ref): why for ref, why in found.deleted_refs.items()})


def called(ref: Ref) -> str:
    """A ref as people call it."""
    return ref.name if ref.kind == "branch" else f"{ref.kind} {ref.name}"


def policy(_repository: Repository, plan: Plan) -> str:
    """What the plan was told: there is nothing else to go by."""
    assert plan.history is not None
    return read_wish(plan.history["wish"]).policy


def _going(seen: Seen, ref: Ref, why: str) -> Mapping[str, str]:
    uid = seen.branches[ref.name].uid if ref.kind == "branch" else tag_uid(seen.tags[ref.name])
    return {"kind": ref.kind, "name": ref.name, "uid": uid, "head": ref.target, "why": why}


job = Job(JOB, mark, policy, before=carry_out)
