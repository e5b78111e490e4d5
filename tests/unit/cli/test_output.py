"""How results look."""

import pytest

from desilt.cli.output import show_table

COLUMNS = ["run", "job", "started", "state", "planned", "removed", "size"]
RUN = "62292153599998-fc80b259"
ROW = dict(
    zip(COLUMNS, [RUN, "expire", "2026-01-15 00:00:00", "swept in part", "4 edits, 2 refs", "", "0 B"], strict=True)
)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_id_of_a_run_is_never_cut_and_no_other_word_is(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    show_table([ROW], COLUMNS)
    words = capsys.readouterr().out.split()
    assert words[: len(COLUMNS)] == COLUMNS
    assert sorted(words[len(COLUMNS) :]) == sorted(" ".join(ROW.values()).split())


def test_other_tables_are_as_wide_as_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    show_table([{"prefix": "x" * 100, "objects": 3}], ["prefix", "objects"])
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 40
