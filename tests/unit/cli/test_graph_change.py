"""History before and after an expiration, as a terminal shows it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click
import pytest

from desilt.cli.graph import LINES, draw_change
from desilt.domain.expiration import Node, Ref, expire
from desilt.runs.history import Dot, Fate, HistoryChange

START = datetime(2026, 1, 1, tzinfo=UTC)
PARENTS = ["", "0", "1", "2", "2", "4", "3", "6", "7", "7", "6", "10", "5", "12", "13"]  # of commits 0 to 14
TIPS = {"main": "14", "develop": "11", "test": "9", "qa": "8"}
TAGS = {"tag1": "3", "tag2": "5"}
REFS = [Ref("branch", *tip) for tip in TIPS.items()] + [Ref("tag", *tag) for tag in TAGS.items()]


def sample(**options):
    """The sample run of the design: what is older than commit 8 expires."""
    nodes = {str(n): Node(str(n), (p,) if p else (), START + timedelta(days=n)) for n, p in enumerate(PARENTS)}
    found = expire(nodes, REFS, before=START + timedelta(days=8), **options)
    edits = {edit.id: edit for edit in found.edits}
    dots = []
    for node in reversed(nodes.values()):
        edit, fate = edits.get(node.id), Fate.KEPT
        if node.id in found.abandoned:
            fate = Fate.ABANDONED
        elif edit or node.id in found.pointed:
            fate = Fate.EDITED if edit else Fate.POINTED
        refs = tuple(called(ref) for ref in REFS if ref.target == node.id)
        after = edit.new_parents if edit else node.parents
        dots.append(Dot(node.id, node.parents, after, node.created_at.isoformat(), f"n{node.id}", fate, "", refs))
    return HistoryChange(tuple(dots), {}, {called(ref): why for ref, why in found.deleted_refs.items()})


def called(ref):
    return ref.name if ref.kind == "branch" else f"{ref.kind} {ref.name}"


def test_the_sample_of_the_design_before_and_after():
    assert "\n".join(draw_change(sample())) == """\
Before: 15 commits
●  14  (main) n14  · 2026-01-15 00:00:00
●  13  n13  · 2026-01-14 00:00:00
✎  12  n12  · 2026-01-13 00:00:00
│ ●  11  (develop) n11  · 2026-01-12 00:00:00
│ ✎  10  n10  · 2026-01-11 00:00:00
│ │ ✎  9  (test) n9  · 2026-01-10 00:00:00
│ │ │ ✎  8  (qa) n8  · 2026-01-09 00:00:00
│ │ ├─╯
│ │ ○  7  n7  · 2026-01-08 00:00:00
│ ├─╯
│ ○  6  n6  · 2026-01-07 00:00:00
◆ │  5  (tag tag2) n5  · 2026-01-06 00:00:00
● │  4  n4  · 2026-01-05 00:00:00
│ ◆  3  (tag tag1) n3  · 2026-01-04 00:00:00
├─╯
●  2  n2  · 2026-01-03 00:00:00
●  1  n1  · 2026-01-02 00:00:00
●  0  n0  · 2026-01-01 00:00:00

After: 13 commits
●  14  (main) n14  · 2026-01-15 00:00:00
●  13  n13  · 2026-01-14 00:00:00
✎  12  n12  · 2026-01-13 00:00:00  · was on 5
│ ●  11  (develop) n11  · 2026-01-12 00:00:00
│ ✎  10  n10  · 2026-01-11 00:00:00  · was on 6
│ │ ✎  9  (test) n9  · 2026-01-10 00:00:00  · was on 7
│ │ │ ✎  8  (qa) n8  · 2026-01-09 00:00:00  · was on 7
│ │ │ │ ◆  5  (tag tag2) n5  · 2026-01-06 00:00:00
│ │ │ │ ●  4  n4  · 2026-01-05 00:00:00
│ │ │ │ │ ◆  3  (tag tag1) n3  · 2026-01-04 00:00:00
│ │ │ │ ├─╯
│ │ │ │ ●  2  n2  · 2026-01-03 00:00:00
│ │ │ │ ●  1  n1  · 2026-01-02 00:00:00
├─┼─┼─┼─╯
├─┼─┼─╯
├─┼─╯
├─╯
●  0  n0  · 2026-01-01 00:00:00

