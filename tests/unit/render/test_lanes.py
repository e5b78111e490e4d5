"""Where commits stand: each once, above its parents, and no line runs through another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.render import lanes
from desilt.runs.history import Dot, Fate, HistoryChange
from effort import lines


def change(*words, refs=None, fates=None, after=None, deleted=()):
    """Commits as ``id:parent,parent``, newest first."""
    dots = []
    for word in words:
        name, _, parents = word.partition(":")
        before = tuple(parents.split(",")) if parents else ()
        fate, labels = (fates or {}).get(name, Fate.KEPT), (refs or {}).get(name, ())
        dots.append(
            Dot(name, before, (after or {}).get(name, before), "2026-01-01T00:00:00+00:00", "", fate, "", labels)
        )
    return HistoryChange(tuple(dots), {}, dict.fromkeys(deleted, "old"))


def line(length, first="c"):
    return [f"{first}{at}:{first}{at + 1}" if at + 1 < length else f"{first}{at}" for at in range(length)]


def check(commits):
    """The layout of ``commits``, once everything that must hold of it was seen to hold."""
    rows = list(lanes.rows(commits))
    assert [row.id for row in rows] == [name for name, _ in commits]
    at = {row.id: number for number, row in enumerate(rows)}
    taken = {(number, row.lane): row.id for number, row in enumerate(rows)}
    for number, (row, (_, parents)) in enumerate(zip(rows, commits, strict=True)):
        assert [way.parent for way in row.ways] == list(dict.fromkeys(parents))
        assert row.used[row.lane]
        for way in row.ways:
            assert at[way.parent] > number
            for below in range(number + 1, at[way.parent]):  # two lines share a lane if they lead to one commit
                assert taken.setdefault((below, way.lane), way.parent) == way.parent
                assert rows[below].used[way.lane]
            assert way.lane == rows[at[way.parent]].lane or way.lane in rows[at[way.parent]].joined
    for number, row in enumerate(rows):
        assert [lane for lane, on in enumerate(row.used) if on] == sorted(
            lane for (at_row, lane) in taken if at_row == number
        )
    return rows


@st.composite
def histories(draw):
    """Any history of up to 40 commits, with fates and refs."""
    size = draw(st.integers(1, 40))
    dots = []
    for at in range(size):
        steps = draw(st.just([1]) | st.lists(st.integers(1, 3) | st.integers(1, 39), max_size=3, unique=True))
        parents = tuple(f"c{at + step}" for step in steps if at + step < size)
        refs = (f"r{at}",) if draw(st.integers(0, 9)) == 0 else ()
        fate = draw(st.sampled_from([Fate.KEPT, Fate.KEPT, Fate.KEPT, Fate.ABANDONED, Fate.EDITED]))
        dots.append(Dot(f"c{at}", parents, parents, "", "", fate, "", refs))
    return HistoryChange(tuple(dots), {}, {})


def pairs(spots):
    return [(spot.id, spot.parents) for spot in spots]


@given(histories())
def test_any_history_is_laid_out_without_collisions(history):
    check(pairs(lanes.before(history)))


@given(histories(), st.integers(1, 4), st.integers(1, 20))
def test_any_history_that_is_folded_and_cut_is_laid_out_without_collisions(history, longest, most):
    spots = lanes.before(history)
    folded = lanes.folded(spots, longest=longest)
    assert sorted(dot.id for spot in folded for dot in spot.dots) == sorted(dot.id for dot in history.dots)
    check(pairs(folded))
    near = lanes.nearest(folded, most=most, deleted={})
    assert len(near) == min(most, len(folded))
    check(pairs(near))
    order = [spot.id for spot in spots]
    assert [spot.id for spot in near] == sorted((spot.id for spot in near), key=order.index)


@given(histories(), st.integers(1, 4))
def test_ends_refs_merges_and_branching_points_are_never_folded(history, longest):
    spots = lanes.before(history)
    children = [parent for spot in spots for parent in spot.parents]
    for spot in lanes.folded(spots, longest=longest):
        if len(spot.dots) == 1:
            continue
        assert len(spot.dots) > longest
        assert len({dot.fate for dot in spot.dots}) == 1
        for dot, below in zip(spot.dots, (*spot.dots[1:], None), strict=True):
            assert not dot.refs
            assert children.count(dot.id) == 1
            assert dot.before == ((below.id,) if below else spot.parents)


def test_a_long_run_is_one_and_its_ends_stay():
    folded = lanes.folded(lanes.before(change(*line(10))))
    assert pairs(folded) == [("c0", ("c1",)), ("c1", ("c9",)), ("c9", ())]
    assert [dot.id for dot in folded[1].dots] == [f"c{at}" for at in range(1, 9)]


def test_six_in_a_row_are_shown_and_seven_are_not():
    assert len(lanes.folded(lanes.before(change(*line(8))))) == 8
    assert len(lanes.folded(lanes.before(change(*line(9))))) == 3


@pytest.mark.parametrize("facts", [{"refs": {"c5": ("main",)}}, {"fates": {"c5": Fate.EDITED}}])
def test_a_ref_or_another_fate_parts_a_run(facts):
    folded = lanes.folded(lanes.before(change(*line(20), **facts)))
    assert [len(spot.dots) for spot in folded] == [1, 1, 1, 1, 1, 1, 13, 1]


def test_after_a_change_abandoned_commits_and_deleted_refs_are_not_seen_and_parents_are_the_new_ones():
    made = change(
        "c:b", "b:a", "a",
        fates={"c": Fate.EDITED, "b": Fate.ABANDONED}, after={"c": ("a",)},
        refs={"c": ("main", "tag v1")}, deleted=["tag v1"],
    )  # fmt: skip
    assert pairs(lanes.before(made)) == [("c", ("b",)), ("b", ("a",)), ("a", ())]
    assert pairs(lanes.after(made)) == [("c", ("a",)), ("a", ())]
    assert [spot.refs for spot in lanes.after(made)] == [("main",), ()]


def test_a_parent_that_is_not_in_the_history_is_cut():
    (spot,) = lanes.before(change("b:a"))
    assert (spot.parents, spot.cut) == ((), 1)


def test_what_is_left_out_is_far_from_what_changes_and_lines_lead_over_it():
    made = change(*line(100), fates={"c50": Fate.EDITED}, refs={f"c{at}": (f"r{at}",) for at in range(100)})
    near = lanes.nearest(lanes.before(made), most=5, deleted={})
    assert [spot.id for spot in near] == ["c0", "c1", "c49", "c50", "c51"]
    assert [(spot.parents, spot.far, spot.cut) for spot in near[1:3]] == [(("c49",), ("c49",), 1), (("c50",), (), 0)]
    assert (near[-1].parents, near[-1].cut) == ((), 1)


def test_refs_that_go_come_before_refs_that_stay():
    made = change(*line(40), refs={f"c{at}": (f"r{at}",) for at in range(40)}, deleted=["r30"])
    assert [spot.id for spot in lanes.nearest(lanes.before(made), most=1, deleted=made.deleted)] == ["c30"]


def test_the_same_parent_twice_is_one_line():
    check([("b", ("a", "a")), ("a", ())])


def wide(branches, length):
    """Branches that all start at the root, their commits in turn."""
    words = []
    for at in range(length):
        below = [f"b{b}n{at + 1}" if at + 1 < length else "root" for b in range(branches)]
        words += [f"b{b}n{at}:{below[b]}" for b in range(branches)]
    return [*words, "root"]


def ladder(length):
    """Two lines that merge each other all the way."""
    last = length - 1
    return [f"c{at}:{','.join(f'c{p}' for p in (at + 1, at + 2) if p <= last)}".rstrip(":") for at in range(length)]


@pytest.mark.parametrize(
    ("words", "beside"), [(line(3_000), 1), (wide(300, 9), 300), (ladder(3_000), 2), (wide(700, 4), 700)]
)
def test_thousands_of_commits_are_laid_out_without_a_walk_from_each(words, beside):
    """The work is that of a row for each commit, as wide as there are lines beside each other."""
    spots = lanes.before(change(*words, fates={"c1500": Fate.EDITED}))
    assert len(list(lanes.rows(pairs(spots)))) == len(words)
    most = 5 * len(words) * (beside + 50)
    assert lines(lambda: list(lanes.rows(pairs(spots)))) < most
    assert lines(lambda: lanes.nearest(lanes.folded(spots), most=60, deleted={})) < most
