"""What a page says and draws of a history that is edited."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from desilt.render.drawing import HEIGHT
from desilt.render.history import LISTED, sections
from desilt.render.pages import source
from desilt.render.report import page_list, render
from desilt.runs.history import Dot, Fate, HistoryChange
from desilt.runs.report import Amount, Report, Swept

NASTY = "<script>alert(1)</script>\"'&amp;</title></svg>\u202e\x00\n"
LONG = "0123456789abcdef" * 4
CHANGE = HistoryChange(
    (
        Dot("d4", ("c3",), ("a0",), "2026-01-04T10:00:00Z", "fourth", Fate.EDITED, "parent c3 is old", ("main",)),
        Dot("c3", ("b2",), ("b2",), "2026-01-03T10:00:00Z", "third", Fate.ABANDONED, "unseen", ("tag v1",), ("main",)),
        Dot("b2", ("a0",), ("a0",), "2026-01-02T10:00:00Z", "second", Fate.POINTED, "tag v0 names it", ("tag v0",)),
        Dot("a0", (), (), "2026-01-01T10:00:00Z", "root", Fate.KEPT),
    ),
    {"tag v0": f"its tip {LONG} is old, but protected"},
    {"tag v1": "its tip is old"},
)  # fmt: skip
REPORT = Report(
    run="r1", job="expire", repository="lake#sales", now="2026-03-01T06:00:00+00:00",
    cutoff="2026-02-01T00:00:00+00:00", remove={}, keep={}, prefixes={}, inputs={"commits": 4}, by="ref",
    refs={"v1": "its tip is old"},
    history={"edited": 1, "abandoned": 1, "pointed at": 1, "kept by rules": 0, "refs deleted": 1},
)  # fmt: skip


class Page(HTMLParser):
    """Elements with their attributes and the text directly in them; every element must be closed in its turn."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        if tag not in ("meta", "input"):
            self.open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1][0] not in ("style", "script"):
            self.open[-1][2] += data
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag, kind=None):
        """What is in each element ``tag``, of a class if that is given."""
        return [
            t for name, attrs, t in self.elements if name == tag and kind in (None, *attrs.get("class", "").split())
        ]


def page(change=CHANGE, **options):
    return Page(sections(change, **options))


def test_every_commit_is_drawn_with_all_there_is_to_say_of_it():
    titles = page().all("title")
    assert titles == [
        "d4 · fourth · 2026-01-04 10:00:00 UTC · edited (parent c3 is old) · main",
        "c3 · third · 2026-01-03 10:00:00 UTC · abandoned (unseen) · tag v1",
        "b2 · second · 2026-01-02 10:00:00 UTC · pointed at (tag v0 names it) · tag v0",
        "a0 · root · 2026-01-01 10:00:00 UTC · kept",
        "d4 · fourth · 2026-01-04 10:00:00 UTC · edited (parent c3 is old) · main",  # and after
        "b2 · second · 2026-01-02 10:00:00 UTC · pointed at (tag v0 names it) · tag v0",
        "a0 · root · 2026-01-01 10:00:00 UTC · kept",
    ]


def test_the_list_beside_the_drawing_has_a_row_for_each_commit():
    found = page()
    assert found.all("code")[:4] == ["d4", "c3", "b2", "a0"]
    assert found.all("span", "aside")[:4] == ["edited", "abandoned", "pointed at", "kept"]
    heights = [attrs["height"] for tag, attrs, _ in found.elements if tag == "svg" and "role" in attrs]
    assert heights == [str(4 * HEIGHT), str(3 * HEIGHT)]
    assert f"gap: 7px; height: {HEIGHT}px;" in source("style.css")


def test_shapes_differ_by_fate():
    kinds = [(tag, attrs["class"]) for tag, attrs, _ in page().elements if tag in ("circle", "rect", "path")]
    drawn = [kind for kind in kinds if "lane" not in kind[1]][4:]  # after the legend
    shapes = [("rect", "edited"), ("circle", "abandoned"), ("path", "pointed"), ("circle", "kept")]
    assert drawn[:4] == shapes


def test_refs_that_go_are_struck_before_and_not_there_after():
    found = page()
    assert found.all("del", "ref") == ["tag v1"]
    assert found.all("span", "ref") == ["main", "tag v0", "main", "tag v0"]