● kept 7   ◆ pointed at 2   ✎ edited 4   ○ abandoned 2"""  # fmt: skip


def test_tags_that_go_are_marked_before_and_are_not_there_after():
    lines = list(draw_change(sample(delete_expired_tags=True)))
    after = lines.index("After: 8 commits")
    assert "○ │  5  (tag tag2 ✗) n5  · 2026-01-06 00:00:00" in lines[:after]
    assert not [line for line in lines[after:-1] if "tag" in line]
    assert lines[-1] == "● kept 4   ✎ edited 4   ○ abandoned 7   ✗ ref deleted 2"


def line(length, **fates):
    """A line of commits, newest first."""
    dots = []
    for at in range(length):
        parents = (f"c{at + 1}",) if at + 1 < length else ()
        made = (START + timedelta(hours=length - at)).isoformat()
        fate = fates.get(f"c{at}", fates.get("rest", Fate.KEPT))
        dots.append(Dot(f"c{at}", parents, parents, made, "m", fate, "", ("main",) if at == 0 else ()))
    return dots


def test_a_long_run_is_told_on_one_line():
    dots = line(1_239, c0=Fate.EDITED, c1238=Fate.KEPT, rest=Fate.ABANDONED)
    lines = list(draw_change(HistoryChange(tuple(dots))))
    assert lines[:4] == [
        "Before: 1,239 commits",
        "✎  c0  (main) m  · 2026-02-21 15:00:00",
        "┊  … 1,237 commits, abandoned  · 2026-01-01 to 2026-02-21",
        "●  c1238  m  · 2026-01-01 01:00:00",
    ]


def ladder(length):
    """Commits with two parents each: nothing in it can be folded."""
    dots = []
    for at in range(length):
        parents = tuple(f"c{p}" for p in (at + 1, at + 2) if p < length)
        fate = Fate.EDITED if at == length // 2 else Fate.KEPT
        dots.append(Dot(f"c{at}", parents, parents, START.isoformat(), "m", fate))
    return HistoryChange(tuple(dots))


def test_more_lines_than_people_read_are_left_out_and_it_is_said_where_they_are():
    lines = list(draw_change(ladder(500)))
    notes = [line for line in lines if line.startswith("… ")]
    assert len(notes) == 2
    assert LINES * 0.7 < len(lines) - len(notes) - 5 <= LINES  # two titles, two empty lines, the legend
    assert all(note.endswith("further from what changes left out; history.json of the run has all") for note in notes)
    assert sum("✎" in line for line in lines) == 3  # before, after, in the legend
    drawn = sum(" m  ·" in line for line in lines[: lines.index("After: 500 commits")])
    assert notes[0].startswith(f"… {500 - drawn} commits ")
    assert any(line.endswith("  · parent left out") for line in lines)


def test_colours_add_nothing_but_colour():
    change = sample(delete_expired_tags=True)
    coloured = list(draw_change(change, colour=True))
    assert "\x1b[" in coloured[1]
    assert [click.unstyle(line) for line in coloured] == list(draw_change(change, colour=False))


def test_nothing_from_data_is_obeyed():
    dot = Dot("0123456789abcdef", (), (), "no\x1bdate", "red\x1b[31m", Fate.KEPT, "", ("a\x07b",))
    assert list(draw_change(HistoryChange((dot,))))[1] == "●  0123456789ab  (a\\x07b) red\\x1b[31m  · no\\x1bdate"


@pytest.mark.parametrize("colour", [True, False])
def test_lines_fit_the_width_and_only_messages_are_cut(colour):
    short = sample(delete_expired_tags=True)
    change = replace(short, dots=tuple(replace(dot, message=f"{'long ' * 50}\nmore") for dot in short.dots))
    lines = [click.unstyle(line) for line in draw_change(change, colour=colour, width=80)]
    told = [line for line in lines if "long" in line]
    assert len(told) == 15 + 8
    assert {len(line) for line in told} <= {79, 80}  # no blank before the sign that says it goes on
    assert not [line for line in lines if "more" in line]
    assert any("(tag tag2 ✗) long" in line for line in told)
    assert any(line.endswith("…  · 2026-01-13 00:00:00  · was on 5") for line in told)


@pytest.mark.parametrize("length", [1, 2])
def test_small_histories(length):
    assert next(draw_change(HistoryChange(tuple(line(length))))) == f"Before: {length} commit{'s' * (length > 1)}"


def test_no_history_at_all():
    assert list(draw_change(HistoryChange(()))) == ["Before: 0 commits", "", "After: 0 commits", "", ""]
