"""The page of a report: its figures, and that nothing from data is anything but text."""

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from html.parser import HTMLParser
from itertools import count

import pytest

from desilt.runs.html import PRINTED, Removed, render, share, size
from desilt.runs.report import Amount, Report

VOID = {"meta", "input"}
NASTY = (
    "<script>alert(1)</script><img src=x onerror=a()>\"'&amp;`--></style></title>$run ${job} 数据 \u202e\x00\ud800\n"
)
SEEN = NASTY.replace("\u202e", "\\u202e").replace("\x00", "\\x00").replace("\ud800", "\\ud800").replace("\n", "\\n")

REPORT = Report(
    run="63113904000000-ab12cd34",
    job="uncommitted",
    repository="lake#sales",
    now="2026-03-01T06:00:00+00:00",
    cutoff="2026-02-28T05:50:00.123456+00:00",
    remove={
        "main": {"unreferenced": Amount(1_000, 2_000_000), "expired": Amount(5, 0)},
        "etl": {"unreferenced": Amount(234, 1_000_000)},
    },
    keep={"committed": Amount(8_000, 6_500_000), "young": Amount(766, 500_000)},
    prefixes={"data/big/": Amount(900, 1_900_000), "data/small/": Amount(300, 600_000)},
    inputs={"commits": 18_234, "tickets": 12},
    seconds={"inventory": 81.234, "mark": 1_044.5},
)
NOTHING = replace(REPORT, remove={}, prefixes={})


