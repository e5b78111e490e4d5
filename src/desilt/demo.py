"""The story that `desilt demo` tells: six weeks of everyday work, and what it leaves behind."""

from importlib import resources

from desilt.testing.scenario import Operation, parse

FILE = "demo.jsonl"


def story() -> list[Operation]:
    """Its scenario, shipped beside this module."""
    return parse(resources.files("desilt").joinpath(FILE).read_text(encoding="utf-8"), source=FILE)
