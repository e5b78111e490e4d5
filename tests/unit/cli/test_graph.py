"""The commit graph as people see it."""

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
    commit = Commit("0123456789abcdef", (), "", EPOCH, "", "two\nlines\x1b[31m")
    (line,) = draw([commit], {commit.id: ["main", "tag: v1"]})
    assert line == "●  0123456789ab  (main, tag: v1) two\\nlines\\x1b[31m  · 1970-01-01 00:00:00"
