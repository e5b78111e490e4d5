"""A plan that releases commits, decided again on a history that moved: nobody loses what was needed in between."""

from datetime import UTC, datetime, timedelta

from desilt.domain.expiry import Expiry
from desilt.domain.history import Commit
from desilt.render.history import sections
from desilt.repository.editor import GoingRef
from desilt.repository.graph import graph_of
from desilt.repository.snapshot import Branch, Revision, Snapshot, Tag
from desilt.runs.history import Fate, read_change
from desilt.runs.steps import EditHistory
from desilt.sweep.history import Decision, drawn

START = datetime(2026, 1, 1, tzinfo=UTC)
BEFORE = START + timedelta(days=4)
NODES = {"r": "", "a": "r", "b": "a", "c": "b", "d": "c", "e": "d", "late": "b", "lost": "a"}


def seen(*, without=(), tags="", main="e", **branches):
    """r, a, b, c are old, d and e young; ``late`` is young too, and ``lost`` is what no ref reaches."""
    commits = {}
    for number, (name, above) in enumerate(NODES.items()):
        if name not in without:
            at = START + timedelta(days=number if name != "lost" else 2)
            commits[name] = Commit(name, (above,) if above else (), name, at, "", f"message of {name}")
    heads = {"main": main, **branches}
    named = [word.split("@") for word in tags.split()]
    return Snapshot(
        Revision(0, "mark"),
        "main",
        commits,
        tuple(Branch(name, name, head, START) for name, head in sorted(heads.items())),
        tuple(Tag(name, target, START) for name, target in named),
        (),
    )


def planned(history, **wish):
    found = Expiry(BEFORE, mode="v2", **wish).decide(graph_of(history))
    edits = tuple((one.id, one.old_parents, one.new_parents) for one in found.edits)
    going = tuple(GoingRef(ref.kind, ref.name, ref.name, ref.target, why) for ref, why in found.deleted_refs.items())
    facts = Expiry(BEFORE, mode="v2", **wish).facts()
    return EditHistory(facts, edits, going, len(found.abandoned), 6, tuple(sorted(found.released)))


def test_what_was_planned_is_what_is_done():
    now = seen(without=["late"])
    step = planned(now)
    assert step.released == ("a", "b", "c", "lost")
    decided = Decision("run", step)(now)
    assert decided.released == frozenset("abc") | {"lost"}
    assert decided.parents == [("d", ("c",), ("r",))]


def test_a_commit_made_since_on_an_old_one_keeps_all_that_it_descends_from():
    """It is to get the root as well, but nobody has seen that in a plan."""
    decided = Decision("run", planned(seen(without=["late"])))(seen(late="late"))
    assert decided.parents == [("d", ("c",), ("r",))]
    assert decided.released == {"c", "lost"}


def test_a_tag_made_since_on_an_old_commit_keeps_what_the_plan_does_not_cut_off():
    decided = Decision("run", planned(seen(without=["late"])))(seen(without=["late"], tags="v1@b"))
    assert decided.released == {"c", "lost"}


def test_a_branch_that_is_at_an_old_commit_by_now_and_in_no_plan_stays_with_its_history():
    step = planned(seen(without=["late"]), delete_branches=True)
    decided = Decision("run", step)(seen(without=["late"], back="c"))
    assert (decided.refs, decided.released) == ([], frozenset({"lost"}))


def test_a_ref_that_goes_with_the_plan_lets_its_tip_go():
    now = seen(without=["late"], old="b")
    decided = Decision("run", planned(now, delete_branches=True))(now)
    assert [one.name for one in decided.refs] == ["old"]
    assert decided.released == frozenset("abc") | {"lost"}


def test_done_again_there_is_nothing_to_release():
    step = planned(seen(without=["late"]))
    done = seen(without=["late", "a", "b", "c", "lost", "e"], main="d")
    done.commits["d"] = Commit("d", ("r",), "d", done.commits["d"].created_at, "", "")
    decided = Decision("run", step)(done)
    assert (decided.parents, decided.released) == ([], frozenset())


def test_a_report_says_what_can_no_longer_be_opened_and_who_gets_the_root():
    now = seen(without=["late"], tags="v1@b")
    found = Expiry(BEFORE, mode="v2").decide(graph_of(now))
    change = read_change(drawn(now, found).to_json())
    fates = {dot.id: dot.fate for dot in change.dots}
    assert fates == {
        "e": Fate.KEPT,
        "d": Fate.EDITED,
        "c": Fate.RELEASED,
        "b": Fate.EDITED,
        "a": Fate.RELEASED,
        "lost": Fate.RELEASED,
        "r": Fate.KEPT,
    }
    by = {dot.id: (dot.by, dot.after) for dot in change.dots}
    assert (by["c"][0], by["lost"][0]) == (("main",), ())
    assert by["d"][1] == by["b"][1] == ("r",)
    page = sections(change)
    assert "released: leaves history at once, and can no longer be opened" in page
    assert "Released commits" in page
    assert "Abandoned commits" not in page
    after = page.partition("History after")[2]
    assert "message of d" in after
    assert "message of r" in after
