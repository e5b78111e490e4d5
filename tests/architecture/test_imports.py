"""Imports point one way, and the core needs nothing but Python."""

import ast
import subprocess
import sys
from pathlib import Path

import desilt

SOURCE = Path(desilt.__file__).parent

# each package, and what it may import of desilt besides itself
ALLOWED = {
    "errors": set(),
    "clock": set(),
    "domain": {"errors"},
    "java": {"errors"},
    "spark": {"errors", "java"},
    "sstable": {"errors", "domain"},
    "frames": {"errors", "domain"},
    "runs": {"errors", "domain", "objects", "__version__"},
    "objects": {"errors", "clock", "domain"},
    "lake": {"errors", "clock", "domain", "sstable", "objects"},
    "sources": {"errors", "domain", "sstable", "objects", "frames", "lake"},
    "sweep": {"errors", "domain", "objects", "frames", "runs", "lake", "sources"},
    "jobs": {"errors", "clock", "domain", "objects", "frames", "runs", "lake", "sources", "sweep"},
    "testing": {"errors", "clock", "domain", "sstable", "objects", "lake", "spark"},
    "demo": {"testing"},
    "cli": {
        "errors",
        "clock",
        "domain",
        "objects",
        "lake",
        "testing",
        "demo",
        "spark",
        "runs",
        "sources",
        "jobs",
        "sweep",
    },
}


def package_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "desilt":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("desilt."))


def test_imports_point_one_way():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        package = package_of(path)
        if package not in ("__init__", "__main__"):
            wrong += [
                f"{path.relative_to(SOURCE)} imports desilt.{name}"
                for name in imported(path)
                if name != package and name not in ALLOWED[package]
            ]
    assert wrong == []


def test_the_domain_needs_nothing_but_the_standard_library():
    code = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names and name.split(".")[0] != "desilt":
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import importlib, pkgutil, desilt.domain
for module in pkgutil.iter_modules(desilt.domain.__path__):
    importlib.import_module(f"desilt.domain.{module.name}")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_modules_stay_small():
    long = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 300
    }
    assert long == {}


def test_nothing_in_the_lake_deletes_objects():
    """Only a sweep may remove bytes; the lake never asks its store to."""
    for path in (SOURCE / "lake").glob("*.py"):
        calls = [
            node.func.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        ]
        assert not {"delete_many", "unlink", "rmtree", "remove_object"} & set(calls), path