class Page(HTMLParser):
    """A page read strictly: every element is closed where it must be."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.words, self.rows = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag == "tr":
            self.rows.append([])
        if self.open and self.open[-1] == "tr":
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)
        if "tr" in self.open and self.open[-1] != "tr":
            self.rows[-1][-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def shape(self):
        """Elements and the names of their attributes: what data must not change."""
        return [(tag, sorted(attrs)) for tag, attrs in self.elements]


def gone(number=0, **facts):
    base = Removed(
        f"data/{number:06d}", 1_500, datetime(2026, 1, 3, 4, 5, 6, tzinfo=UTC), "main", "unreferenced", "why"
    )
    return replace(base, **facts)


def whole(report=REPORT):
    return (gone(number) for number in range(report.removed.objects))


def test_the_page_says_which_run_of_which_job_on_which_repository_and_when():
    page = Page(render(REPORT, whole()))
    title = "lake#sales · uncommitted · 63113904000000-ab12cd34 · 2026-03-01T06:00:00+00:00"
    assert title in page.words
    assert "Run 63113904000000-ab12cd34 As of 2026-03-01 06:00:00 UTC" in page.text
    assert "Objects from before 2026-02-28 05:50:00 UTC" in page.text
    assert ("time", {"datetime": REPORT.cutoff}) in page.elements  # to the microsecond, since a cutoff is exclusive


def test_the_headline_is_what_goes_what_stays_and_the_share():
    page = Page(render(REPORT, whole()))
    for words in (["3.0 MB", "1,239 objects"], ["7.0 MB", "8,766 objects"], ["30.0 %", "of bytes; 12.4 % of objects"]):
        at = page.words.index(words[0])
        assert page.words[at : at + 2] == words


def test_what_goes_is_told_by_branch_and_reason_and_what_stays_by_reason():
    rows = Page(render(REPORT, whole())).rows
    first = rows.index(["Branch", "Reason", "Objects", "Bytes", "Share of bytes"])
    assert rows[first + 1 : first + 5] == [
        ["main", "unreferenced", "1,000", "2.0 MB", "66.7 %"],
        ["expired", "5", "0 B", "0.0 %"],  # under main still
        ["etl", "unreferenced", "234", "1.0 MB", "33.3 %"],
        ["Together", "1,239", "3.0 MB", "100.0 %"],
    ]
    first = rows.index(["Reason", "Objects", "Bytes", "Share of bytes"])
    assert rows[first + 1 : first + 4] == [
        ["committed", "8,000", "6.5 MB", "92.9 %"],
        ["young", "766", "500.0 kB", "7.1 %"],
        ["Together", "8,766", "7.0 MB", "100.0 %"],
    ]


def test_bars_show_bytes_by_reason_and_by_prefix_and_what_the_prefixes_leave():
    page = Page(render(REPORT, whole()))
    for row in (
        ["unreferenced goes", "", "1,234", "3.0 MB"],  # of both branches
        ["committed stays", "", "8,000", "6.5 MB"],
        ["data/big/", "", "900", "1.9 MB"],
        ["everything else", "", "39", "500.0 kB"],
    ):
        assert row in page.rows
    widths = [attrs["width"] for tag, attrs in page.elements if tag == "rect"]
    assert widths == ["30.00", "46.15", "0.00", "100.00", "7.69", "100.00", "31.58", "26.32"]


def test_inputs_and_seconds_are_told():
    rows = Page(render(REPORT, whole())).rows
    for row in (["commits", "18,234"], ["tickets", "12"], ["inventory", "81.23"], ["mark", "1,044.50"]):
        assert row in rows


def test_each_object_is_listed_with_why_it_goes_and_times_are_in_utc():
    east = datetime(2026, 1, 3, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    rows = Page(render(REPORT, [gone(7), gone(8, modified_at=east, detail="")])).rows
    assert ["data/000007", "1.5 kB", "2026-01-03 04:05:06", "main", "unreferenced", "why"] in rows
    assert ["data/000008", "1.5 kB", "2026-01-02 23:00:00", "main", "unreferenced", ""] in rows


def nasty(word):
    amount = Amount(2, 10)
    report = Report(
        run=word, job=word, repository=word, now=word, cutoff=word, version=word,
        remove={word: {word: amount}}, keep={word: amount}, prefixes={word: amount},
        inputs={word: 1}, seconds={word: 1.0},
    )  # fmt: skip
    rows = [gone(address=word, branch=word, reason=word, detail=word)] * 2
    return Page(render(report, rows))


def test_nothing_from_data_becomes_an_element_or_an_attribute():
    assert nasty(NASTY).shape() == nasty("plain").shape()


def test_any_character_of_a_name_is_shown_and_none_is_obeyed():
    page = nasty(NASTY)
    assert page.text.count(" ".join(SEEN.split())) == nasty("plain").text.count("plain") > 15
    assert [SEEN, "1.5 kB", "2026-01-03 04:05:06", SEEN, SEEN, SEEN] in page.rows
    page_bytes = render(replace(REPORT, repository=NASTY), [gone(address=NASTY)]).encode()  # no lone surrogate is left
    assert b"\x00" not in page_bytes


def test_a_page_lists_no_more_rows_than_it_was_allowed_and_says_how_many_it_leaves_out():
    page = Page(render(REPORT, whole(), listed=10))
    assert sum(row[0].startswith("data/0") for row in page.rows) == 10
    assert "10 of 1,239 objects are listed here; 1,229 are left out." in page.text
    assert "The whole list is in the plan's Parquet files beside this page." in page.text


def test_rows_past_the_cap_are_never_read():
    endless = count()
    render(REPORT, (gone(number) for number in endless), listed=10)
    assert next(endless) == 10


def test_a_list_that_is_whole_leaves_nothing_out():
    text = Page(render(REPORT, whole())).text
    assert "Listed: 1,239 objects, which is all." in text
    assert "left out" not in text


def test_a_list_longer_than_the_figures_is_called_out():
    assert "do not agree: 2 listed, 0 counted" in Page(render(NOTHING, [gone(1), gone(2)])).text


def test_nothing_to_remove_is_said_plainly():
    page = Page(render(NOTHING, []))
    assert "Nothing to remove All 8,766 objects that were looked at (7.0 MB) are kept." in page.text
    assert "0 objects" in page.words
    for absent in ("What goes", "by prefix", "Objects that go", "Parquet"):
        assert absent not in page.text
    assert "Nothing to remove" not in Page(render(REPORT, whole())).text


def test_nothing_looked_at_is_not_the_same_as_nothing_to_remove():
    page = Page(render(replace(NOTHING, keep={}, inputs={}, seconds={}), []))
    assert "Nothing was looked at" in page.text
    assert "Nothing to remove" not in page.text
    assert "–" in page.words  # no share of nothing
    assert not [tag for tag, _ in page.elements if tag == "table"]


def test_the_page_loads_nothing():
    html = render(replace(REPORT, repository="https://example.com/x"), [gone(address="s3://bucket/http://x")])
    page = Page(html)
    assert not {tag for tag, _ in page.elements} & {
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "a",
        "form",
        "use",
    }
    names = {name for _, attrs in page.elements for name in attrs}
    assert not names & {"src", "href", "srcset", "action", "data", "xlink:href", "style"}
    assert not [name for name in names if name.startswith("on")]
    bare = render(REPORT, whole())
    for loader in ("http:", "https:", "//", "url(", "@import", "fetch("):
        assert loader not in bare


def test_the_security_policy_allows_the_style_and_the_script_of_the_page_and_no_more():
    html = render(REPORT, whole())
    (policy,) = [attrs["content"] for _, attrs in Page(html).elements if "http-equiv" in attrs]
    allowed = [
        "'sha256-" + b64encode(sha256(html.split(f"<{tag}>")[1].split(f"</{tag}>")[0].encode()).digest()).decode() + "'"
        for tag in ("style", "script")
    ]
    assert policy == f"default-src 'none'; style-src {allowed[0]}; script-src {allowed[1]}"


def test_tables_have_headers_and_the_filter_has_a_label():
    page = Page(render(REPORT, whole()))
    assert all(attrs.get("scope") for tag, attrs in page.elements if tag == "th")
    assert ("label", {"for": "wanted"}) in page.elements
    assert [attrs["id"] for tag, attrs in page.elements if tag == "input"] == ["wanted"]
    assert ("html", {"lang": "en"}) in page.elements


@pytest.mark.parametrize(
    ("part", "all_of_it", "told"),
    [(0, 10, "0.0 %"), (1, 10**6, "&lt; 0.1 %"), (10**6 - 1, 10**6, "&gt; 99.9 %"), (5, 5, "100.0 %"), (0, 0, "–")],
)
def test_a_share_is_never_nothing_of_something_nor_all_of_less(part, all_of_it, told):
    assert share(part, all_of_it) == told


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (2 * 10**18, "2,000.0 PB"),
    ],
)
def test_sizes_are_in_powers_of_a_thousand(amount, told):
    assert size(amount) == told


def test_the_page_prints_as_many_rows_as_it_says():
    html = render(REPORT, whole(), listed=PRINTED + 1)
    assert f"at most {PRINTED} rows are printed" in html
    assert f".list tbody tr:nth-child(n + {PRINTED + 1} of :not([hidden]))" in html
    assert "are printed" not in render(REPORT, whole(), listed=PRINTED)
