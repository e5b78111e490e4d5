"""The library says nothing by itself: it returns, raises or logs. Only the command line prints."""

import ast
import logging
from pathlib import Path

import pytest

import desilt
from syntax import parsed

SOURCE = Path(desilt.__file__).parent
PRINTING = ("cli/", "__main__.py", "executors/session.py")  # the last passes on what a JVM says
STREAMS = {("sys", "stdout"), ("sys", "stderr"), ("sys", "__stderr__"), ("sys", "__stdout__")}


def speaks(tree):
    """What a module prints with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield "print"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in STREAMS:
                yield f"{node.value.id}.{node.attr}"
            if node.value.id == "click" and node.attr in ("echo", "secho"):
                yield "click.echo"
        if isinstance(node, ast.ImportFrom) and node.module in ("click", "rich"):
            yield node.module
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "getLogger":
            yield "a logger whose lines have no run"


def test_nothing_is_printed_outside_of_the_command_line():
    found = {
        str(path.relative_to(SOURCE)): said
        for path in SOURCE.rglob("*.py")
        if not str(path.relative_to(SOURCE)).startswith(PRINTING) and (said := sorted(set(speaks(parsed(path)))))
    }
    makes_loggers = ["a logger whose lines have no run"]
    assert found == {"__init__.py": makes_loggers, "logs.py": makes_loggers}


@pytest.mark.parametrize("line", ["print(1)", "sys.stderr.write(x)", "click.echo(x)", "logging.getLogger('x')"])
def test_the_ear_is_sharp(line):
    assert list(speaks(ast.parse(line)))


def test_without_a_listener_not_even_warnings_are_heard(capfd):
    logging.getLogger("desilt.jobs.runner").warning("nobody listens")
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("desilt").handlers)
    assert capfd.readouterr().err == ""
