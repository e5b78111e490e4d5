"""Marks that were taken back since the copy was made: taken back again, before anybody follows them up.

The journal knows which runs were brought back, not how much of each. So all that such a
run marked comes back, without a tag: to keep too much does no harm.
"""

from collections.abc import Sequence

from desilt.lake.change import Change
from desilt.lake.changes import PolicySet
from desilt.lake.events import BroughtBack
from desilt.lake.repository import LakeRepository
from desilt.logs import logger
from desilt.records.locks import Lock
from desilt.repository.handle import Access
from desilt.runs.plan import Plan
from desilt.runs.steps import FollowMarks
from desilt.sweep import batch_tags, follow
from desilt.sweep.follow import TAGS
from desilt.sweep.marked import batches_of
from desilt.sweep.unmark import COMES_BACK, Unmarked, WantedPiece, unmark

log = logger(__name__)


def known_tags(repository: LakeRepository, changes: Sequence[Change], runs: Sequence[Plan]) -> tuple[str, ...]:
    """All tags that were ever set, as far as the database, the journal and the plans of runs tell."""
    found = list(follow.known_tags(repository))
    for change in changes:
        if isinstance(change, PolicySet) and change.job == TAGS:
            found += change.document["tags"]
    found += [step.tag for plan in runs for step in plan.steps_of(FollowMarks) if step.tag]
    return tuple(dict.fromkeys(found))


def remember_tags(repository: LakeRepository, tags: Sequence[str]) -> None:
    """Write down those that the database does not know."""
    for tag in tags:
        if tag not in follow.known_tags(repository):
            follow.known_tags(repository, tag)


def bring_back(
    repository: LakeRepository, lock: Lock, changes: Sequence[Change] | None, tags: tuple[str, ...]
) -> Unmarked:
    """Whatever the runs marked that ``changes`` say were brought back; None: nobody can tell, so that all are."""
    runs = None if changes is None else {one.run for one in changes if isinstance(one, BroughtBack)}
    done = Unmarked()
    if repository.store.tagging is not None and (runs is None or runs):
        batch_tags.cancel(repository)
    for run, numbers in batches_of(repository, *COMES_BACK):
        if runs is None or run in runs:
            done += unmark(WantedPiece(Access(repository), lock, run, numbers, None, tags, repository.clock()))
    if done.restored:
        log.warning("%s marked objects are brought back: their marks were taken back since the copy", done.restored)
    return done
