"""What the three modes leave of a history: the document's sample, tiny graphs, and random ones beside naive models.

The results for the sample and for the odd refs are those of Icechunk's own library, seen with 1.1.21 and 2.3.0.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.domain.expiration import Node, Ref, after, expire, leaving, part
from desilt.domain.keep_rules import KeepCounts
from desilt.domain.modes import MODES
from desilt.errors import Unreadable

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BOTH = {"delete_expired_tags": True, "delete_expired_branches": True}
MAIN = {"main": "it is the default branch"}

SAMPLE = "0 1:0 2:1 3:2 4:2 5:4 6:3 7:6 8:7 9:7 10:6 11:10 12:5 13:12 14:13"
SAMPLE_REFS = "main=14 develop=11 test=9 qa=8 tag1@3 tag2@5"


def graph(text):
    """``a b:a c:b`` as nodes, each a day younger than the one before."""
    nodes = {}
    for number, word in enumerate(text.split()):
        name, _, above = word.partition(":")
        nodes[name] = Node(name, (above,) if above else (), START + number * DAY)
    return nodes


def refs(text):
    """``main=d v1@b h!c``: a branch has ``=``, a tag ``@``, a hold ``!``."""
    kinds = {"=": "branch", "@": "tag", "!": "hold"}
    return [Ref(kinds[sign], *word.split(sign)) for word in text.split() for sign in kinds if sign in word]


def cut(day):
    return START + day * DAY


def line(nodes, tip):
    """``14,13,12,0``."""
    found = [tip]
    while nodes[found[-1]].parents:
        found += nodes[found[-1]].parents
    return ",".join(found)


def left(nodes, names, found):
    """By ref that stays, its line; all in one text."""
    now = {name: node for name, node in after(nodes, found).items() if name not in found.released}
    return {ref.name: line(now, ref.target) for ref in names if ref not in found.deleted_refs}


def survivors(nodes, names, found):
    """What a collection would leave."""
    now = after(nodes, found)
    tips = [ref.target for ref in names if ref not in found.deleted_refs]
    return {name for tip in tips for name in line(now, tip).split(",")}


def numbers(names):
    return sorted(map(int, names))


# ---- the document's sample


LINES = {"develop": "11,10,0", "test": "9,0", "qa": "8,0"}


@pytest.mark.parametrize(
    ("mode", "lines", "gone", "released"),
    [
        ("design", {"main": "14,13,12,0", "tag1": "3,2,1,0", "tag2": "5,4,2,1,0"}, [6, 7], []),
        ("v1", {"main": "14,13,12,0", "tag1": "3,0", "tag2": "5,0"}, [1, 2, 4, 6, 7], []),
        ("v2", {"main": "14,13,12,5,0", "tag1": "3,0", "tag2": "5,0"}, [1, 2, 4, 6, 7], [1, 2, 4, 6, 7]),
    ],
)
def test_the_documents_sample(mode, lines, gone, released):
    nodes, names = graph(SAMPLE), refs(SAMPLE_REFS)
    found = expire(nodes, names, before=cut(8), mode=mode, protected=MAIN)
    assert left(nodes, names, found) == {**LINES, **lines}
    assert (numbers(found.abandoned), numbers(found.released)) == (gone, released)
    assert numbers(nodes.keys() - survivors(nodes, names, found)) == gone


@pytest.mark.parametrize("mode", MODES)
def test_the_documents_sample_with_old_refs_deleted(mode):
    nodes, names = graph(SAMPLE), refs(SAMPLE_REFS)
    found = expire(nodes, names, before=cut(8), mode=mode, protected=MAIN, **BOTH)
    assert left(nodes, names, found) == {**LINES, "main": "14,13,12,0"}
    assert numbers(nodes.keys() - survivors(nodes, names, found)) == [1, 2, 3, 4, 5, 6, 7]
    assert numbers(found.released) == ([1, 2, 3, 4, 5, 6, 7] if mode == "v2" else [])


def test_what_a_tag_held_on_a_branchs_way_goes_only_when_history_is_expired_again():
    nodes, names = graph(SAMPLE), refs(SAMPLE_REFS)
    first = expire(nodes, names, before=cut(8), mode="v2", protected=MAIN)
    now = {name: node for name, node in after(nodes, first).items() if name not in first.released}
    names = [ref for ref in names if ref.name != "tag2"]
    assert line(now, "14") == "14,13,12,5,0"
    again = expire(now, names, before=cut(8), mode="v2", protected=MAIN)
    assert (left(now, names, again)["main"], numbers(again.released)) == ("14,13,12,0", [5])


@pytest.mark.parametrize("mode", MODES)
def test_expired_again_nothing_is_left_to_do(mode):
    nodes, names = graph(SAMPLE), refs(SAMPLE_REFS)
    first = expire(nodes, names, before=cut(8), mode=mode, protected=MAIN)
    now = {name: node for name, node in after(nodes, first).items() if name not in first.released}
    again = expire(now, names, before=cut(8), mode=mode, protected=MAIN)
    assert (again.edits, again.released, again.abandoned) == ((), frozenset(), {})


# ---- refs that are odd: on the root, on main's own tip


ODD = "main=3 same=3 fold=2 told@2 froot=0 troot@0"


@pytest.mark.parametrize(
    ("mode", "delete", "lines", "released"),
    [
        ("design", False, dict.fromkeys(("main", "same"), "3,2,1,0") | dict.fromkeys(("fold", "told"), "2,1,0"), []),
        ("v1", False, dict.fromkeys(("main", "same"), "3,0") | dict.fromkeys(("fold", "told"), "2,0"), []),
        ("v2", False, dict.fromkeys(("main", "same"), "3,2,0") | dict.fromkeys(("fold", "told"), "2,0"), [1]),
        ("design", True, {"main": "3,2,1,0"}, []),
        ("v1", True, {"main": "3,0"}, []),
        ("v2", True, {"main": "3,0", "froot": "0", "troot": "0"}, [1, 2]),
    ],
)
def test_all_is_old_and_refs_are_on_the_root_and_on_mains_tip(mode, delete, lines, released):
    nodes, names = graph("0 1:0 2:1 3:2"), refs(ODD)
    found = expire(nodes, names, before=cut(9), mode=mode, protected=MAIN, **(BOTH if delete else {}))
    roots = {} if delete else {"froot": "0", "troot": "0"}
    assert left(nodes, names, found) == {**roots, **lines}
    assert numbers(found.released) == released


def test_in_v1_nothing_is_done_before_the_root_was_made():
    nodes = graph("r a:r b:a c:b")
    nodes["r"] = replace(nodes["r"], created_at=cut(9))
    assert expire(nodes, refs("main=c"), before=cut(3), mode="v1").edits == ()
    assert expire(nodes, refs("main=c"), before=cut(3), mode="design").edits != ()


def test_in_v2_what_no_ref_reaches_is_released_too_and_what_is_young_gets_the_root():
    nodes, names = graph("r a:r lost:a b:a new:lost c:b"), refs("main=c")
    found = expire(nodes, names, before=cut(4), mode="v2")
    assert found.released == {"a", "lost", "b"}
    assert {edit.id: edit.new_parents for edit in found.edits} == {"new": ("r",), "c": ("r",)}
    assert found.abandoned.keys() == {"a", "b"}
    for mode in ("design", "v1"):
        assert {edit.id for edit in expire(nodes, names, before=cut(4), mode=mode).edits} == {"c"}


# ---- orders and rules


@pytest.mark.parametrize("mode", MODES)
def test_a_hold_never_goes_and_is_never_released(mode):
    nodes, names = graph("r a:r b:a c:b d:c"), refs("main=d h!b")
    found = expire(nodes, names, before=cut(4), mode=mode, protected=MAIN, **BOTH)
    assert "b" not in found.released | found.abandoned.keys()
    assert left(nodes, names, found)["h"] == {"design": "b,a,r", "v1": "b,r", "v2": "b,r"}[mode]


@pytest.mark.parametrize(
    ("mode", "main", "gone"),
    [("design", "f,e,r", {"c", "d"}), ("v1", "f,e,b,a,r", {"c", "d"}), ("v2", "f,e,b,a,r", {"c", "d"})],
)
def test_a_parent_becomes_what_a_rule_keeps(mode, main, gone):
    """In v1 and v2 the old refs that stay keep their last two as well: for themselves, and so for all."""
    nodes, names = graph("r a:r b:a x:a c:b d:c e:d f:e"), refs("main=f v1@b old=x")
    found = expire(nodes, names, before=cut(6), mode=mode, keep=KeepCounts(last=2), protected=MAIN)
    assert left(nodes, names, found) == {"main": main, "v1": "b,a,r", "old": "x,a,r"}
    assert found.abandoned.keys() == gone
    assert found.released == (gone if mode == "v2" else set())


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_rules_are_not_asked_of_refs_that_may_go(mode):
    """Or none would ever go: the tip of each is the last that a rule keeps."""
    nodes, names = graph("r a:r b:a c:r d:c"), refs("main=d v1@b v2@c")
    found = expire(nodes, names, before=cut(4), mode=mode, keep=KeepCounts(last=2), protected=MAIN, **BOTH)
    assert [ref.name for ref in found.deleted_refs] == ["v1"]
    assert "it is kept: last 2 of 2 on branch 'main'" in found.skipped[Ref("tag", "v2", "c")]


# ---- a part of it


def test_what_is_needed_by_others_than_those_that_are_edited_is_not_released():
    nodes, names = graph("r a:r b:a c:b d:c"), refs("main=d")
    found = expire(nodes, names, before=cut(4), mode="v2")
    assert found.released == {"a", "b", "c"}
    assert part(nodes, names, found, found.edits, {}).released == {"a", "b", "c"}
    assert part(nodes, names, found, [], {}).released == frozenset()
    assert leaving(nodes, {"d": ("r",)}, {"a", "b", "c"}, ["d", "b"]) == {"c"}


def test_a_ref_that_is_kept_after_all_keeps_its_tip():
    nodes, names = graph("r a:r b:a c:b d:c"), refs("main=d v1@b")
    found = expire(nodes, names, before=cut(4), mode="v2", protected=MAIN, **BOTH)
    assert found.released == {"a", "b", "c"}
    assert part(nodes, names, found, found.edits, {names[1]: "kept"}).released == {"c"}


@pytest.mark.parametrize("mode", MODES)
def test_no_young_commit_is_lost_where_times_fall(mode):
    nodes = graph("r a:r b:a c:b d:c")
    nodes["a"] = replace(nodes["a"], created_at=cut(8))
    found = expire(nodes, refs("main=d"), before=cut(4), mode=mode)
    assert left(nodes, refs("main=d"), found) == {"main": "d,a,r"}
    strange = graph("r a:r b:a c:r")
    strange["a"] = replace(strange["a"], created_at=cut(8))
    strange["c"] = replace(strange["c"], created_at=cut(8))
    with pytest.raises(Unreadable, match="commit a is not from before"):
        expire(strange, refs("main=c v1@b"), before=cut(4), mode=mode, delete_expired_tags=True)


# ---- random histories beside models that are written in sets alone


@st.composite
def histories(draw):
    count = draw(st.integers(1, 14))
    above = [draw(st.integers(0, number - 1)) for number in range(1, count)]
    text = " ".join(["0", *(f"{number}:{parent}" for number, parent in enumerate(above, 1))])
    nodes = graph(text)
    pick = st.integers(0, count - 1).map(str)
    words = [f"main={draw(pick)}"]
    words += [f"b{n}={draw(pick)}" for n in range(draw(st.integers(0, 3)))]
    words += [f"t{n}@{draw(pick)}" for n in range(draw(st.integers(0, 3)))]
    words += [f"h{n}!{draw(pick)}" for n in range(draw(st.integers(0, 1)))]
    keep = draw(st.one_of(st.none(), st.builds(KeepCounts, last=st.integers(1, 3))))
    wish = {"delete_expired_tags": draw(st.booleans()), "delete_expired_branches": draw(st.booleans())}
    return nodes, refs(" ".join(words)), cut(draw(st.integers(0, count + 1))), keep, wish


def ways(nodes, tip):
    return line(nodes, tip).split(",")


class Model:
    """What stays, by the rules as people tell them."""

    def __init__(self, nodes, names, before, keep, wish):
        self.nodes, self.names = nodes, names
        self.old = {name for name, node in nodes.items() if node.created_at < before}
        self.keep, self.wish = keep, wish

    def may_go(self, ref):
        return ref.name != "main" and (
            (ref.kind == "tag" and self.wish["delete_expired_tags"])
            or (ref.kind == "branch" and self.wish["delete_expired_branches"])
        )

    def kept(self):
        asked = [
            ref for ref in self.names if ref.kind != "hold" and (ref.target not in self.old or not self.may_go(ref))
        ]
        last = self.keep.last if self.keep else 0
        return {name for ref in asked for name in ways(self.nodes, ref.target)[:last]}

    def goes(self, ref):
        return self.may_go(ref) and ref.target in self.old - self.kept()

    def strong(self):
        return {"0"} | self.kept() | (self.nodes.keys() - self.old)


class V1(Model):
    def lines(self):
        return {
            ref.name: [name for name in ways(self.nodes, ref.target) if name == ref.target or name in self.strong()]
            for ref in self.names
            if not self.goes(ref)
        }

    def released(self):
        return set()


class V2(Model):
    def goes(self, ref):
        return ref.target != "0" and super().goes(ref)

    def released(self):
        tips = {ref.target for ref in self.names if not self.goes(ref)}
        return self.old - {"0"} - self.kept() - tips

    def lines(self):
        found = {}
        for ref in self.names:
            if not self.goes(ref):
                found[ref.name], broken = [], False
                for name in ways(self.nodes, ref.target):
                    if name in self.released():
                        broken = True
                    elif name in self.strong() or not broken:
                        found[ref.name].append(name)
                        broken = False
        return found


@settings(max_examples=400, deadline=None)
@given(case=histories(), mode=st.sampled_from([("v1", V1), ("v2", V2)]))
def test_random_histories_end_as_the_model_says(case, mode):
    nodes, names, before, keep, wish = case
    name, model = mode
    told = model(*case)
    found = expire(nodes, names, before=before, keep=keep, mode=name, protected=MAIN, **wish)
    lines = {ref: text.split(",") for ref, text in left(nodes, names, found).items()}
    assert lines == told.lines()
    assert found.released == told.released()
    now = after(nodes, found)
    assert all(now[one].parents[0] not in found.released for one in now.keys() - found.released - {"0"})
    reached = {one for ref in names for one in ways(nodes, ref.target)}
    assert found.abandoned.keys() == reached - {one for way in lines.values() for one in way}


@settings(max_examples=200, deadline=None)
@given(case=histories())
def test_the_document_keeps_whatever_the_library_keeps(case):
    nodes, names, before, _, wish = case
    design, v1, v2 = (
        survivors(nodes, names, expire(nodes, names, before=before, mode=mode, protected=MAIN, **wish))
        for mode in MODES
    )
    assert design >= v1
    if not any(wish.values()):
        assert design >= v2
        assert v1 == v2
