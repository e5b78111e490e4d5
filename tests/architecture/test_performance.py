"""The page of figures, and its drawings, are what results say, and nothing on it was typed by hand."""

import importlib
import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results"
DRAWINGS = sorted((ROOT / "docs" / "performance").glob("*.svg"))
UNITS = "s|ms|µs|seconds?|minutes?|min|hours?|MB|GB|megabytes?|gigabytes?|times|per cent"
NUMBERS = "two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|hundred|thousand|million|half|third|fifth|tenth"
CLAIMS = re.compile(
    rf"\d|[×%]|\b({NUMBERS})s?\s+(of\b|as\b|an?\b|million\b|{UNITS})|\b(twice|thrice|tenfold)\b", re.IGNORECASE
)


def claims(words):
    """What a page says in figures, outside of what is written by `benchmarks/draw.py` and of what is run."""
    words = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", words, flags=re.DOTALL)
    words = re.sub(r"^```.*?^```|`[^`]*`|\]\([^)]*\)", "", words, flags=re.DOTALL | re.MULTILINE)
    return [line for line in words.splitlines() if CLAIMS.search(line)]


@contextmanager
def changed(path):
    """A result, as it would be had something else been measured."""
    result = json.loads(path.read_text())
    yield result
    path.write_text(json.dumps(result))


@pytest.fixture
def draw(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("draw").main


@pytest.fixture
def page(tmp_path, draw):
    """A copy, in step with results, that may be spoilt."""
    copy = Path(shutil.copy(PAGE, tmp_path))
    draw(["--page", str(copy)])
    return copy


def written(page):
    """A page and its drawings."""
    return {path.name: path.read_text() for path in [page, *page.parent.glob("performance/*")]}


@pytest.fixture
def results(tmp_path):
    return Path(shutil.copytree(RESULTS, tmp_path / "results"))


def test_the_page_and_its_drawings_are_what_results_say(draw):
    assert draw(["--check"]) == 0


def test_no_figure_is_typed_by_hand():
    assert claims(PAGE.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "A plan takes 3 s.",
        "It takes 1.5× as long.",
        "At a fifth of the CPU.",
        "Spark takes ten seconds to start.",
        "Half as long as it was.",
        "It costs twice what it did.",
        "Two million objects.",
    ],
)
def test_the_eye_for_figures_is_sharp(line):
    assert claims(line) == [line]
    assert claims(f"<!-- mark -->\n{line}\n<!-- /mark -->\n```sh\n{line}\n```\n") == []


@pytest.mark.parametrize("spoilt", ["a figure", "a drawing", "a drawing that nobody makes", "a drawing that is gone"])
def test_what_is_not_as_results_say_is_told(draw, page, spoilt, capsys):
    drawing, before = page.parent / "performance" / "places.svg", written(page)
    if spoilt == "a figure":
        page.write_text(re.sub(r"(\d)×", lambda found: f"{9 - int(found[1])}×", page.read_text(), count=1))
    elif spoilt == "a drawing":
        drawing.write_text(drawing.read_text().replace("objects", "things", 1))
    elif spoilt == "a drawing that nobody makes":
        shutil.copy(drawing, drawing.with_name("other.svg"))
    else:
        drawing.unlink()
    assert draw(["--check", "--page", str(page)]) == 1
    assert "not as results say" in capsys.readouterr().out
    assert draw(["--page", str(page)]) == 0
    assert written(page) == before


def test_a_result_that_is_measured_anew_changes_page_and_drawing(draw, page, results):
    with changed(results / "places.json") as result:
        result["rows"][-1]["seconds"]["Spark"] = 99.9
    assert draw(["--check", "--page", str(page), "--results", str(results)]) == 1
    draw(["--page", str(page), "--results", str(results)])
    assert "99.9 s" in page.read_text()
    assert "99.9 s" in (page.parent / "performance" / "places.svg").read_text()


def test_a_section_without_its_result_is_left_out_and_a_line_says_so(draw, page, results, capsys):
    (results / "thousand_days.json").unlink()
    draw(["--page", str(page), "--results", str(results)])
    assert "thousand_days: left out, there is no thousand_days.json" in capsys.readouterr().out
    assert "<!-- thousand_days -->\n<!-- /thousand_days -->" in page.read_text()
    assert "## A thousand days" not in page.read_text()
    assert re.search(r"^\| the last of a thousand days.*\| not measured yet \|$", page.read_text(), re.MULTILINE)
    assert not (page.parent / "performance" / "thousand_days.svg").exists()


def test_an_aim_that_is_not_reached_is_said_to_be_missed(draw, page, results):
    for ratio, verdict in ((1.0, "met"), (1.5, "**missed**")):
        with changed(results / "thousand_days.json") as result:
            result["bounded"]["ratio"] = ratio
        draw(["--page", str(page), "--results", str(results)])
        line = f"| the last of a thousand days, to the tenth | at most 1.10× | {ratio:.2f}× | {verdict} |"
        assert line in page.read_text()


def test_a_result_that_lacks_a_figure_is_to_be_measured_again(draw, page, results):
    with changed(results / "places.json") as result:
        del result["rows"][0]["seconds"]
    before = written(page)
    with pytest.raises(SystemExit, match=r"places: no 'seconds' in places.json; measure it again"):
        draw(["--page", str(page), "--results", str(results)])
    assert written(page) == before


@pytest.mark.parametrize("mark", ["<!-- places -->", "<!-- /places -->"])
def test_a_page_without_a_mark_is_refused(draw, page, mark):
    page.write_text(page.read_text().replace(mark, ""))
    with pytest.raises(SystemExit, match="the page needs <!-- places --> and after it <!-- /places -->"):
        draw(["--page", str(page)])


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_stands_on_its_own_in_light_and_in_dark(drawing):
    words = drawing.read_text()
    kinds = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(words).iter()}
    assert kinds <= {"svg", "title", "desc", "style", "rect", "line", "path", "circle", "text"}
    assert re.findall(r"[a-z]+://[^\"]+", words) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|@font-face|url\(|\bon\w+=", words)
    light, dark = re.split(r"@media screen and \(prefers-color-scheme: dark\)", words)
    used = {one for some in re.findall(r'class="([^"]*)"', words) for one in some.split() if one[:2] in ("f-", "s-")}
    assert used
    assert {one for one in used if f".{one}{{" in light} == used == {one for one in used if f".{one}{{" in dark}


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda path: path.stem)
def test_nothing_is_drawn_outside_of_a_drawing(drawing):
    root = ElementTree.fromstring(drawing.read_text())
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter():
        across = [float(element.get(name, 0)) for name in ("x", "x1", "x2", "cx")]
        down = [float(element.get(name, 0)) for name in ("y", "y1", "y2", "cy")]
        across.append(across[0] + float(element.get("width", 0)))
        down.append(down[0] + float(element.get("height", 0)))
        assert 0 <= min(across) <= max(across) <= width
        assert 0 <= min(down) <= max(down) <= height
