"""docs/scenarios.md and the vocabulary say the same."""

import re
from pathlib import Path

from desilt.testing.operation import FIELDS
from desilt.testing.vocabulary import VOCABULARY

GUIDE = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text()
ROW = re.compile(r"^\| `([a-z-]+)` \|([^|]*)\|([^|]*)\|", re.MULTILINE)


def words(cell):
    return re.findall(r"`(\w+)`", cell)


def section(title):
    return GUIDE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_operation_is_documented_with_its_fields_and_none_besides():
    documented = {do: (words(needs), words(others)) for do, needs, others in ROW.findall(section("Operations"))}
    known = {
        do: (
            list(word.needs),
            [name for name in word.fields if name not in word.needs] + (["as"] if word.names else []),
        )
        for do, word in VOCABULARY.items()
    }
    assert documented == known


def test_every_field_is_explained():
    explained = re.findall(r"^\| `(\w+)` \|", section("Fields"), re.MULTILINE)
    assert sorted(explained) == sorted([*FIELDS, "at", "say", "fails", "as", "do"])
