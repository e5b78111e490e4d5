"""Seed 003, expiration: its two drawings and its sample run, as trees one can read beside the document.

A line of a tree is a line of history, oldest commit first; it begins with a commit
that an earlier line has, or with a root. ``X`` marks old commits, brackets hold the
refs on a commit. The seed's last drawing calls the tag of 3 "ta2": it is tag1.
"""

import itertools
import re
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.expiration import Node, Ref, abandon, after, expire
from desilt.domain.expiry import Expiry, Omission
from desilt.domain.keep_rules import KeepCounts, walk_down
from desilt.errors import BadRequest, CommitGone
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.runner import run
from desilt.lake import commits, fsck
from desilt.sweep.limits import Limits
from seed_003 import sample
from words import collecting

START = datetime(2026, 1, 1, tzinfo=UTC)
CUTOFF = START + timedelta(days=8)  # commit N is made on day N: 8 is the first that is young

ORIGINAL = """
0 - X1 - X2 - X4 - X5[tag2] - 12 - 13 - 14[main]
         X2 - X3[tag1] - X6 - 10 - 11[develop]
                         X6 - X7 - 9[test]
                              X7 - 8[qa]
"""
AFTER_MAIN = """
0 - 12 - 13 - 14[main]
0 - X1 - X2 - X4 - X5[tag2]
         X2 - X3[tag1] - X6 - 10 - 11[develop]
                         X6 - X7 - 9[test]
                              X7 - 8[qa]
"""
AFTER_DEVELOP = """
0 - 12 - 13 - 14[main]
0 - 10 - 11[develop]
0 - X1 - X2 - X4 - X5[tag2]
         X2 - X3[tag1] - X6 - X7 - 9[test]
                              X7 - 8[qa]
"""
AFTER_TEST = """
0 - 12 - 13 - 14[main]
0 - 10 - 11[develop]
0 - 9[test]
0 - X1 - X2 - X4 - X5[tag2]
         X2 - X3[tag1] - X6 - X7 - 8[qa]
"""
AFTER_QA = """
0 - 12 - 13 - 14[main]
0 - 10 - 11[develop]
0 - 9[test]
0 - 8[qa]
0 - X1 - X2 - X4 - X5[tag2]
         X2 - X3[tag1] - X6 - X7
"""
STEPS = [
    ("main", AFTER_MAIN),
    ("develop", AFTER_DEVELOP),
    ("test", AFTER_TEST),
    ("qa", AFTER_QA),
    ("tag1", AFTER_QA),
    ("tag2", AFTER_QA),
]


# ---- words


def tree(text):
    """The history a drawing shows: nodes and refs."""
    parents, refs = {}, {}
    for line in text.strip().splitlines():
        names = []
        for word in line.split(" - "):
            name, ref = re.fullmatch(r"\s*X?(\w+)(?:\[(\w+)\])?", word).groups()
            names.append(name)
            if ref:
                refs[ref] = Ref("tag" if ref.startswith("tag") else "branch", ref, name)
        parents.setdefault(names[0], ())
        parents |= {child: (parent,) for parent, child in itertools.pairwise(names)}
    times = {name: START + timedelta(days=int(name)) for name in parents}
    assert set(re.findall(r"X(\d+)", text)) == {name for name, at in times.items() if at < CUTOFF and parents[name]}
    return {name: Node(name, above, times[name]) for name, above in parents.items()}, refs


def tree_of(text):
    """As :func:`tree`, for commits with names instead of numbers: each is a day younger than the one before."""
    parents, refs = {}, []
    for line in text.split(" | "):
        names = [re.match(r"\w+", word).group() for word in line.split(" - ")]
        refs += [Ref("branch", ref, name) for name, ref in re.findall(r"(\w+)\[(\w+)\]", line)]
        parents.setdefault(names[0], ())
        parents |= {child: (parent,) for parent, child in itertools.pairwise(names)}
    return {name: Node(name, above, START + timedelta(days=i)) for i, (name, above) in enumerate(parents.items())}, refs


