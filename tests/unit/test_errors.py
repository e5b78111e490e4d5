"""Every error has a code that others can rely on, and a place in the tree and in the documentation."""

import importlib
import pkgutil
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import desilt
from desilt import errors
from desilt.errors import (
    CorruptTable,
    Damaged,
    DamagedAsset,
    DamagedRun,
    DamagedWatermark,
    DesiltError,
    MissingAsset,
    MissingTable,
    NotReadBack,
    PlanOutdated,
    UnknownAsset,
    WrongClock,
    WrongTime,
)

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"[a-z]+(-[a-z]+)*")
ROW = re.compile(r"^\| ((?:– )*)`([a-z-]+)` \| `(\w+)` \| (\d+) \| (.+) \|$", re.MULTILINE)
ELSEWHERE = {"Malformed", "ReplayFailed"}  # of the packages that raise them


def below(kind):
    for one in kind.__subclasses__():
        if one.__module__.startswith("desilt."):
            yield one
            yield from below(one)


def every():
    for module in pkgutil.walk_packages(desilt.__path__, "desilt."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return [DesiltError, *below(DesiltError)]


ERRORS = every()


def depth(kind):
    """How far below DesiltError; what is directly below it is as far left as itself."""
    return max(0, sum(issubclass(one, DesiltError) for one in kind.__mro__) - 2)


def test_every_error_has_a_code_of_its_own():
    assert [one.__name__ for one in ERRORS if "code" not in vars(one)] == []
    assert [one.code for one in ERRORS if not CODE.fullmatch(one.code)] == []
    assert len({one.code for one in ERRORS}) == len(ERRORS) > 50


def test_every_error_can_be_imported_from_one_place():
    public = {name for name in errors.__all__ if name != "span"}
    assert public | ELSEWHERE == {one.__name__ for one in ERRORS}


def test_the_tree_has_every_error_below_its_parent():
    parents, path = {}, {}
    for line in errors.__doc__.splitlines():
        if match := re.fullmatch(r"    (?:((?:│   |    )*)[├└]── )?(\w+)(?: .*)?", line):
            level = 0 if match[1] is None else len(match[1]) // 4 + 1
            path[level] = match[2]
            parents[match[2]] = path.get(level - 1)
    assert parents.pop("DesiltError") is None
    assert parents == {one.__name__: one.__base__.__name__ for one in ERRORS if one is not DesiltError}


def test_the_table_has_every_error_with_its_code_and_exit_code():
    told = {name: (code, int(exit_code), len(dashes) // 2) for dashes, code, name, exit_code, _ in rows()}
    assert told == {one.__name__: (one.code, one.exit_code, depth(one)) for one in ERRORS}
    assert [name for *_, name, _, way_out in rows() if not way_out.strip()] == []


def test_the_table_is_in_the_order_of_the_tree():
    in_tree = re.findall(r"^    (?:[│ ]*[├└]── )?([A-Z]\w+)", errors.__doc__, re.MULTILINE)
    assert [name for _, _, name, _, _ in rows()] == in_tree


def rows():
    return ROW.findall((ROOT / "docs" / "errors.md").read_text())


@pytest.mark.parametrize("exit_code", sorted({one.exit_code for one in ERRORS}))
def test_every_exit_code_is_explained(exit_code):
    assert f"\n| {exit_code} |" in (ROOT / "docs" / "errors.md").read_text()
    assert re.search(rf"Exit codes:[^.]*\b{exit_code} ", (ROOT / "docs" / "commands.md").read_text())


# ---- what they say


@pytest.mark.parametrize(
    ("error", "way_out"),
    [
        (CorruptTable("r1", "a block's checksum is wrong"), "restore this file from a copy, nothing was read from it"),
        (MissingTable("r1"), "restore this file from a copy, nothing was read from it"),
        (DamagedAsset("manifests/A", "it is cut off"), "restore this file from a copy, nothing was read from it"),
        (MissingAsset("manifests/A"), "restore this file from a copy, nothing was read from it"),
        (UnknownAsset("manifests/A", "it has format 3"), "upgrade desilt, nothing was read from it"),
        (DamagedRun("plan.json", "is not JSON"), "plan again"),
        (DamagedWatermark("last.json", "it is missing"), "pass --full to look at everything again"),
        (NotReadBack("cache.parquet"), "run again"),
        (NotReadBack("cache.parquet", "it is missing"), "run again"),
    ],
)
def test_a_damaged_file_comes_with_one_way_out_that_fits_it(error, way_out):
    assert isinstance(error, Damaged)
    assert error.name in str(error)
    assert str(error).split("; ")[1:] == [way_out]


def test_whatever_makes_a_plan_outdated_is_refused_and_asks_for_another():
    kinds = list(below(PlanOutdated))
    assert len(kinds) > 6
    for kind in kinds:
        said = kind("r", "why") if kind.__name__ == "NoLongerFits" else kind("r")
        assert (said.exit_code, said.run) == (10, "r")
        assert re.fullmatch(r"plan r (was|does) .+; plan again", str(said))


def test_a_clock_that_is_wrong_for_writing_and_one_for_removing_are_told_apart():
    ours, theirs = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    writing, removing = (kind(ours, theirs, "the object store's") for kind in (WrongClock, WrongTime))
    assert (writing.exit_code, removing.exit_code) == (1, 10)
    assert "nothing is committed or uploaded" in str(writing)
    assert "nothing is removed" in str(removing)
    for said in (str(writing), str(removing)):
        assert said.endswith(
            "it says 2026-01-01 00:00:00 UTC, the object store's 2026-01-02 00:00:00 UTC; mend the one that is wrong"
        )
