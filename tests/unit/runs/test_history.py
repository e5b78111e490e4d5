"""What is done to history, as it is kept beside a plan."""

import json

import pytest

from desilt.errors import Unreadable
from desilt.runs.history import Dot, Fate, HistoryChange, read_change

DOTS = (
    Dot("c", ("b",), ("r",), "2026-01-04T00:00:00+00:00", 'say "hé"', Fate.EDITED, "parent b from before", ("main",)),
    Dot("b", ("a",), ("a",), "2026-01-03T00:00:00+00:00", "", Fate.ABANDONED, "no ref", (), ("main", "tag v1")),
    Dot("a", ("r",), ("r",), "2026-01-02T00:00:00+00:00", "", Fate.ABANDONED, "no ref", (), ("main", "tag v1")),
    Dot("r", (), (), "2026-01-01T00:00:00+00:00", "", Fate.KEPT),
)
CHANGE = HistoryChange(DOTS, {"tag v0": "old"}, {"tag v1": "older"})


def test_it_is_read_as_it_was_written():
    assert read_change(CHANGE.to_json()) == CHANGE
    assert [CHANGE.count(fate) for fate in Fate] == [2, 0, 1, 0, 1]


def test_sets_of_refs_are_written_once():
    assert json.loads(CHANGE.to_json())["sets"] == [[], ["main", "tag v1"]]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"dots": [{"by": 1}], "sets": [], "skipped": {}, "deleted": {}}'])
def test_anything_else_is_unreadable(text):
    with pytest.raises(Unreadable, match="plan again"):
        read_change(text)
