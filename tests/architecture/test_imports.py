"""Imports point one way, and the core needs nothing but Python."""

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import desilt
from syntax import parsed

SOURCE = Path(desilt.__file__).parent

BASE = {"errors", "clock", "cycles", "domain", "objects", "logs"}
DATA = {*BASE, "sstable", "columns", "executors", "records", "inventory", "cache"}
SEAM = {*DATA, "repository"}
ENGINE = {*SEAM, "runs", "render", "sweep"}

# each package, and what it may import of desilt besides itself
ALLOWED = {
    "errors": set(),
    "clock": set(),
    "cycles": set(),
    "logs": set(),
    "domain": {"errors"},
    "objects": {"errors", "clock", "domain"},
    "executors": {"errors", "logs"},
    "sstable": BASE,
    "columns": {*BASE, "executors"},
    "records": BASE,
    "inventory": {*BASE, "columns", "executors"},
    "cache": {*BASE, "sstable", "columns", "executors"},
    "repository": DATA,
    "lake": SEAM,
    "lakefs": SEAM,
    "icechunk": SEAM,
    "runs": {*SEAM, "__version__"},
    "render": {*BASE, "runs"},
    "sweep": {*SEAM, "runs"},
    "jobs": ENGINE,
    "upkeep": {*ENGINE, "jobs"},
    "api": {*ENGINE, "jobs", "upkeep"},
    "tables": {*ENGINE, "jobs"},
    "recovery": {*ENGINE, "jobs", "lake"},
    "exchange": {*SEAM, "lake", "lakefs"},
    "testing": {*SEAM, "lake"},
    "demo": {"testing"},
    "schemas": {"errors"},
    "cli": {*ENGINE, "jobs", "upkeep", "schemas"},
    "cli/lake": {*ENGINE, "jobs", "cli", "lake", "recovery", "testing", "demo"},
    "cli/lakefs": {*ENGINE, "cli", "lake", "lakefs", "exchange"},
}
"""What is of a lake of our own is known to the lake, to what is about it alone, and to nobody else."""


def package_of(path):
    return package(path.relative_to(SOURCE).parts).removesuffix(".py")


def package(parts):
    return two if (two := "/".join(parts[:2])) in ("cli/lake", "cli/lakefs") else parts[0]


def imported(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "desilt":
            _, *parts = node.module.split(".")
            yield from [package(parts)] if parts else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (package(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith("desilt."))


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


def module_of(path):
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def packages_above(module):
    parts = module.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))}


def needs(path, modules):
    """The modules that are imported as this one is, with the packages they are in; but for its own."""
    own, found = module_of(path), set()
    for node in parsed(path).body:  # what a function imports comes later
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            found |= names & modules
    found |= {above for one in found for above in packages_above(one)} & modules
    return found - packages_above(own) - {own}


def test_every_module_can_be_the_first_to_be_imported():
    """An executor imports whatever a piece of work names, in no order: so no imports go in a circle."""
    paths = {module_of(path): path for path in SOURCE.rglob("*.py")}
    graph = {module: needs(path, paths.keys()) for module, path in paths.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(paths)


A_DATA_SOURCE = "tables/source.py"  # Spark's own way in, to tables that know nothing of it


def test_only_executors_know_spark():
    knowing = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if not str(path.relative_to(SOURCE)).startswith("executors/")
        and re.search(r"\bpyspark\b(?!\.sql import (DataFrame|SparkSession)\b)|sparkContext", path.read_text())
    }
    assert knowing == {A_DATA_SOURCE}
    others = [path for path in (SOURCE / "tables").glob("*.py") if path.name != "source.py"]
    assert not [path for path in others if any("tables.source" in line for line in imports_at_once(path))]


def imports_at_once(path):
    """The modules that are imported as this one is."""
    return [node.module or "" for node in parsed(path).body if isinstance(node, ast.ImportFrom)]


def test_nothing_needs_pandas():
    for path in SOURCE.rglob("*.py"):
        assert not re.search(r"^\s*(import|from) pandas|toPandas|to_pandas", path.read_text(), re.MULTILINE), path


EACH_JOB_HAS_ITS_OWN = {"Options", "Saved"}


def test_a_class_name_means_one_thing():
    defined = Counter(
        node.name for path in SOURCE.rglob("*.py") for node in parsed(path).body if isinstance(node, ast.ClassDef)
    )
    assert {name for name, times in defined.items() if times > 1} == EACH_JOB_HAS_ITS_OWN


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
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        ]
        assert not {"delete_many", "unlink", "rmtree", "remove_object"} & set(calls), path


NEEDED_FOR_HELP = {
    "desilt",
    "desilt.cli",
    "desilt.cli.attempt",
    "desilt.cli.command",
    "desilt.cli.config",
    "desilt.cli.lazy",
    "desilt.cli.main",
    "desilt.cli.verbosity",
    "desilt.domain",
    "desilt.domain.address",
    "desilt.domain.run",
    "desilt.domain.times",
    "desilt.errors",
    "desilt.errors.base",
    "desilt.errors.conflicts",
    "desilt.errors.damaged",
    "desilt.errors.outdated",
    "desilt.errors.refusals",
    "desilt.errors.server",
    "desilt.jobs",
    "desilt.jobs.packages",
    "desilt.logs",
}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["lake", "--help"]], ids=" ".join)
def test_whoever_asks_for_help_waits_for_nothing_else(words):
    """Others than click, and what takes long to load, are not loaded for a page of text."""
    code = f"""
import sys
from desilt.cli.attempt import run
from desilt.cli.main import desilt
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as said:
    assert run(desilt, {words!r}) == 0
assert said.getvalue()
print(*sorted(sys.modules))
"""
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    ours = {name for name in loaded if name.split(".")[0] == "desilt"}
    assert ours - {"desilt.cli.lake", "desilt.cli.lake.lake"} == NEEDED_FOR_HELP
    others = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"desilt", "__mp_main__"}
    assert {name for name in others if not name.startswith(("_", "sitecustomize", "usercustomize"))} == {"click"}
