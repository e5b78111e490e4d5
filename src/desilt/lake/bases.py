"""What a merge begins at, and what a revert goes back to: found in history as it was made.

Editing history moves commits nearer to the root. Seen from there, a file that was
deleted long ago looks like one the other side has just added. So the parents that
commits were made with decide, also those that were collected; and where the
commit they lead to is nobody's any more, it is not replaced by an older one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from desilt.domain.history import Commit, Fetch, common, merge_base, walk
from desilt.errors import BadRequest, BaseAbandoned
from desilt.lake import commits, refs
from desilt.lake.core import Core
from desilt.records import holds
from desilt.records.database import Transaction
from desilt.records.holds import HoldKind


@dataclass(frozen=True, slots=True)
class Refusal:
    """What to say of something that cannot begin where it should."""

    doing: str
    harm: str  # of beginning elsewhere
    way_out: str
    while_there: str = ""  # what else to do, until the commit is collected


MERGE = Refusal(
    "this merge begins at",
    "bring deleted files back",
    "say with --base where to begin",
    "; that commit itself can be given until it is collected",
)
SINCE_BASE = Refusal(
    "what changed is counted from",
    "show changes that were made before",
    "compare two commits by name, without --since-base",
    "; that commit is one until it is collected",
)
REVERT = Refusal(
    "this revert goes back to",
    "take back what was done long before",
    "copy the files that are wanted from another commit with `desilt lake cp`",
)


@dataclass(frozen=True, slots=True)
class Base:
    """A commit that something begins at."""

    id: str
    commit: Commit | None  # None: it was collected
    abandoned: bool  # no branch, tag or hold reaches it any more
    run: str = ""  # that collected it
    next: str = ""  # the youngest commit below it that is part of both histories, and still there

    def usable(self, otherwise: Refusal) -> Commit:
        """The commit; :class:`BaseAbandoned` if it is nobody's any more."""
        if self.commit is None or self.abandoned:
            way_out = otherwise.way_out + (otherwise.while_there if self.commit else self._instead)
            raise BaseAbandoned(otherwise.doing, self.id, otherwise.harm, way_out)
        return self.commit

    @property
    def _instead(self) -> str:
        """What is left to begin at."""
        older = f", and {self.next[:12]} is the youngest one of both that is left" if self.next else ""
        return f"; run {self.run} collected that commit{older}" if self.run else ""


def check_chosen(tx: Transaction, core: Core, base: Commit, left: str, right: str) -> None:
    """Refuse to begin at a commit that is not part of both histories: what one side did since would be undone."""
    fetch = commits.fetching(tx, core.uid)
    if all(one.id != base.id for one in common(commits.as_made(tx, core.uid, fetch), left, right)):
        raise BadRequest(
            f"commit {base.id[:12]} is not part of both histories, and a merge that begins there would undo what one "
            "of them did; give one that both descend from, see `desilt lake log`"
        )


def met(tx: Transaction, core: Core, left: str, right: str) -> Base | None:
    """Where the histories of two commits met, as they were made; None if they never did."""
    fetch = commits.fetching(tx, core.uid)
    today = merge_base(fetch, left, right)
    made = merge_base(commits.as_made(tx, core.uid, fetch), left, right)
    if made is None or (today is not None and today.id == made.id):
        return None if today is None else Base(today.id, today, abandoned=False)
    found = _base(tx, core, fetch, made.id)
    if found.commit is not None:
        return found
    shared = (one.id for one in common(commits.as_made(tx, core.uid, fetch), left, right))
    trace = commits.trace(tx, core.uid, made.id)
    left_over = next((name for name in shared if commits.there(tx, core.uid, [name])), "")
    return replace(found, run=trace.run if trace else "", next=left_over)


def parent(tx: Transaction, core: Core, commit: Commit, number: int) -> Base:
    """The parent that ``commit`` was made from, counted from 1."""
    fetch = commits.fetching(tx, core.uid)
    wanted = commit.made_from[number - 1]
    if wanted in commit.parents:
        return Base(wanted, fetch(wanted), abandoned=False)
    return _base(tx, core, fetch, wanted)


def _base(tx: Transaction, core: Core, fetch: Fetch, wanted: str) -> Base:
    if not commits.there(tx, core.uid, [wanted]):
        return Base(wanted, None, abandoned=True)
    commit = fetch(wanted)
    tips = sorted(commits.there(tx, core.uid, sorted(set(_pointed_at(tx, core)))))
    near = takewhile(lambda one: one.generation >= commit.generation, walk(fetch, *tips))
    return Base(wanted, commit, abandoned=all(one.id != wanted for one in near))


def _pointed_at(tx: Transaction, core: Core) -> Iterator[str]:
    """Every commit that a branch, a tag or a hold names now."""
    now = core.clock()
    yield from (branch.head for branch in refs.branches(tx, core.uid))
    yield from (tag.target for tag in refs.tags(tx, core.uid))
    yield from (one.value for one in holds.every(tx, core.uid) if one.kind is HoldKind.REF and one.counts(now))
