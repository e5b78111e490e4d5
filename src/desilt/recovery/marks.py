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
from desilt.objects.tags import EXPIRE_NOW
from desilt.records.locks import Lock
from desilt.repository.handle import Access
from desilt.sweep.follow import TAGS, known_tags
from desilt.sweep.marked import batches_of
from desilt.sweep.unmark import COMES_BACK, Unmarked, WantedPiece, unmark

log = logger(__name__)


def bring_back(repository: LakeRepository, lock: Lock, changes: Sequence[Change]) -> Unmarked:
    """Whatever the runs marked that ``changes`` say were brought back."""
    runs = {one.run for one in changes if isinstance(one, BroughtBack)}
    tags = [str(EXPIRE_NOW), *known_tags(repository)]
    for one in changes:
        if isinstance(one, PolicySet) and one.job == TAGS:
            tags += one.document["tags"]
    done = Unmarked()
    for run, numbers in batches_of(repository, *COMES_BACK):
        if run in runs:
            known = tuple(dict.fromkeys(tags))
            done += unmark(WantedPiece(Access(repository), lock, run, numbers, None, known, repository.clock()))
    if done.restored:
        log.warning("%s marked objects are brought back: their marks were taken back since the copy", done.restored)
    return done
