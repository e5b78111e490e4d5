"""Every page shows what data says, and obeys none of it."""

import ast
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import desilt
from desilt.render import pins, report, simulation
from desilt.render.history import sections
from desilt.render.pages import ENVIRONMENT, source
from desilt.runs.history import Dot, Fate, HistoryChange
from desilt.runs.pins import Pin, PinGroup, Pins
from desilt.runs.report import Amount, Report, Swept
from desilt.runs.simulation import Side, Simulation, Step

SOURCE = Path(desilt.__file__).parent
TEMPLATES = SOURCE / "render" / "templates"
START = datetime(2026, 1, 1, tzinfo=UTC)
SOME = Amount(2, 1_500)
HOSTILE = {  # and what is seen of it
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "\" onload=\"a()\" ' onload='a()' `": "\" onload=\"a()\" ' onload='a()' `",
    "--></style></title></svg></table><!--": "--></style></title></svg></table><!--",
    "{{ 7 * 191 }}{% raise %}{# gone #}": "{{ 7 * 191 }}{% raise %}{# gone #}",
    "&lt;b&gt; &amp; $run ${run}": "&lt;b&gt; &amp; $run ${run}",
    "a\x00b\x1b[31m\u202e\u200b\n": r"a\x00b\x1b[31m\u202e\u200b\n",
    b"bad\xff/\xfe".decode("utf-8", "surrogateescape"): r"bad\udcff/\udcfe",
}


def report_page(word):
    facts = dict.fromkeys(("run", "job", "repository", "now", "cutoff", "version", "by"), word)
    named = {word: SOME}
    told = Report(
        **facts, remove={word: named}, keep=named, prefixes=named, inputs={word: 1}, seconds={word: 1.0},
        refs={word: word}, holds=named, own=named, history={word: 1}, swept=Swept(word, "delete", 2, 1, 1, 0, 0, 5),
    )  # fmt: skip
    return report.render(
        told, report.page_list([report.Removed(word, 1, START, word, word, word)] * 2), history=change(word)
    )


def history_page(word):
    return sections(change(word))


def change(word):
    fates = [Fate.EDITED, Fate.ABANDONED, Fate.POINTED, Fate.KEPT]
    ids = [f"{number}{word}" for number in range(5)]
    dots = [Dot(ids[n], (ids[n + 1],), (), word, word, fate, word, (word,), (word,)) for n, fate in enumerate(fates)]
    return HistoryChange(tuple(dots), {f"{word}!": word}, {word: word})


def pins_page(word):
    alone, group = Pin(word, SOME, SOME), PinGroup((word, f"{word}!"), SOME)
    return pins.render(Pins(word, START, Amount(9, 9_000), SOME, (alone,), (group,), 1, SOME, word))


def simulation_page(word):
    rules = {word: SOME, f"{word}!": SOME}
    steps = tuple(Step(START + timedelta(days=n), rules, {rule: {word: SOME} for rule in rules}) for n in range(2))
    return simulation.render(Simulation(word, word, timedelta(1), (Side("new", word, steps),), (word,), word))


class Shape(HTMLParser):
    """Elements, the names of their attributes, and how often some words are seen."""

    def __init__(self, html, word):
        super().__init__()
        self.word, self.elements, self.seen = word, [], 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, [name for name, _ in attrs]))
        self.seen += sum((value or "").count(self.word) for _, value in attrs)

    def handle_data(self, data):
        self.seen += data.count(self.word)

    def handle_comment(self, data):
        raise AssertionError(data)


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
@pytest.mark.parametrize("made", [report_page, history_page, pins_page, simulation_page])
def test_nothing_from_data_is_anything_but_text(made, hostile):
    html = made(hostile)
    html.encode()  # no lone surrogate is left
    plain, found = Shape(made("plain"), "plain"), Shape(html, HOSTILE[hostile])
    assert found.elements == plain.elements
    assert found.seen > 5
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u200b\u202e]", html)


def test_a_name_that_a_template_asks_for_and_nobody_gives_is_an_error():
    with pytest.raises(UndefinedError):
        ENVIRONMENT.from_string("{{ nobody }}").render()


def test_a_template_prints_words_visible_and_escaped_without_asking_for_it():
    template = ENVIRONMENT.from_string("{% macro m(x) %}<b>{{ x }}</b>{% endmacro %}{{ word }} {{ m(word) }}")
    assert template.render(word="<\u202e>") == r"&lt;\u202e&gt; <b>&lt;\u202e&gt;</b>"


def test_no_template_turns_that_off():
    for path in TEMPLATES.glob("*.j2"):
        assert not re.search(r"\|\s*safe|autoescape|Markup", path.read_text()), path.name


def test_markup_is_written_in_templates_only():
    written = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            words = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.search(r"</[a-z0-9]+>|<[a-z0-9]+ [a-z-]+=", words):
                written.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert written == []


def test_on_paper_nothing_is_hidden_behind_a_scrollbar():
    style = source("style.css")
    limited = re.findall(r"^(\.scroll\S*) \{ max-height", style, re.MULTILINE)
    (rule,) = re.findall(r"^  (\.scroll.*) \{ max-height: none; overflow: visible; \}", style, re.MULTILINE)
    assert len(limited) == 3
    assert set(rule.split(", ")) == {".scroll", *limited}
