"""The commit graph as people see it."""

import pytest

from desilt.cli.graph import draw
from desilt.domain.history import Commit
from desilt.domain.times import EPOCH


def drawn(*commits):
    """Commits as ``id:parent,parent``, newest first; the lines without their labels."""
    made = []
    for word in commits:
        name, _, parents = word.partition(":")
        made.append(Commit(name, tuple(parents.split(",")) if parents else (), "", EPOCH, "", ""))
    return [line.split("  ")[0].rstrip() for line in draw(made, {})]


def test_a_line_of_commits_is_a_line():
    assert drawn("b:a", "a") == ["●", "●"]


def test_a_merge_opens_a_lane_and_the_fork_closes_it():
    assert drawn("m:b,c", "c:a", "b:a", "a") == ["●", "├─╮", "│ ●", "● │", "├─╯", "●"]


def test_a_merge_of_an_open_lane_joins_it():
    assert drawn("m:a", "n:b,a", "b:a", "a") == ["●", "│ ●", "├─┤", "│ ●", "├─╯", "●"]


def test_three_branches_from_one_commit():
    assert drawn("b:a", "c:a", "d:a", "a") == ["●", "│ ●", "│ │ ●", "├─┼─╯", "├─╯", "●"]


def test_names_and_odd_messages_are_shown_safely():
    commit = Commit("0123456789abcdef", (), "", EPOCH, "", "red\x1b[31m")
    (line,) = draw([commit], {commit.id: ["main", "tag: v1"]})
    assert line == "●  0123456789ab  (main, tag v1) red\\x1b[31m  · 1970-01-01 00:00:00"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("two\nlines", "two"),
        ("\n first of\r\nthree\nlines", "first of"),
        ("", ""),
        ("just as long as there is room", "just as long as there is room"),
        ("just one longer than there is!", "just one longer than there i…"),
        ("繁" * 20, "繁" * 14 + "…"),  # two columns each
    ],
)
def test_a_message_is_its_first_line_cut_to_the_width(message, shown):
    commit = Commit("0123456789abcdef", (), "", EPOCH, "", message)
    (line,) = draw([commit], {commit.id: ["main"]}, width=3 + 14 + 7 + 29 + 23)
    assert line == f"●  0123456789ab  (main) {shown}  · 1970-01-01 00:00:00"


def test_refs_ids_and_times_are_never_cut():
    commits = [Commit(f"{n:016d}", (), "", EPOCH, "", "a message") for n in range(2)]
    lines = list(draw(commits, {commits[1].id: ["a-branch-with-a-long-name"]}, width=20))
    assert lines == [
        "●  000000000000  …  · 1970-01-01 00:00:00",
        "●  000000000000  (a-branch-with-a-long-name) …  · 1970-01-01 00:00:00",
    ]


def test_where_there_is_no_terminal_there_are_100_columns(monkeypatch):
    commits = [Commit("m", ("b", "c"), "", EPOCH, "", "m" * 200), Commit("c", (), "", EPOCH, "", "c" * 200)]
    assert [len(line) for line in draw(commits, {}) if "·" in line] == [100, 100]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "64")
    assert [len(line) for line in draw(commits, {}) if "·" in line] == [64, 64]
