"""Expiration: history from before a moment is hidden from refs. No object is removed, and no commit is, yet.

The oldest young commit of each ref gets the root, or the nearest commit that a rule
keeps, as its parent. What no ref reaches any more stays readable by its id until
it is collected.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

from desilt import cycles
from desilt.domain.expiration import Expiration, Ref
from desilt.domain.expiry import Expiry, Omission, Wish, read_wish
from desilt.domain.keep_rules import KeepCounts
from desilt.domain.modes import NOTES, Mode, read_mode
from desilt.domain.spelling import read_keep
from desilt.errors import BadRequest, Damaged
from desilt.jobs.expire.freed import freed
from desilt.jobs.job import COMMITS, Figures, Job, Mark, Stages, Traits, Work
from desilt.records.holds import HoldKind
from desilt.repository.editor import GoingRef
from desilt.repository.gate import Safety
from desilt.repository.graph import graph_of
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Pointers, Source
from desilt.runs.plan import Evidence, Plan
from desilt.runs.report import Amount, Freed
from desilt.runs.steps import EditHistory
from desilt.sweep.history import called, drawn

JOB = "expire"


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of it must be told: how old, once; and what it can be told besides."""

    older_than: datetime | timedelta | None = None
    before: datetime | None = None  # the same, as a moment
    keep: KeepCounts | None = field(default=None, metadata={"read": read_keep})
    keep_last: int | None = None
    delete_expired_tags: bool = False
    delete_expired_branches: bool = False
    sizes: bool = True  # say what a collection afterwards would free; that looks at every entry
    mode: Mode | None = field(default=None, metadata={"read": read_mode})  # None: the repository's own
    wish: Wish | None = field(default=None, metadata={"said": False})  # all of it in one

    def __post_init__(self) -> None:
        if self.wish is None and (self.older_than is None) == (self.before is None):
            raise BadRequest("'expire' must be told how old, once; give 'older_than' or 'before'")

    def at(self, now: datetime, modes: Sequence[Mode]) -> Wish:
        """What is wanted of a run at ``now``, in a repository that has these ``modes``, its own first."""
        if self.wish is not None:
            check_mode(self.wish, modes)
            return self.wish
        age = self.older_than if self.before is None else self.before
        assert age is not None
        before = age if isinstance(age, datetime) else now - age
        keep = self.keep
        if self.keep_last is not None:
            keep = KeepCounts(**{**(asdict(keep) if keep else {}), "last": self.keep_last})
        mode = modes[0] if self.mode is None else self.mode
        wish = Expiry(before, keep, self.delete_expired_tags, self.delete_expired_branches, mode)
        check_mode(wish, modes)
        return wish


def check_mode(wish: Wish, modes: Sequence[Mode]) -> None:
    if isinstance(wish, Expiry) and wish.mode not in modes:
        raise BadRequest(f"history cannot be made shorter in the mode {wish.mode!r} here; choose {' or '.join(modes)}")


@cycles.left_alone()
def mark(work: Work[Options]) -> Mark:
    """What is done to history; nothing is written but the run's folder."""
    wish = work.options.at(work.run.now, work.repository.modes)
    if isinstance(wish, Expiry) and wish.before > work.now:
        raise BadRequest(f"{wish.before:%Y-%m-%d %H:%M:%S %Z} is not over yet; give a time that has passed")
    stage = Stages(work.executor.watch)
    with stage("history"):
        staged = work.source.staged_pointers()  # before commits: an entry only ever moves from the one to the other
        seen = work.source.snapshot(work.run.now, uses=True)
    with stage("decision"):
        wish = whole(wish, work.source)
        found = wish.decide(graph_of(seen))
        change = drawn(seen, found)
    frees, note = None, ""
    if work.options.sizes:
        with stage("what that frees"):
            frees, note = weighed(work, seen, staged, found)
    how = NOTES.get(wish.mode, "") if isinstance(wish, Expiry) else ""
    quiet = QUIET if work.repository.gate.safety is Safety.GRACE else ""
    told = {
        "edited": len(found.edits),
        "abandoned": len(found.abandoned.keys() - found.released),
        **({"released": len(found.released)} if found.released else {}),
        "pointed at": len(found.pointed),
        "kept by rules": len(found.kept),
        "tags deleted": sum(ref.kind == "tag" for ref in found.deleted_refs),
        "branches deleted": sum(ref.kind == "branch" for ref in found.deleted_refs),
    }
    inputs = {
        "commits": len(seen.commits),
        "branches": len(seen.branches),
        "tags": len(seen.tags),
        "holds": len(seen.held(HoldKind.REF)),
        "generation": seen.revision.number,
    }
    edits = tuple((edit.id, edit.old_parents, edit.new_parents) for edit in found.edits)
    refs = tuple(_going(seen, ref, why) for ref, why in found.deleted_refs.items())
    reached = len(change.dots) - len(found.released.difference(found.abandoned))  # the others nobody reached before
    step = EditHistory(wish.facts(), edits, refs, len(found.abandoned), reached, tuple(sorted(found.released)))
    return Mark(
        Evidence(
            wish.policy,
            seen.revision,
            len(seen.commits),
            held=len(seen.commits) - len(found.abandoned),
            stored=Amount(),
            measure=COMMITS,
            period=work.now - wish.before if isinstance(wish, Expiry) else None,
        ),
        Figures(
            wish.before if isinstance(wish, Expiry) else work.run.now,
            inputs,
            stage.seconds,
            by="ref",
            history=told,
            change=change,
            frees=frees,
            notes=tuple(filter(None, (how, quiet, note))),
        ),
        (step,),
    )


def weighed(work: Work[Options], seen: Snapshot, staged: Pointers, found: Expiration) -> tuple[Freed | None, str]:
    """What a collection afterwards would free, or why that is not known: to edit history, nobody needs to."""
    abandoned = {name: [called(ref) for ref in refs] for name, refs in found.abandoned.items()}
    try:
        return freed(work.repository, work.executor, work.source, seen, staged, abandoned), ""
    except Damaged as reason:
        return None, f"What a collection afterwards would free is not known: {reason}"


def whole(wish: Wish, source: Source) -> Wish:
    """``wish`` with commits by their whole ids."""
    if isinstance(wish, Expiry):
        return wish
    return Omission(wish.ref, *(source.resolve(name) for name in (wish.first, wish.last)))


def policy(_repository: Repository, plan: Plan) -> str:
    """What the plan was told: there is nothing else to go by."""
    return read_wish(next(plan.steps_of(EditHistory)).wish).policy


def _going(seen: Snapshot, ref: Ref, why: str) -> GoingRef:
    named = seen.branches if ref.kind == "branch" else seen.tags
    uid = next(one.uid for one in named if one.name == ref.name)
    return GoingRef(ref.kind, ref.name, uid, ref.target, why)


QUIET = (
    "Nothing can change history here all at once: refs are read again right before each write, and a commit in that "
    "very moment may be lost; choose a quiet window"
)
NO_WAY_BACK = (
    "removed no object: it edited history; to have a commit back, make a tag or a branch at its id "
    "(`desilt lake tag`, `desilt lake branch`), before `desilt collect` takes it"
)

job = Job(
    JOB,
    Options,
    mark,
    Traits(removes=False, no_way_back=NO_WAY_BACK, after=("lifecycle",), edits="edit"),
    policy=policy,
)
