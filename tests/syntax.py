"""Modules as syntax trees, each parsed once."""

import ast
from functools import cache


@cache
def parsed(path):
    return ast.parse(path.read_text())
