"""Axes, words and places of `benchmarks/drawing`: a drawing says what was measured."""

import importlib
import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def drawing(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return lambda name: importlib.import_module(f"drawing.{name}")


@pytest.mark.parametrize("most", [0.017, 0.38, 1.0, 4.21, 6.0, 99.5, 147.3, 21_583])
def test_an_axis_from_zero_holds_the_most_in_few_steps_and_little_more(drawing, most):
    axis = drawing("scales").from_zero("seconds", [0.0, most / 3, most])
    assert axis.ticks[0] == axis.least == 0
    assert most <= axis.most <= 2 * most
    assert 2 <= len(axis.ticks) <= 6
    assert axis.at(axis.most) == 1
    assert axis.at(most) == pytest.approx(most / axis.most)


def test_on_an_axis_by_decades_the_same_ratio_is_the_same_distance(drawing):
    axis = drawing("scales").decades("seconds", [0.25, 5.83])
    assert (axis.ticks[0], axis.ticks[-1]) == (0.2, 10)
    assert axis.at(2) - axis.at(1) == pytest.approx(axis.at(10) - axis.at(5))
    assert (axis.at(0.2), axis.at(10)) == (0, 1)


def test_an_axis_of_sizes_has_the_sizes_that_were_measured(drawing):
    axis = drawing("scales").sizes("objects", [20_000_000, 1_000_000, 5_000_000, 1_000_000])
    assert [axis.words(tick) for tick in axis.ticks] == ["1 M", "5 M", "20 M"]
    assert [axis.at(axis.ticks[0]), axis.at(axis.ticks[-1])] == [0, 1]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.0042, "4.2 ms"),
        (0.25, "0.25 s"),
        (5.832, "5.83 s"),
        (9.996, "10.0 s"),
        (53.52, "53.5 s"),
        (144.7, "145 s"),
    ],
)
def test_seconds_are_told_in_three_figures(drawing, value, words):
    assert drawing("section").seconds(value) == words


def test_only_one_thing_grows_in_a_family(drawing):
    shapes = [(1, 100, 10), (5, 100, 10), (1, 300, 10), (1, 100, 20), (1, 100, 90)]
    rows = [dict(zip(("objects", "branches", "commits"), shape, strict=True)) for shape in shapes]
    families = {name: drawing("marking").family(rows, name) for name in ("objects", "branches", "commits")}
    assert {name: [row[name] for row in some] for name, some in families.items()} == {
        "objects": [1, 5],
        "branches": [100, 300],
        "commits": [10, 20, 90],
    }


def test_words_at_the_ends_of_lines_stay_apart_and_in_order(drawing):
    lines, scales = drawing("lines"), drawing("scales")
    series = tuple(lines.Series("ink", ((1, 1), (10, last)), f"ends at {last}") for last in (5.0, 5.1, 4.9))
    panel = lines.Lines(scales.sizes("x", [1, 10]), scales.from_zero("y", [5.1]), series)
    drawn = panel.drawn(drawing("svg").Box(0, 0, 300, 200))
    ends = {words: float(y) for y, words in re.findall(r'y="([\d.]+)" class="strong f-ink">(ends at [\d.]+)<', drawn)}
    assert sorted(ends, key=ends.get) == ["ends at 5.1", "ends at 5.0", "ends at 4.9"]
    high, middle, low = sorted(ends.values())
    assert middle - high >= lines.APART
    assert low - middle >= lines.APART


def test_parts_of_a_bar_are_as_wide_as_they_took(drawing):
    bars, scales = drawing("bars"), drawing("scales")
    parts = (bars.Part(30, "c0"), bars.Part(60, "c1"), bars.Part(0, "c2"))
    panel = bars.Bars("", scales.from_zero("seconds", [100]), (bars.Bar("a run", parts, "90 s"),), names=100, room=100)
    drawn = panel.drawn(drawing("svg").Box(0, 0, 600, 100))
    places = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="[\d.]+" class="f-(c\d)"', drawn)
    assert places == [("100", "119", "c0"), ("220", "239", "c1")]  # a pixel apart


def test_a_table_has_figures_to_the_right_and_words_to_the_left(drawing):
    made = drawing("section").table(["stage", "seconds"], [["sweep", "1.0 s"]], words=1)
    assert made == "| stage | seconds |\n|---|---:|\n| sweep | 1.0 s |"
