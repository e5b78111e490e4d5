"""Only a sweep takes objects away, and only the stores know how."""

import ast
import re
from pathlib import Path

import pytest

import desilt
from syntax import parsed

SOURCE = Path(desilt.__file__).parent
REMOVING = {"delete_many", "move_many"}
OF_FILES = {"unlink", "remove", "removedirs", "rmtree", "rmdir", "rename", "renames", "replace", "move", "truncate"}
OF_MODULES = {"os", "shutil", "pathlib"}
ONLY_OF_PATHS = {"unlink", "rmdir", "rename"}  # on whatever: no other thing here has methods of these names
BRANCH_FILES = {"icechunk/edits/removed_refs.py"}  # a branch is a file that moves: it is read before it goes
SELF_MADE = {"executors/java.py": {"rename"}}  # a folder it has just made, to where nothing is

DELETES = re.compile(
    r"\b(?:DELETE\s+FROM|TRUNCATE(?:\s+TABLE)?|DROP\s+TABLE(?:\s+IF\s+EXISTS)?)\s+(\w+)", re.IGNORECASE
)


def modules():
    found = {str(path.relative_to(SOURCE)): parsed(path) for path in SOURCE.rglob("*.py")}
    assert len(found) > 60
    return found


def names_used(tree):
    """Every name that is read off something, called or not: a method handed on is called elsewhere."""
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def names_read(tree):
    """Every name of the module itself that is used in it."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def looked_up(tree):
    """Words handed to getattr and its like."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def texts(tree):
    """Every string of a module, with what is filled into it left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)


def removes_files(tree):
    """What a module calls that takes files away, however it was imported."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in OF_MODULES:
            found |= {alias.name for alias in node.names} & OF_FILES
        elif isinstance(node, ast.Attribute):
            of_module = isinstance(node.value, ast.Name) and node.value.id in OF_MODULES
            if node.attr in (OF_FILES if of_module else ONLY_OF_PATHS):
                found.add(node.attr)
    return found


def test_only_the_sweep_asks_a_store_to_take_objects_away():
    who = {name for name, tree in modules().items() if REMOVING & (names_used(tree) | looked_up(tree))}
    outside = {name for name in who if not name.startswith(("sweep/", "objects/"))}
    assert outside == BRANCH_FILES
    assert {"sweep/delete.py", "sweep/restore.py", "sweep/tidy.py"} <= who


def test_only_the_sweep_tags_objects_for_the_store_to_take_away():
    tagging = {"tag_many", "untag_many"}
    who = {name for name, tree in modules().items() if tagging & (names_used(tree) | looked_up(tree))}
    assert {name for name in who if not name.startswith("objects/")} == {"sweep/tag.py"}


def test_only_the_sweep_takes_versions_away_and_only_in_one_place():
    who = {name for name, tree in modules().items() if "remove_versions" in names_used(tree) | looked_up(tree)}
    assert who == {"sweep/versions.py"}
    asking = {name for name, tree in modules().items() if "purging_of" in {*names_read(tree), *names_used(tree)}}
    assert asking == {"sweep/batches.py"}


def test_only_the_archive_comes_before_a_tombstone_is_forgotten():
    who = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "forget" and isinstance(node.value, ast.Name)
        if node.value.id == "outlived"
    }
    assert who == {"lake/gate.py"}


def test_the_stores_themselves_remove_only_when_they_are_asked():
    """In ``objects`` one calls the other, inside of a store and nowhere else."""
    for name, tree in modules().items():
        if name.startswith("objects/"):
            calls = [
                node.func.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REMOVING
            ]
            assert all(isinstance(one, ast.Name) and one.id == "self" for one in calls), name


def test_only_the_lake_deletes_rows_and_never_repositories_or_the_ledger():
    kept = {"collected", "journal", "repositories", "tombstones", "runs", "batches", "locks", "settings"}
    found = {
        (name, table) for name, tree in modules().items() for text in texts(tree) for table in DELETES.findall(text)
    }
    assert {name for name, _ in found if not name.startswith(("lake/", "records/"))} == set()
    archived = {("records/outlived.py", "tombstones")}  # those that a file beside the objects has by then
    assert {(name, table) for name, table in found if table.lower() in kept} == archived
    may_go = {"staging", "staging_1", "tickets", "intents", "dropped", "sealed", "branches", "tags", "holds", "commits"}
    may_go |= {"fresh", "discarded"}  # what hard delete watches, and what waits for its workers
    assert {table for _, table in found} <= {*may_go, "tombstones"}
    assert len(found) > 6


def test_only_a_sweep_takes_commits_or_edits_them():
    """Rows go where their trace is written, and nobody but a sweep asks for it."""
    found = {name for name, tree in modules().items() for text in texts(tree) if "commits" in DELETES.findall(text)}
    assert found == {"lake/commits.py"}
    asking = {
        (name, node.func.attr)
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("collect", "edit")
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "commits"
    }
    assert asking == {("lake/changes.py", "collect"), ("lake/changes.py", "edit")}
    made = {
        (name, node.func.id)
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("CommitsCollected", "HistoryEdited")
    }
    assert made == {("lake/editor.py", "CommitsCollected"), ("lake/editor.py", "HistoryEdited")}


BELOW_THE_SEAM = (
    "lake/",
    "lakefs/",
    "records/",
    "repository/written",
    "recovery/",
    "testing/",
    "columns/",
    "inventory/",
)


def test_only_a_sweep_asks_for_history_to_be_changed_or_a_batch_to_be_condemned():
    """Through the seam: an editor and a gate are used by sweeps alone."""
    asking = {
        (name, node.func.attr)
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("condemn", "take", "delete_refs")
        and not name.startswith(
            ("lake/", "lakefs/", "records/", "repository/written", "recovery/", "testing/", "columns/", "inventory/")
        )
    }
    asking = {(name, what) for name, what in asking if not (what == "take" and not name.startswith("sweep/commits"))}
    assert {name for name, _ in asking} == {"sweep/batches.py", "sweep/commits.py", "sweep/steps.py"}


def test_no_statement_leaves_open_what_it_deletes_from():
    for name, tree in modules().items():
        for text in texts(tree):
            assert not re.search(r"DELETE\s+FROM\s*(\{\}|$)", text, re.IGNORECASE), name


def test_only_the_stores_remove_or_rename_files():
    found = {name: removes_files(tree) for name, tree in modules().items()}
    outside = {name: calls for name, calls in found.items() if calls and not name.startswith("objects/")}
    assert outside == SELF_MADE
    assert {"unlink", "replace"} <= found["objects/local.py"]


@pytest.mark.parametrize(
    "line",
    ["os.unlink(x)", "os.remove(x)", "shutil.rmtree(x)", "Path(x).unlink()", "here.rmdir()", "a.rename(b)",
     "from os import unlink", "from shutil import rmtree as gone", "os.rename(a, b)", "shutil.move(a, b)"],
)  # fmt: skip
def test_the_eye_is_sharp(line):
    assert removes_files(ast.parse(line))


def test_the_eye_passes_over_what_is_harmless():
    assert not removes_files(ast.parse("text.replace(a, b); things.remove(x); moment.replace(day=1); os.path.join(a)"))
