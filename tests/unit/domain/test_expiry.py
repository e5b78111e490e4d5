"""What a person wants of a history: written into a plan and read back, decided on a graph."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.expiration import Node, Ref
from desilt.domain.expiry import Expiry, Graph, Omission, read_wish
from desilt.domain.keep_rules import KeepCounts
from desilt.errors import NotFound, Unreadable

NOW = datetime(2026, 1, 10, tzinfo=UTC)
WISHES = [
    Expiry(NOW),
    Expiry(NOW, KeepCounts(last=3, weekly=2), delete_tags=True),
    Expiry(NOW, delete_branches=True),
    Expiry(NOW, mode="v1"),
    Expiry(NOW, mode="v2", delete_branches=True),
    Omission("main", "b" * 64, "a" * 64),
]


def line(*names):
    """Commits in a row, a day apart."""
    return {
        name: Node(name, names[i - 1 : i] if i else (), NOW + timedelta(days=i - len(names)))
        for i, name in enumerate(names)
    }


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.policy)
def test_a_wish_is_read_as_it_was_written(wish):
    assert read_wish(json.loads(json.dumps(wish.facts()))) == wish


@pytest.mark.parametrize("facts", [{}, {"before": "soon", "keep": None}, {"ref": "main"}, {"before": 7}, {"keep": {}}])
def test_what_is_no_wish_is_unreadable(facts):
    with pytest.raises(Unreadable, match="plan again"):
        read_wish(facts)


def test_a_plan_from_before_there_were_modes_is_the_documents():
    facts = Expiry(NOW, delete_tags=True).facts()
    del facts["mode"]
    assert read_wish(facts) == Expiry(NOW, delete_tags=True, mode="design")
    with pytest.raises(Unreadable, match="plan again"):
        read_wish({**facts, "mode": "v3"})


def test_a_policy_names_the_mode_where_it_is_not_a_lakes():
    assert Expiry(NOW).policy == "history expired"
    assert Expiry(NOW, mode="v2", delete_tags=True).policy == "history expired in the mode v2, expired tags deleted"


def test_a_policy_does_not_depend_on_the_date_but_on_everything_else():
    assert Expiry(NOW).policy == Expiry(NOW + timedelta(days=1)).policy
    assert len({wish.policy for wish in WISHES}) == len(WISHES)


def test_an_expiry_asks_the_algorithm():
    graph = Graph(line("r", "a", "b", "c"), [Ref("branch", "main", "c"), Ref("tag", "old", "a")], {"main": "default"})
    found = Expiry(NOW - timedelta(days=1), delete_tags=True).decide(graph)
    assert [(edit.id, edit.new_parents) for edit in found.edits] == [("c", ("r",))]
    assert found.deleted_refs.keys() == {Ref("tag", "old", "a")}
    assert found.abandoned.keys() == {"a", "b"}


def test_an_omission_tells_what_it_leaves_out_and_of_whom():
    graph = Graph(line("r", "a", "b", "c"), [Ref("branch", "main", "c"), Ref("branch", "dev", "c")])
    found = Omission("main", "b", "a").decide(graph)
    assert [(edit.id, edit.new_parents) for edit in found.edits] == [("c", ("r",))]
    assert {name: {ref.name for ref in refs} for name, refs in found.abandoned.items()} == {
        "a": {"main", "dev"},
        "b": {"main", "dev"},
    }


def test_what_another_ref_still_reaches_is_not_abandoned():
    nodes = {**line("r", "a", "b", "c"), "d": Node("d", ("b",), NOW)}
    found = Omission("main", "b", "b").decide(Graph(nodes, [Ref("branch", "main", "c"), Ref("branch", "dev", "d")]))
    assert found.abandoned == {}


def test_a_hold_is_no_ref_to_abandon_from():
    graph = Graph(line("r", "a", "b"), [Ref("branch", "main", "b"), Ref("hold", "7f3a", "b")])
    with pytest.raises(NotFound, match="there is no branch or tag '7f3a'"):
        Omission("7f3a", "a", "a").decide(graph)


def test_a_hold_keeps_as_a_tag_does_and_keep_rules_are_not_asked_of_it():
    nodes = line("r", "a", "b", "c", "d")
    refs = [Ref("branch", "main", "d"), Ref("hold", "7f3a", "b")]
    found = Expiry(NOW - timedelta(days=1), KeepCounts(last=1), delete_tags=True, delete_branches=True).decide(
        Graph(nodes, refs)
    )
    assert found.abandoned.keys() == {"c"}
    assert found.skipped.keys() == {refs[1]}
    young = Expiry(NOW - timedelta(days=3), KeepCounts(last=3)).decide(Graph(nodes, refs))
    assert {why.partition(" on ")[2] for why in young.kept.values()} <= {"branch 'main'"}