def test_a_line_that_is_cut_is_set_apart_before_and_its_end_is_seen_after():
    kinds = [attrs["class"] for tag, attrs, _ in page().elements if tag == "path" and "d" in attrs]
    assert "lane c0 severed" in kinds
    assert kinds.count("was") == kinds.count("end") == 1
    assert "was on c3 · fourth" in page().text


def test_tables_tell_who_is_edited_who_is_abandoned_and_which_refs_go_or_stay():
    text = page().text
    assert "Commit Old parents New parents Why d4 c3 a0 parent c3 is old" in text
    assert "Commit Date Message By c3 2026-01-03 10:00:00 UTC third main" in text
    assert "Refs that go Refs that go Ref Why tag v1 its tip is old" in text
    assert "tag v0 its tip 0123456789ab is old, but protected" in text


def test_nothing_from_data_becomes_an_element_or_an_attribute():
    def shape(word):
        dots = tuple(
            replace(dot, message=word, why=word, refs=(word,), by=(word,), created_at=word) for dot in CHANGE.dots
        )
        return page(HistoryChange(dots, {word: word}, {f"{word}!": word}))

    nasty, plain = shape(NASTY), shape("plain")
    assert [(tag, sorted(attrs)) for tag, attrs, _ in nasty.elements] == [
        (tag, sorted(attrs)) for tag, attrs, _ in plain.elements
    ]
    assert "<script>alert(1)</script>\"'&amp;</title></svg>\\u202e\\x00\\n" in nasty.text
    assert "<script>" not in sections(HistoryChange((replace(CHANGE.dots[0], id=NASTY),)))


def line(length, fate=Fate.KEPT):
    parents = [(f"c{at + 1}",) if at + 1 < length else () for at in range(length)]
    return [Dot(f"c{at}", parents[at], parents[at], "2026-01-01", "m", fate) for at in range(length)]


def ladder(length):
    parents = [tuple(f"c{p}" for p in (at + 1, at + 2) if p < length) for at in range(length)]
    return HistoryChange(
        tuple(Dot(f"c{at}", parents[at], parents[at], "2026-01-01", "m", Fate.KEPT) for at in range(length))
    )


def test_a_long_run_is_folded_and_it_is_said():
    found = page(HistoryChange(tuple(line(1_236))))
    assert "… 1,234 commits, kept" in found.text
    assert "1,234 commits in 1 run without refs or branches are folded." in found.text
    assert len(found.all("li")) == 6
    assert "details" not in [tag for tag, _, _ in found.elements]


def test_a_long_history_is_drawn_in_part_at_first_then_more_of_it_and_never_all():
    found = page(ladder(1_000))
    assert len(found.all("li")) == 2 * (36 + 200)
    assert found.all("summary") == ["More of both, up to 200 rows each"]
    assert (
        "964 commits further from what changes are left out; all are in history.json , beside this page." in found.text
    )
    assert "800 commits further" in found.text
    assert len(sections(ladder(20_000))) < 500_000


@pytest.mark.parametrize(("rows", "cut"), [(LISTED, False), (LISTED + 1, True)])
def test_a_long_table_is_cut_and_says_where_all_of_it_is(rows, cut):
    text = sections(HistoryChange(tuple(line(rows, Fate.ABANDONED))))
    beside = 'all are in <a href="history.json"><code>history.json</code></a>, beside this page.'
    assert (f"The first 500 of 501; {beside}" in text) is cut
    assert text.count('<th scope="row"') == LISTED


def test_many_refs_are_told_as_a_few_and_how_many_more():
    many = tuple(f"b{at}" for at in range(300))
    found = page(HistoryChange((replace(CHANGE.dots[1], before=(), after=(), refs=many, by=many),)))
    assert found.all("span", "ref") == ["b0", "b1", "b2", "b3", "+296"]
    assert "b0, b1, b2, b3 and 296 more" in found.text


def stays(*dots, skipped, deleted=()):
    """Dots as ``id:parent,parent ref ref``, newest first; what is said of old commits that stay."""
    made = []
    for dot in dots:
        (name, _, parents), *refs = dot.split(" ")[0].partition(":"), *dot.split(" ")[1:]
        above = tuple(parents.split(",")) if parents else ()
        fate = Fate.POINTED if set(refs) & set(skipped) else Fate.KEPT
        made.append(Dot(name, above, above, "2026-01-01", "m", fate, "", tuple(refs)))
    words = page(HistoryChange(tuple(made), dict.fromkeys(skipped, "old"), dict.fromkeys(deleted, "old"))).all("p")
    return [line for line in words if "because" in line]