def reached(nodes, refs):
    """Who reaches each commit, by name."""
    lines = {ref.name: set(walk_down([ref.target], lambda name: nodes[name].parents)) for ref in refs}
    return {name: {ref for ref, line in lines.items() if name in line} for name in nodes}


NODES, REFS = tree(ORIGINAL)
ALL = list(REFS.values())


# ---- the simpler problem


def test_a_run_in_the_middle_is_abandoned_by_updating_the_commit_above_it_in_place():
    before, refs = tree_of("0 - B - Xn - X2 - X1 - A - N2 - N1[main]")
    expected, _ = tree_of("0 - B - A - N2 - N1[main] | B - Xn - X2 - X1")
    edit = abandon(before, refs, refs[0], "X1", "Xn")
    assert (edit.id, edit.old_parents, edit.new_parents) == ("A", ("X1",), ("B",))
    found = after(before, edit)
    assert {name: node.parents for name, node in found.items()} == {name: n.parents for name, n in expected.items()}
    assert found["A"].created_at == before["A"].created_at
    assert [name for name, by in reached(found, refs).items() if not by] == ["Xn", "X2", "X1"]


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_the_forbidden_operations(kind):
    nodes, refs = tree_of("0 - B - X2 - X1 - A[main]")
    with pytest.raises(BadRequest, match=f"commit X2 is what {kind} 'v1' points to; leave it out"):
        abandon(nodes, [*refs, Ref(kind, "v1", "X2")], refs[0], "X1", "X2")


# ---- the sample run


def test_the_tree_after_each_ref_in_the_seeds_order():
    nodes = NODES
    for name, drawing in STEPS:
        nodes = after(nodes, expire(nodes, [REFS[name]], before=CUTOFF))
        assert (nodes, REFS) == (tree(drawing)[0], tree(drawing)[1]), name


def test_what_hangs_on_whom_after_each_ref():
    by = reached(tree(AFTER_MAIN)[0], ALL)
    assert by["4"] == by["5"] == {"tag2"}
    assert all(by.values())
    assert all(reached(tree(AFTER_DEVELOP)[0], ALL).values())
    assert all(reached(tree(AFTER_TEST)[0], ALL).values())
    assert [name for name, by in reached(tree(AFTER_QA)[0], ALL).items() if not by] == ["6", "7"]


def test_every_order_of_the_six_refs_ends_in_the_same_tree():
    for order in itertools.permutations(ALL):
        nodes = NODES
        for ref in order:
            nodes = after(nodes, expire(nodes, [ref], before=CUTOFF))
        assert nodes == tree(AFTER_QA)[0]
        assert expire(NODES, order, before=CUTOFF) == expire(NODES, ALL, before=CUTOFF)


def test_the_whole_sample_at_once():
    found = expire(NODES, ALL, before=CUTOFF)
    assert after(NODES, found) == tree(AFTER_QA)[0]
    assert [(edit.id, edit.old_parents, edit.new_parents) for edit in found.edits] == [
        ("8", ("7",), ("0",)), ("9", ("7",), ("0",)), ("10", ("6",), ("0",)), ("12", ("5",), ("0",))
    ]  # fmt: skip
    assert {name: {ref.name for ref in refs} for name, refs in found.abandoned.items()} == {
        "6": {"develop", "test", "qa"},
        "7": {"test", "qa"},
    }
    assert found.pointed == {"3": (REFS["tag1"],), "5": (REFS["tag2"],)}
    assert found.skipped.keys() == {REFS["tag1"], REFS["tag2"]}
    assert found.deleted_refs == {}


def test_five_more_go_once_the_old_tags_do():
    at_once = expire(NODES, ALL, before=CUTOFF, delete_expired_tags=True)
    assert at_once.deleted_refs.keys() == {REFS["tag1"], REFS["tag2"]}
    assert sorted(at_once.abandoned) == ["1", "2", "3", "4", "5", "6", "7"]
    first = expire(NODES, ALL, before=CUTOFF)
    later = expire(after(NODES, first), ALL, before=CUTOFF, delete_expired_tags=True)
    assert later.edits == ()
    assert sorted(later.abandoned) == ["1", "2", "3", "4", "5"]


