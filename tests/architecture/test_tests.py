"""What tests share is in modules of its own, beside them."""

import ast
from pathlib import Path

from syntax import parsed

TESTS = Path(__file__).parents[1]


def imported(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_test_module_imports_another():
    wrong = {
        f"{path.relative_to(TESTS)}: {name}"
        for path in TESTS.rglob("*.py")
        for name in imported(path)
        if name.rsplit(".", 1)[-1].startswith("test_")
    }
    assert wrong == set()