def test_old_commits_that_stay_because_old_refs_descend_from_them_are_counted():
    line = ["f:root main", "e:d v1", "d:c", "c:b v2", "b:a", "a:root", "root"]
    assert stays(*line, skipped=["v1", "v2"]) == ["3 more old commits stay because 2 old refs descend from them."]
    fork = ["f:root main", "d:b v1", "c:root v2", "b:root", "root"]
    one = ["1 more old commit stays because 1 old ref descends from it."]
    assert stays(*fork, skipped=["v1", "v2"]) == one
    gone = ["f:root main", "d:b v1", "c:b v2", "b:root", "root"]  # the ref that goes keeps nothing
    assert stays(*gone, skipped=["v2"], deleted=["v1"]) == one


def test_what_a_young_ref_reaches_too_does_not_stay_because_of_an_old_one():
    assert stays("c:b main", "b:a v1", "a:root", "root", skipped=["v1"]) == []
    assert stays("c:root main", "b:a v1", "a:root", "root", skipped=[], deleted=["v1"]) == []
    assert stays("c:a main", "b:a v1", "a:root", "root", skipped=["v1"]) == []


def test_no_history_has_no_sections():
    assert sections(HistoryChange(())) == ""


def headline(**facts):
    return Page(render(replace(REPORT, **facts), page_list([]), history=CHANGE)).text


def test_the_headline_says_what_is_done_to_history():
    text = headline()
    assert "1 commit would be edited, 1 abandoned, 1 ref deleted; no object is removed" in text
    assert "Old commits that stay for their own sake: 1 that refs or holds point to." in text
    assert "Commits from before 2026-02-01 00:00:00 UTC Action edit history" in text
    assert text.index("no object is removed") < text.index("History before and after") < text.index("Inputs")
    for absent in ("Nothing to remove", "Nothing was looked at", "Refs that would go", "Branches", "kept by rules"):
        assert absent not in text


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ({"edited": 4, "abandoned": 2, "tags deleted": 1}, "4 commits would be edited, 2 abandoned, 1 tag deleted;"),
        (
            {"edited": 0, "abandoned": 1_200, "branches deleted": 1},
            "1,200 commits would be abandoned, 1 branch deleted;",
        ),
        ({"edited": 0, "refs deleted": 2}, "2 refs would be deleted; no object is removed"),
        ({"edited": 2, "edits left out": 1}, "2 commits would be edited, 1 edit left out;"),
        ({"edited": 0, "abandoned": 0}, "History stays as it is; no object is removed"),
    ],
)
def test_only_what_is_done_is_counted(history, told):
    assert told in headline(history=history)


def test_a_run_that_was_carried_out_says_so():
    swept = Swept("swept", "delete", 0, 0, 0, 0, 0, 0)
    text = headline(swept=swept)
    assert "1 commit edited, 1 abandoned, 1 ref deleted; no object is removed" in text
    assert "would" not in text
    assert "Stale refs Stale refs Ref What became of it v1" in text
    assert "Not finished: the state is “sweeping”." in headline(swept=replace(swept, state="sweeping"))


def test_a_run_that_removes_objects_tells_of_history_besides():
    text = headline(remove={"main": {"old": Amount(2, 20)}}, stored=Amount(5, 50), history={"collected": 3})
    assert "2 objects (20 B) would be deleted" in text
    assert "History 3 commits would be collected." in text


def test_the_page_has_no_style_but_its_own_and_loads_nothing():
    found = Page(render(REPORT, page_list([]), history=CHANGE))
    names = {name for _, attrs, _ in found.elements for name in attrs}
    assert not names & {"src", "href", "style", "xlink:href", "action"}
    assert not [name for name in names if name.startswith("on")]
    assert not {tag for tag, _, _ in found.elements} & {"link", "img", "use", "image", "a", "foreignobject"}
    assert "list" not in {attrs.get("class") for tag, attrs, _ in found.elements if tag == "table"}  # the filter's own
