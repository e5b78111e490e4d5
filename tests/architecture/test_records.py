"""Records are about any repository: nothing in them knows the lake."""

import ast
from pathlib import Path

from desilt import records
from syntax import parsed


def test_records_import_nothing_of_the_lake():
    for path in Path(records.__file__).parent.glob("*.py"):
        for node in ast.walk(parsed(path)):
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            origin = node.module if isinstance(node, ast.ImportFrom) else ""
            assert not [name for name in names if f"{origin}.{name}".strip(".").startswith("desilt.lake")], path
