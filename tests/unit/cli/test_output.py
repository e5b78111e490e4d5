"""How results look."""

import json

import pytest

from desilt.cli.output import json_line, show_table, shown
from desilt.cli.progress import Progress
from desilt.domain.entry import decode_path
from desilt.errors import BadRequest, NotFound

COLUMNS = ["run", "job", "started", "state", "planned", "removed", "size"]
RUN = "62292153599998-fc80b259"
ROW = dict(
    zip(COLUMNS, [RUN, "expire", "2026-01-15 00:00:00", "swept in part", "4 edits, 2 refs", "", "0 B"], strict=True)
)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_id_of_a_run_is_never_cut_and_no_other_word_is(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    show_table([ROW], COLUMNS)
    out = capsys.readouterr().out
    head = out.splitlines()[0].split()
    assert head == [column for column in COLUMNS if column in head]
    assert sorted(out.split()[len(head) :]) == sorted(" ".join(ROW[column] for column in head).split())
    assert RUN in out


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, COLUMNS),
        (80, ["run", "job", "state", "planned", "removed", "size"]),
        (60, ["run", "job", "state", "removed"]),
    ],
)
def test_a_narrow_terminal_is_shown_fewer_columns_instead_of_broken_ones(capsys, monkeypatch, width, columns):
    monkeypatch.setenv("COLUMNS", str(width))
    show_table([ROW], COLUMNS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == columns
    assert len(lines) == 2
    assert max(map(len, lines)) <= width


def test_other_tables_are_as_wide_as_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    show_table([{"prefix": "x" * 100, "objects": 3}], ["prefix", "objects"])
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 40


ODD = decode_path(b"bad\xffutf8")


def test_a_byte_of_a_path_that_is_no_text_is_told_by_its_number():
    assert shown(ODD) == r"bad\xffutf8"
    assert shown([ODD, {"path": ODD}]) == r"bad\xffutf8 path=bad\xffutf8"
    assert json.loads(json_line({"path": ODD, "plain": r"a\xff", "paths": [ODD]})) == {
        "path": r"bad\xffutf8",
        "plain": r"a\xff",
        "paths": [r"bad\xffutf8"],
    }
    assert Progress(f"get {ODD}").line(3) == r"get bad\xffutf8: 3 s"


def test_an_error_tells_it_so_too_and_leaves_what_looks_like_it_alone():
    assert str(NotFound("object", ODD)) == r"there is no object 'bad\xffutf8'"
    assert str(BadRequest(f"{ODD} and {ODD!r}")) == r"bad\xffutf8 and 'bad\xffutf8'"
    literal = r"bad\udcffutf8"
    assert str(BadRequest(repr(literal))) == repr(literal)
    assert shown(literal) == literal
