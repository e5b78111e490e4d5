"""Refs that moved under a plan, as a table: where they were, where they are, and what is kept by now."""

import pytest

from desilt.domain.moved import KeptCommit, Refs, kept_by_now, of_policy
from desilt.domain.policy import Policy, Rule, Tags
from desilt.errors import Unreadable

#   r ── a ── b ── c ── m
#         \── x ── y ──/
PARENTS = {"r": (), "a": ("r",), "b": ("a",), "c": ("b",), "x": ("a",), "y": ("x",), "m": ("c", "y")}

SHORT_ON_DEV = Rule("old", "", 30, branch_days={"dev*": 5})  # main, other: 30 days; dev, dev2: 5 days
DAYS = Policy((SHORT_ON_DEV,))
IGNORED = Policy((SHORT_ON_DEV,), tags=Tags.IGNORE)
PAST = Policy((Rule("old", "", 30, noncurrent_only=True),))
ONE = Policy((Rule("any", "", 30), Rule("past", "raw/", 30, noncurrent_only=True)))
MAIN = Policy((Rule("old", "", None, branch_days={"main": 30}),))
OFF = Policy((Rule("same", "", 30), Rule("off", "", 30, enabled=False, branch_days={"dev": 5})))
SECOND = Policy((Rule("same", "", 30), Rule("short", "raw/", 30, branch_days={"dev": 5})))


def refs(said):
    """``main:c v1=b``: branch main at c, tag v1 at b."""
    pairs = said.split()
    return Refs(
        dict(one.split(":") for one in pairs if ":" in one), dict(one.split("=") for one in pairs if "=" in one)
    )


def told(kept):
    """``c`` is kept whole, ``m-cy`` but for what c and y have."""
    return " ".join(sorted(one.commit + ("-" if one.bases else "") + "".join(one.bases) for one in kept))


