"""What rules say of an entry, as a table: by path, age, who reaches it, and what else keeps it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from desilt.columns.hashing import address_hash
from desilt.columns.rules import (
    NEVER,
    ORDER,
    RangeGroup,
    Terms,
    fits,
    judged,
    matched,
    past,
    releasing,
    starts,
)

DAY = 86_400_000_000
TODAY = 1_000 * DAY
BRANCHES = ("main", "dev", "other")
ADDRESS = "data/object"


def rule(prefix, *, noncurrent=False, **days):
    """Days on each branch; a branch that is not named is not covered."""
    return prefix, noncurrent, days


RAW = rule("raw/", main=30, dev=5)
ALL = rule("", main=30, dev=5)
LONG = rule("raw/", main=90, dev=90)
ON_MAIN = rule("raw/", main=30)
ON_DEV = rule("raw/", dev=5)
PAST = rule("raw/", noncurrent=True, main=30, dev=5)
NO_SLASH = rule("raw", main=30)


def group(reached, **more):
    """``main dev*``: both branches reach it, and the head of dev has it."""
    members = ((BRANCHES.index(one.rstrip("*")), one.endswith("*")) for one in reached.split())
    return RangeGroup(frozenset(members), **more)


def terms(rules, *groups, **more):
    return Terms(
        rule_ids=tuple(f"rule{number}" for number in range(len(rules))),
        prefixes=tuple(prefix for prefix, _, _ in rules),
        classes=tuple(
            tuple(None if name not in days else TODAY - days[name] * DAY for _, _, days in rules) for name in BRANCHES
        ),
        groups=tuple(replace(one, members=spared(one.members, rules)) for one in groups),
        **more,
    )


def spared(members, rules):
    """What is in a head is spared by the rules for what is not."""
    past = sum(1 << number for number, (_, noncurrent, _) in enumerate(rules) if noncurrent)
    return frozenset((kind, past if current else 0) for kind, current in members)


def columns(*entries):
    """Paths, hashes of addresses and times of entries, each a path and its age in days."""
    paths = pa.array([path.encode() if isinstance(path, str) else path for path, _ in entries], pa.binary())
    created = np.array([TODAY - round(age * DAY) for _, age in entries], np.int64)
    return paths, address_hash(pa.array([ADDRESS] * len(entries), pa.string())), created


def places(*numbers):
    return np.array(numbers, np.int64)


def reason(rules, reached, path, age, of_group, of_terms):
    found = judged(*columns((path, age)), places(0), terms(rules, group(reached, **of_group), **of_terms))
    return ORDER[found.reasons[0]].value, found.holds[found.hold_of[0]]


JUDGED = [
    # what is so                                rules              reached by    path          age   reason
    ("older than its days",                     [RAW],             "main",       "raw/a",      31,   "expired"),
    ("hardly older",                            [RAW],             "main",       "raw/a",      30.1, "expired"),
    ("exactly as old as its days",              [RAW],             "main",       "raw/a",      30,   "holder"),
    ("younger",                                 [RAW],             "main",       "raw/a",      29,   "holder"),
    ("made later than now",                     [RAW],             "main",       "raw/a",      -1,   "holder"),
    ("old on every branch",                     [RAW],             "main dev",   "raw/a",      31,   "expired"),
    ("old on one branch of two",                [RAW],             "main dev",   "raw/a",      10,   "holder"),
    ("old on the only branch",                  [RAW],             "dev",        "raw/a",      10,   "expired"),
    ("on a branch that is not covered",         [RAW],             "other",      "raw/a",      999,  "holder"),
    ("there too",                               [RAW],             "main other", "raw/a",      999,  "holder"),
    ("reached by nobody",                       [RAW],             "",           "raw/a",      999,  "holder"),
    ("no rules",                                [],                "main",       "raw/a",      999,  "holder"),
    # prefixes
    ("another path",                            [RAW],             "main",       "fine/a",     999,  "holder"),
    ("the prefix further down",                 [RAW],             "main",       "a/raw/a",    999,  "holder"),
    ("less than the prefix",                    [RAW],             "main",       "raw",        999,  "holder"),
    ("the prefix itself",                       [RAW],             "main",       "raw/",       999,  "expired"),
    ("a prefix is no folder",                   [NO_SLASH],        "main",       "rawest/a",   999,  "expired"),
    ("the empty prefix",                        [ALL],             "main",       "fine/a",     31,   "expired"),
    ("bytes that are no UTF-8",                 [RAW],             "main",       b"raw/\xff",  31,   "expired"),
    ("such bytes before the prefix",            [RAW],             "main",       b"\xffraw/a", 999,  "holder"),
    ("such bytes, and the empty prefix",        [ALL],             "main",       b"\xff",      31,   "expired"),
    # several rules: any one removes
    ("one of two is past",                      [LONG, RAW],       "main",       "raw/a",      31,   "expired"),
    ("one of two is past, in another order",    [RAW, LONG],       "main",       "raw/a",      31,   "expired"),
    ("neither is past",                         [RAW, LONG],       "main",       "raw/a",      30,   "holder"),
    ("the one that is past is for other paths", [LONG, ALL],       "main",       "fine/a",     31,   "expired"),
    ("only the longer one is for this path",    [LONG, NO_SLASH],  "dev",        "raw/a",      31,   "holder"),
    ("each branch by a rule of its own",        [ON_MAIN, ON_DEV], "main dev",   "raw/a",      31,   "expired"),
    ("each branch, and one is not past",        [ON_MAIN, ON_DEV], "main dev",   "raw/a",      10,   "holder"),
    # what a head has
    ("in the head",                             [PAST],            "main*",      "raw/a",      31,   "current"),
    ("in no head",                              [PAST],            "main",       "raw/a",      31,   "expired"),
    ("in the head, and young",                  [PAST],            "main*",      "raw/a",      30,   "holder"),
    ("in one head of two branches",             [PAST],            "main dev*",  "raw/a",      31,   "current"),
    ("in one head of two branches alike",       [PAST],            "main main*", "raw/a",      31,   "current"),
    ("in a head, but young on another",         [PAST],            "main dev*",  "raw/a",      10,   "holder"),
    ("in the head, of which no rule speaks",    [RAW],             "main*",      "raw/a",      31,   "expired"),
    ("in the head, and another rule removes",   [PAST, RAW],       "main*",      "raw/a",      31,   "expired"),
    ("in the head, and another is not past",    [PAST, LONG],      "main*",      "raw/a",      31,   "current"),
    ("in the head, and in the end it does",     [PAST, LONG],      "main*",      "raw/a",      91,   "expired"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "reached", "path", "age", "said"), [row[1:] for row in JUDGED], ids=[row[0] for row in JUDGED]
)
def test_what_rules_say(rules, reached, path, age, said):
    assert reason(rules, reached, path, age, {}, {}) == (said, "")


TAGGED, DETACHED, HELD = {"tagged": True}, {"detached": True}, {"held": "h-commit"}
KEEP_RAW = {"keep_prefixes": ("fine/", "raw/", "last/")}
KEEP_GLOB = {"keep_globs": ("*.md", "raw/*.csv")}
KEEP_BYTES = {"keep_globs": ("*\udcff*",)}
HOLD_RAW = {"held_prefixes": (("fine/", "h-fine"), ("raw/", "h-raw"))}
HOLD_ALL = {"held_prefixes": (("", "h-all"),)}
HOLD_TWICE = {"held_prefixes": (("raw/", "h-first"), ("raw/", "h-second"))}
HASH = int(address_hash(pa.array([ADDRESS]))[0])
HOLD_OBJECT = {"held_hashes": ((HASH ^ 1, "h-another"), (HASH, "h-object"))}
HOLD_OTHER = {"held_hashes": ((HASH ^ 1, "h-another"),)}

KEPT = [
    # what is so                       path           age group              terms                   reason
    ("tagged",                         "raw/a",       31, TAGGED,            {},                     "tagged"),
    ("tagged, and young",              "raw/a",       1,  TAGGED,            {},                     "tagged"),
    ("detached",                       "raw/a",       31, DETACHED,          {},                     "detached"),
    ("tagged and detached",            "raw/a",       31, TAGGED | DETACHED, {},                     "tagged"),
    ("kept by a prefix",               "raw/a",       31, {},                KEEP_RAW,               "keep rule"),
    ("kept by a prefix, and young",    "raw/a",       1,  {},                KEEP_RAW,               "keep rule"),
    ("no prefix keeps it",             "rough/a",     31, {},                KEEP_RAW,               "expired"),
    ("kept by a glob",                 "raw/a.csv",   31, {},                KEEP_GLOB,              "keep rule"),
    ("a glob crosses slashes",         "raw/b/a.csv", 31, {},                KEEP_GLOB,              "keep rule"),
    ("a glob is the whole path",       "raw/a.csv.z", 31, {},                KEEP_GLOB,              "expired"),
    ("a glob heeds case",              "raw/a.CSV",   31, {},                KEEP_GLOB,              "expired"),
    ("kept by a glob for odd bytes",   b"raw/\xff.z", 31, {},                KEEP_BYTES,             "keep rule"),
    ("kept by a glob after odd bytes", b"\xff.md",    31, {},                KEEP_GLOB,              "keep rule"),
    ("kept, tagged and detached",      "raw/a",       31, TAGGED | DETACHED, KEEP_RAW,               "keep rule"),
    ("held with its commit",           "raw/a",       31, HELD,              {},                     "h-commit"),
    ("held by a prefix",               "raw/a",       31, {},                HOLD_RAW,               "h-raw"),
    ("held by a prefix, and young",    "raw/a",       1,  {},                HOLD_RAW,               "h-raw"),
    ("held by the empty prefix",       b"\xff",       31, {},                HOLD_ALL,               "h-all"),
    ("no prefix holds it",             "rough/a",     31, {},                HOLD_RAW,               "expired"),
    ("held as an object",              "raw/a",       31, {},                HOLD_OBJECT,            "h-object"),
    ("another object is held",         "raw/a",       31, {},                HOLD_OTHER,             "expired"),
    ("held twice: the later is told",  "raw/a",       31, {},                HOLD_TWICE,             "h-second"),
    ("held by commit and prefix",      "raw/a",       31, HELD,              HOLD_RAW,               "h-raw"),
    ("held by prefix and object",      "raw/a",       31, HELD,              HOLD_RAW | HOLD_OBJECT, "h-object"),
    ("held, kept and tagged",          "raw/a",       31, TAGGED,            KEEP_RAW | HOLD_RAW,    "h-raw"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "age", "of_group", "of_terms", "said"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT]
)
def test_what_else_keeps(path, age, of_group, of_terms, said):
    expected = ("held", said) if said.startswith("h-") else (said, "")
    assert reason([ALL], "main", path, age, of_group, of_terms) == expected


def test_each_entry_is_judged_by_its_own_group_and_path():
    groups = group("main"), group("main dev"), group("dev*"), group("main", tagged=True), group("dev", held="h1")
    paths, hashes, created = columns(*[("raw/a", 10), ("fine/a", 10)] * 5)
    found = judged(paths, hashes, created, places(0, 0, 1, 1, 2, 2, 3, 3, 4, 4), terms([RAW], *groups))
    assert [ORDER[place].value for place in found.reasons] == [
        "holder", "holder", "holder", "holder", "expired", "holder", "tagged", "tagged", "held", "held",
    ]  # fmt: skip
    assert [found.holds[place] for place in found.hold_of] == [""] * 8 + ["h1"] * 2


def test_the_order_of_entries_does_not_matter():
    entries = [(path, age) for path in ("raw/a", "fine/a", "raw", "z") for age in (1, 10, 31, 91)]
    groups = group("main"), group("dev*"), group("other", tagged=True)
    of = [number % 3 for number in range(len(entries))]
    said = []
    for step in (1, -1):
        found = judged(*columns(*entries[::step]), places(*of[::step]), terms([RAW, PAST, LONG], *groups))
        said.append(list(found.reasons[::step]))
    assert said[0] == said[1]
    alone = [
        judged(*columns(entry), places(place), terms([RAW, PAST, LONG], *groups)).reasons[0]
        for entry, place in zip(entries, of, strict=True)
    ]
    assert said[0] == alone


PAST_BY_DATE = [
    ("past on one branch of two", [RAW],       group("main dev"),          "raw/a", 10,  True),
    ("past on none",              [RAW],       group("main dev"),          "raw/a", 5,   False),
    ("past in a head",            [PAST],      group("main*"),             "raw/a", 31,  True),
    ("past by one rule of two",   [LONG, RAW], group("main"),              "raw/a", 31,  True),
    ("tagged",                    [RAW],       group("main", tagged=True), "raw/a", 31,  True),
    ("detached",                  [RAW],       group("", detached=True),   "raw/a", 999, False),
    ("held",                      [RAW],       group("main", held="h"),    "raw/a", 31,  True),
    ("on a branch not covered",   [RAW],       group("other"),             "raw/a", 999, False),
    ("of another path",           [RAW],       group("main"),              "fine/", 999, False),
    ("no rules",                  [],          group("main"),              "raw/a", 999, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "one", "path", "age", "is_past"), [row[1:] for row in PAST_BY_DATE], ids=[row[0] for row in PAST_BY_DATE]
)
def test_what_is_past_is_so_by_date_alone(rules, one, path, age, is_past):
    said = terms(rules, one, **KEEP_RAW, **HOLD_ALL)
    paths, hashes, created = columns((path, age))
    assert past(paths, created, places(0), said).tolist() == [is_past]
    assert judged(paths, hashes, created, places(0), said).past.tolist() == [is_past]


RELEASING = [
    # what is so                        rules                  group               path      age  by rules
    ("one rule, past",                  [RAW],                 group("main"),      "raw/a",  31,  [0]),
    ("one rule, not past",              [RAW],                 group("main"),      "raw/a",  30,  []),
    ("past on one branch is enough",    [RAW],                 group("main dev"),  "raw/a",  10,  [0]),
    ("two rules, both past",            [RAW, LONG],           group("main"),      "raw/a",  91,  [0, 1]),
    ("two rules, one past",             [RAW, LONG],           group("main"),      "raw/a",  31,  [0]),
    ("only those that match",           [LONG, ALL, NO_SLASH], group("main"),      "rawest", 91,  [1, 2]),
    ("each on a branch of its own",     [ON_MAIN, ON_DEV],     group("main dev"),  "raw/a",  31,  [0, 1]),
    ("on the one that reaches it",      [ON_MAIN, ON_DEV],     group("dev"),       "raw/a",  31,  [1]),
    ("not one for the past, in a head", [PAST, RAW],           group("main*"),     "raw/a",  31,  [1]),
    ("but so where another has it",     [PAST],                group("main* dev"), "raw/a",  31,  [0]),
    ("nobody reaches it",               [ALL],                 group(""),          "raw/a",  999, []),
    ("no rules",                        [],                    group("main"),      "raw/a",  999, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "one", "path", "age", "found"), [row[1:] for row in RELEASING], ids=[row[0] for row in RELEASING]
)
def test_which_rules_let_an_entry_go(rules, one, path, age, found):
    said = terms(rules, one)
    paths, hashes, created = columns((path, age))
    verdicts = judged(paths, hashes, created, places(0), said)
    masks, mask_of = releasing(verdicts, created, places(0), said)
    assert [number for number, byte in enumerate(masks[mask_of[0]]) if byte] == found


def test_which_rules_let_entries_of_two_groups_go():
    said = terms([RAW, LONG], group("main"), group("dev"))
    paths, hashes, created = columns(*[("raw/a", 31), ("raw/b", 91), ("fine/a", 91)] * 2)
    groups = places(0, 0, 0, 1, 1, 1)
    masks, mask_of = releasing(judged(paths, hashes, created, groups, said), created, groups, said)
    assert [masks[place] for place in mask_of] == [b"\1\0", b"\1\1", b"\0\0"] * 2


@pytest.mark.parametrize("rules", [[], [RAW], [RAW] * 9])
@pytest.mark.parametrize("groups", [(), (group("main"),), (group("main"), group("dev", held="h"))])
def test_no_entries_have_no_verdicts(rules, groups):
    said = terms(rules, *groups, **KEEP_RAW, **KEEP_GLOB, **HOLD_ALL, **HOLD_OBJECT)
    paths, hashes, created = columns()
    verdicts = judged(paths, hashes, created, places(), said)
    assert [len(column) for column in (verdicts.reasons, verdicts.past, verdicts.mask_of, verdicts.hold_of)] == [0] * 4
    assert len(past(paths, created, places(), said)) == 0
    masks, mask_of = releasing(verdicts, created, places(), said)
    assert (masks, len(mask_of)) == ([bytes(len(rules))], 0)


def test_verdicts_of_some_entries_are_those_they_had():
    said = terms([RAW, LONG], group("main", held=""), group("dev", held="h1"))
    paths, hashes, created = columns(("raw/a", 31), ("fine/a", 31), ("raw/a", 91))
    whole = judged(paths, hashes, created, places(0, 1, 1), said)
    some = whole.of(np.array([False, True, True]))
    assert some.reasons.tolist() == whole.reasons.tolist()[1:]
    assert some.past.tolist() == [False, True]
    assert [some.masks[place] for place in some.mask_of] == [b"\0\0", b"\1\1"]
    assert [some.holds[place] for place in some.hold_of] == ["h1", "h1"]


MATCHED = [
    ("no prefixes",       [],                     ["a", "b"],               [b"", b""]),
    ("no paths",          ["a"],                  [],                       []),
    ("the empty prefix",  [""],                   ["a", b"\xff"],           [b"\1", b"\1"]),
    ("one of two",        ["a", "b"],             ["ax", "bx", "c"],        [b"\1\0", b"\0\1", b"\0\0"]),
    ("both",              ["a", "ab"],            ["ab", "a"],              [b"\1\1", b"\1\0"]),
    ("the same twice",    ["a", "a"],             ["a", "b"],               [b"\1\1", b"\0\0"]),
    ("not only ASCII",    ["ä/"],                 ["ä/x", b"\xc3/", "a/"],  [b"\1", b"\0", b"\0"]),
    ("odd bytes after",   ["a/"],                 [b"a/\xff", b"a\xff"],    [b"\1", b"\0"]),
    ("more than a byte",  list("abcdefghij"),     ["a", "j", "b", "j", "z"],
     [bytes([1] + [0] * 9), bytes([0] * 9 + [1]), bytes([0, 1] + [0] * 8), bytes([0] * 9 + [1]), bytes(10)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("prefixes", "paths", "expected"), [row[1:] for row in MATCHED], ids=[row[0] for row in MATCHED]
)
def test_which_prefixes_match(prefixes, paths, expected):
    masks, mask_of = matched(columns(*((path, 0) for path in paths))[0], prefixes)
    assert [masks[place] for place in mask_of] == expected
    assert len(set(masks)) == len(masks)


def test_each_answer_is_told_once():
    masks, _ = matched(columns(*((f"a{number}", 0) for number in range(100)))[0], ["a", "b"])
    assert masks == [b"\1\0"]


def test_no_prefix_and_no_glob_fit_nothing():
    paths = columns(("a", 0))[0]
    assert starts(paths, []).tolist() == fits(paths, []).tolist() == [False]


def test_a_policy_is_decided_once_for_each_group_and_mask():
    said = terms([RAW, PAST], group("main*"), group(""))
    assert said.decided(0, b"\1\1") == (TODAY - 30 * DAY,) * 3
    assert said.decided(0, b"\0\1") == (NEVER, TODAY - 30 * DAY, TODAY - 30 * DAY)
    assert said.decided(1, b"\1\1") == said.decided(0, b"\0\0") == (NEVER,) * 3
    assert said.decided(0, b"\1\1") is said.decided(0, b"\1\1")