def test_the_sample_with_keep_rules():
    """The last four of each line: main has 14, 13, 12 and 5; develop 11, 10, 6, 3; test 9, 7, 6, 3; qa 8, 7, 6, 3."""
    found = expire(NODES, ALL, before=CUTOFF, keep=KeepCounts(last=4), delete_expired_tags=True)
    assert after(NODES, found) == tree("""
0 - X5[tag2] - 12 - 13 - 14[main]
0 - X3[tag1] - X6 - 10 - 11[develop]
               X6 - X7 - 9[test]
                    X7 - 8[qa]
0 - X1 - X2 - X4
""")[0]  # fmt: skip
    assert found.kept.keys() == {"3", "5", "6", "7"}
    assert sorted(found.abandoned) == ["1", "2", "4"]
    assert found.deleted_refs == {}


# ---- the same on a lake


SURE = Limits(max_share=1.0, confirm=True)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def lake(request, tmp_path):
    db = request.getfixturevalue("fresh_postgres_url")() if request.param == "PostgreSQL" else None
    opened, repo, made = sample(tmp_path / "lake", db=db)
    yield repo, made
    opened.close()


def drawn(repo, made):
    """The lake's commits as a drawing has them; those that were collected are left out."""
    number = {commit: one for one, commit in made.items()}
    with repo.database.read() as tx:
        found = list(commits.every(tx, repo.uid))
    return {
        number[one.id]: Node(number[one.id], tuple(number[up] for up in one.parents), one.created_at) for one in found
    }


def expired(repo, **wish):
    return run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(CUTOFF, **wish)), SURE)[-1]


def collected(repo):
    return run(collection.job, repo, HERE, collecting(), SURE)[-1]


def only(drawing, *numbers):
    return {name: node for name, node in tree(drawing)[0].items() if name in numbers}


def test_the_sample_on_a_lake(lake):
    repo, made = lake
    assert drawn(repo, made) == NODES
    report = expired(repo)
    assert drawn(repo, made) == tree(AFTER_QA)[0]
    assert (report.history["edited"], report.history["abandoned"]) == (4, 2)
    assert b"".join(repo.get(made["7"], "test")) == b"7"  # abandoned, and readable by its id
    assert expired(repo).history["edited"] == 0

    assert collected(repo).history["commits collected"] == 2
    assert drawn(repo, made) == only(AFTER_QA, *map(str, (0, 1, 2, 3, 4, 5, *range(8, 15))))
    for number in "67":
        with pytest.raises(CommitGone, match="no ref reached it any more"):
            repo.stat(made[number], "test")

    report = expired(repo, delete_tags=True)
    assert report.refs == {"tag1": "deleted", "tag2": "deleted"}
    assert report.history["abandoned"] == 5
    assert collected(repo).history["commits collected"] == 5
    assert drawn(repo, made) == only(AFTER_QA, "0", *map(str, range(8, 15)))
    again = collected(repo)
    assert (again.history["commits collected"], again.removed.objects) == (0, 0)

    assert {branch.name: b"".join(repo.get(branch.name, branch.name)) for branch in repo.branches()} == {
        "develop": b"11", "main": b"14", "qa": b"8", "test": b"9"
    }  # fmt: skip
    assert fsck.check(repo, deep=True).sound


def test_the_simpler_problem_on_a_lake(lake):
    repo, made = lake
    wish = Omission("main", made["13"][:12], "main~2")
    run(expiration.job, repo, HERE, expiration.job.ask(wish=wish), SURE)
    assert [commit.message for commit in repo.log("main")][:3] == ["14", "5", "4"]
    assert b"".join(repo.get(made["13"], "main")) == b"13"
    with pytest.raises(BadRequest, match=r"is what tag 'tag2' points to; leave it out"):
        run(expiration.job, repo, HERE, expiration.job.ask(wish=Omission("main", made["5"], made["4"])), SURE)