TABLE = [
    # what happened                             policy   then                 now                  new   kept
    ("nothing",                                 DAYS,    "main:c dev:y v1=b", "main:c dev:y v1=b", "",   ""),
    # branches that go
    ("deleted: nobody else was there",          DAYS,    "main:c dev:y",      "main:c",            "",   "x y"),
    ("deleted: the same period reaches them",   DAYS,    "main:c other:c",    "main:c",            "",   ""),
    ("deleted: another period does, as before", DAYS,    "main:c dev:c",      "main:c",            "",   ""),
    ("deleted: the last one",                   DAYS,    "main:b",            "",                  "",   "a b r"),
    # branches that come
    ("created: where the same period is",       DAYS,    "main:c",            "main:c other:b",    "",   ""),
    ("created: with another period",            DAYS,    "main:c",            "main:c dev:b",      "",   "a b r"),
    ("created: its period is known below",      DAYS,    "main:c dev:a",      "main:c dev2:b",     "",   "b"),
    ("created: where no branch was (kept)",     DAYS,    "main:c",            "main:c other:y",    "",   ""),
    ("created: another period, partly there",   DAYS,    "main:c",            "main:c dev:y",      "",   "a r"),
    ("created: a branch that no rule covers",   MAIN,    "main:b",            "main:b other:b",    "",   "a b r"),
    ("created: another that no rule covers",    MAIN,    "main:b other:b",    "main:b dev:b",      "",   ""),
    ("created: differs by a rule that is off",  OFF,     "main:b",            "main:b dev:b",      "",   ""),
    ("created: a second rule differs",          SECOND,  "main:b",            "main:b dev:b",      "",   "a b r"),
    # branches that move
    ("forward: onto a new commit",              DAYS,    "main:b",            "main:c",            "c",  "c-b"),
    ("forward: onto two new commits",           DAYS,    "main:a",            "main:c",            "bc", "b-a c-b"),
    ("forward: to where the same period is",    DAYS,    "main:b other:c",    "main:c other:c",    "",   ""),
    ("forward: to where another period is",     DAYS,    "main:b dev:c",      "main:c dev:c",      "",   "c"),
    ("back: nobody else is there",              DAYS,    "main:c",            "main:a",            "",   "b c"),
    ("back: one of the same period is there",   DAYS,    "main:c other:c",    "main:a other:c",    "",   ""),
    ("back: another period stays, as before",   DAYS,    "main:c dev:c",      "main:a dev:c",      "",   ""),
    ("elsewhere: deleted, and made again",      DAYS,    "main:c dev:y",      "main:c dev:b",      "",   "b x y"),
    ("elsewhere: two change places",            DAYS,    "main:b dev:x",      "main:x dev:b",      "",   "b x"),
    ("elsewhere: two of the same period do",    DAYS,    "main:b other:x",    "main:x other:b",    "",   ""),
    # new commits
    ("merged: what came in has a new period",   DAYS,    "main:c dev:y",      "main:m dev:y",      "m",  "m-cy x y"),
    ("merged: from the same period",            DAYS,    "main:c other:y",    "main:m other:y",    "m",  "m-cy"),
    ("new, and its branch went back at once",   DAYS,    "main:b",            "main:b",            "c",  "c c-b"),
    ("new, and its branch was deleted",         DAYS,    "main:b dev:a",      "main:b",            "xy", "x x-a y y-x"),
    ("new: the first of its history",           DAYS,    "",                  "main:r",            "r",  "r"),
    # tags
    ("tag made",                                DAYS,    "main:c",            "main:c v1=b",       "",   "b"),
    ("tag made where no branch is",             DAYS,    "main:c",            "main:c v1=y",       "",   "y"),
    ("tag made on a new commit",                DAYS,    "main:b",            "main:c v1=c",       "c",  "c c-b"),
    ("tag moved",                               DAYS,    "main:c v1=a",       "main:c v1=b",       "",   "b"),
    ("tag removed",                             DAYS,    "main:c v1=b",       "main:c",            "",   ""),
    ("tag renamed",                             DAYS,    "main:c v1=b",       "main:c v2=b",       "",   "b"),
    ("tag made, and tags hold nothing",         IGNORED, "main:c",            "main:c v1=b",       "",   ""),
    ("tag moved, and tags hold nothing",        IGNORED, "main:c v1=a",       "main:c v1=b",       "",   ""),
    ("branch deleted, such a tag stays",        IGNORED, "main:b v1=b",       "v1=b",              "",   "a b r"),
    # what is in a head stays
    ("head: did not move",                      PAST,    "main:c other:b",    "main:c",            "",   ""),
    ("head: moved forward",                     PAST,    "main:b other:c",    "main:c other:c",    "",   "c-b"),
    ("head: moved back",                        PAST,    "main:c other:c",    "main:b other:c",    "",   "b-c"),
    ("head: of a new branch",                   PAST,    "main:c",            "main:c other:b",    "",   "b"),
    ("head: of a new branch, where one was",    PAST,    "main:c",            "main:c other:c",    "",   "c"),
    ("head: made again elsewhere",              PAST,    "main:y other:c",    "main:b other:c",    "",   "b-y x y"),
    ("head: onto a new commit",                 PAST,    "main:b",            "main:c",            "c",  "c-b"),
    ("head: onto the second of two new",        PAST,    "main:a",            "main:c",            "bc", "b-a c-a c-b"),
    ("head: one rule of two is for the past",   ONE,     "main:b other:c",    "main:c other:c",    "",   "c-b"),
    ("head: no rule asks for it",               DAYS,    "main:b other:c",    "main:c other:c",    "",   ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "then", "now", "new", "kept"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_is_kept_by_now(policy, then, now, new, kept):
    assert told(kept_by_now(of_policy(policy), refs(then), refs(now), parents=PARENTS, new=set(new))) == kept


def test_a_branch_that_points_nowhere_stops_it():
    with pytest.raises(Unreadable, match="points to commit q"):
        kept_by_now(of_policy(DAYS), refs("main:b"), refs("main:q"), parents=PARENTS, new=set())


def test_what_is_kept_but_for_bases_names_all_parents_in_order():
    found = kept_by_now(of_policy(DAYS), refs("main:c other:y"), refs("main:m other:y"), parents=PARENTS, new={"m"})
    assert found == {KeptCommit("m", ("c", "y"))}
