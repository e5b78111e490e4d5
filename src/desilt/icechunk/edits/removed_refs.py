"""Refs of format 1 that go: a branch with its file, a tag by another file that says so.

A branch's file is no object that a plan could list: it may be what it was when the plan was made, or a commit later. So
it is not for a batch of a sweep, but for the editor, which reads it right before.
"""

import re

from desilt.errors import BadRequest, StorageFailed
from desilt.icechunk.layout import REFS
from desilt.objects.store import ObjectStore, Result

BRANCH = re.compile(rf"{REFS}branch\.[^/]+/ref\.json")
TAG = re.compile(rf"{REFS}tag\.[^/]+/ref\.json")


def remove_branch(store: ObjectStore, key: str) -> None:
    """Takes the one file of a branch away, and nothing else whatever ``key`` is."""
    if not BRANCH.fullmatch(key):
        raise BadRequest(f"{key!r} is no branch's file")
    (outcome,) = store.delete_many([key])
    if outcome.result is Result.FAILED:
        raise StorageFailed(outcome.detail)


def bury_tag(store: ObjectStore, key: str) -> None:
    """From now on nobody can use its name again."""
    if not TAG.fullmatch(key):
        raise BadRequest(f"{key!r} is no tag's file")
    store.put_new(f"{key}.deleted", b"")
