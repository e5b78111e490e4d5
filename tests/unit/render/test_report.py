"""The page of a report: its figures, and that nothing from data is anything but text."""

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from html.parser import HTMLParser
from itertools import count

import pytest

from desilt.domain.units import size
from desilt.render.report import BARS, BRANCHES, LISTED, PRINTED, Removed, page_list, render
from desilt.render.words import share
from desilt.runs.report import Amount, Report, Swept

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
    stored=Amount(10_005, 10_000_000),
)
NOTHING = replace(REPORT, remove={}, prefixes={}, stored=REPORT.kept)
SWEPT = Swept("swept", "delete", 1_239, 1_239, 0, 0, 0, 3_000_000)
PARTLY = Swept("swept in part", "delete", 1_234, 1_200, 30, 4, 5, 2_900_000)


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
    def widths(self):
        return [attrs["width"] for tag, attrs in self.elements if tag == "rect"]

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


def rendered(report, removed, *, listed=LISTED):
    return render(report, page_list(removed, listed))


def whole(report=REPORT):
    return (gone(number) for number in range(report.removed.objects))


def test_the_page_says_which_run_of_which_job_on_which_repository_and_when():
    page = Page(rendered(REPORT, whole()))
    title = "lake#sales · uncommitted · 63113904000000-ab12cd34 · 2026-03-01T06:00:00+00:00"
    assert title in page.words
    assert "Run 63113904000000-ab12cd34 As of 2026-03-01 06:00:00 UTC" in page.text
    assert "Objects from before 2026-02-28 05:50:00 UTC" in page.text
    assert ("time", {"datetime": REPORT.cutoff}) in page.elements  # to the microsecond, since a cutoff is exclusive


def swept(outcome=SWEPT, **facts):
    report = replace(REPORT, swept=replace(outcome, **facts))
    return Page(rendered(report, whole()))


def test_a_plan_says_what_would_go_what_stays_and_the_share_of_what_is_stored():
    page = Page(rendered(REPORT, whole()))
    assert "Would go 3.0 MB 1,239 objects Stays 7.0 MB 8,766 objects" in page.text
    assert "Share of what is stored 30.0 % of bytes 12.4 % of objects" in page.text
    assert page.widths[:2] == ["30.00", "12.38"]


def test_a_plan_says_how_objects_would_go_and_that_none_went():
    text = Page(rendered(REPORT, whole())).text
    assert "plan of uncommitted" in text
    assert "1,239 objects (3.0 MB) would be deleted That is 30.0 % of the bytes and 12.4 % of the objects" in text
    assert "Once deleted, nothing brings them back. So far, nothing was removed." in text
    assert "trash" not in text
    assert "A plan: writing this page removed nothing." in text


def test_a_plan_for_the_trash_says_that_objects_can_come_back():
    text = Page(rendered(replace(REPORT, action="trash"), whole())).text
    assert "1,239 objects (3.0 MB) would be moved to the trash" in text
    assert "From the trash, desilt restore can bring them back." in text
    assert "deleted" not in text


def test_what_an_earlier_run_has_settled_is_part_of_what_is_stored_and_stays():
    report = replace(REPORT, stored=Amount(20_005, 30_000_000), unseen="known from earlier runs")
    page = Page(rendered(report, whole()))
    assert "Stays 27.0 MB 18,766 objects" in page.text
    assert "10.0 % of bytes 6.2 % of objects" in page.text
    assert ["known from earlier runs", "10,000", "20.0 MB", "74.1 %"] in page.rows
    assert ["Together", "18,766", "27.0 MB", "100.0 %"] in page.rows
    assert ["known from earlier runs stays", "10,000", "20.0 MB"] in page.rows
    assert "known from earlier runs" not in Page(rendered(REPORT, whole())).text


def test_a_swept_run_says_what_was_removed():
    page = swept()
    assert "run of uncommitted" in page.text
    assert "1,239 objects (3.0 MB) removed Everything that was planned to go." in page.text
    assert ("section", {"class": "banner done"}) in page.elements
    for absent in ("would", "Would", "trash", "in part", "Not finished", "add up", "removed nothing", "so many"):
        assert absent not in page.text


def test_a_run_that_swept_into_the_trash_says_so_and_that_the_space_is_not_free_yet():
    page = swept(action="trash")
    assert "1,239 objects (3.0 MB) moved to the trash desilt restore can bring them back." in page.text
    assert "Until the trash is emptied, they take as much space as before." in page.text
    assert [row for row in page.rows if row[0] == "In the trash"] == [
        ["In the trash", "1,239", "12.4 %"],
        ["In the trash", "3.0 MB", "30.0 %"],
    ]


def test_a_run_that_failed_in_part_says_so_in_red_and_what_happens_next():
    page = swept(PARTLY)
    assert "1,200 objects (2.9 MB) removed Swept in part: 4 objects failed and are still there." in page.text
    assert "they are tried again by the next run. Why it failed is in the Parquet files in outcome/" in page.text
    assert ("section", {"class": "banner failed"}) in page.elements
    assert ("p", {"class": "warning"}) in page.elements
    assert "30 objects already gone when the sweep came to them" in page.text
    assert "5 objects held again , and so kept: something holds them by now." in page.text


def test_one_object_is_not_told_of_as_many():
    text = swept(PARTLY, removed=1_231, gone=1, failed=1, asked=1_233, held_again=6).text
    assert "1 object failed and is still there. Nothing needs to be done by hand: it is tried again" in text
    assert "1 object already gone when the sweep came to it:" in text


def test_every_planned_object_is_accounted_for():
    page = swept(PARTLY)
    assert "1,239 planned = 1,234 asked for + 5 held again" in page.text
    assert "1,234 asked for = 1,200 removed + 30 already gone + 4 failed" in page.text
    assert page.widths[:4] == ["96.40", "2.41", "0.60", "0.60"]  # the small ones are seen, and all fit
    assert "add up" not in page.text


@pytest.mark.parametrize("wrong", [{"removed": 1_201}, {"held_again": 4}, {"asked": 1_235, "held_again": 4}])
def test_figures_that_do_not_add_up_are_called_out(wrong):
    assert "The figures do not add up" in swept(PARTLY, **wrong).text


def test_a_run_that_is_not_over_is_not_told_of_as_done():
    page = swept(state="sweeping", asked=1_000, removed=1_000)
    assert "Not finished: 239 objects of the plan have no outcome yet; the state is “sweeping”." in page.text
    assert ("section", {"class": "banner done"}) not in page.elements


def test_what_is_stored_is_told_before_and_after():
    rows = swept().rows
    first = rows.index(["When", "Objects", "Of before"])
    assert rows[first + 1 : first + 3] == [["Before", "10,005", "100.0 %"], ["After", "8,766", "87.6 %"]]
    first = rows.index(["When", "Bytes", "Of before"])
    assert rows[first + 1 : first + 3] == [["Before", "10.0 MB", "100.0 %"], ["After", "7.0 MB", "70.0 %"]]


def test_what_failed_or_is_held_is_still_stored_and_what_was_gone_is_not():
    page = swept(PARTLY)
    assert ["After", "8,775", "87.7 %"] in page.rows  # without the 1,200 and the 30
    assert ["After", "7.1 MB", "71.0 %"] in page.rows
    assert "at most so many bytes: what was already gone counts as objects only" in page.text


def test_a_run_that_found_nothing_and_swept_says_that_nothing_was_to_remove():
    page = Page(rendered(replace(NOTHING, swept=Swept("swept", "delete", 0, 0, 0, 0, 0, 0)), []))
    assert "Nothing to remove All that is stored is kept: 8,766 objects (7.0 MB)." in page.text
    assert "What became of" not in page.text


def test_what_goes_is_told_by_branch_and_reason_and_what_stays_by_reason():
    rows = Page(rendered(REPORT, whole())).rows
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
    page = Page(rendered(REPORT, whole()))
    for row in (
        ["unreferenced goes", "1,234", "3.0 MB"],  # of both branches
        ["committed stays", "8,000", "6.5 MB"],
        ["data/big/", "900", "1.9 MB"],
        ["everything else", "39", "500.0 kB"],
    ):
        assert row in page.rows
    assert page.widths[2:8] == ["46.15", "100.00", "7.69", "100.00", "31.58", "26.32"]  # nothing is drawn for 0 bytes


def test_what_goes_is_told_by_age_and_by_the_branch_it_was_uploaded_to():
    ages = {"under a day": Amount(239, 1_000_000), "a year and more": Amount(1000, 2_000_000)}
    branches = {f"b{number}": Amount(1, 1000 - number) for number in range(BARS + 5)}
    page = Page(rendered(replace(REPORT, ages=ages, uploaded=branches), whole()))
    assert "Would go, bytes by age" in page.text
    assert ["a year and more", "1,000", "2.0 MB"] in page.rows
    assert ["b0", "1", "1.0 kB"] in page.rows
    assert [f"b{BARS}", "1", "1.0 kB"] not in page.rows
    assert ["everything else", "1,227", "3.0 MB"] in page.rows
    alone = Page(rendered(replace(REPORT, uploaded={"main": Amount(1, 1)}), whole()))  # is in the table above
    assert "bytes by branch" not in alone.text


def test_a_thousand_branches_are_told_as_fifty_and_the_rest():
    remove = {f"b{number}": {"unreferenced": Amount(1, 5_000 - number)} for number in range(1_000)}
    rows = Page(rendered(replace(REPORT, remove=remove), [])).rows
    first = rows.index(["Branch", "Reason", "Objects", "Bytes", "Share of bytes"])
    last = first + BRANCHES + 1
    assert rows[first + 1][0] == "b0"
    assert rows[last][:2] == ["950 more", "950"]
    assert rows[last + 1][:2] == ["Together", "1,000"]


def test_inputs_and_seconds_are_told():
    rows = Page(rendered(REPORT, whole())).rows
    for row in (
        ["commits", "18,234"],
        ["tickets", "12"],
        ["inventory", "81.23"],
        ["mark", "1,044.50"],
        ["Together", "1,125.73"],
    ):
        assert row in rows


def test_each_object_is_listed_with_why_it_goes_and_times_are_in_utc():
    east = datetime(2026, 1, 3, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    rows = Page(rendered(REPORT, [gone(7), gone(8, modified_at=east, detail="")])).rows
    assert ["data/000007", "1.5 kB", "2026-01-03 04:05:06", "main", "unreferenced", "why"] in rows
    assert ["data/000008", "1.5 kB", "2026-01-02 23:00:00", "main", "unreferenced", ""] in rows


def nasty(word):
    amount = Amount(2, 10)
    report = Report(
        run=word, job=word, repository=word, now=word, cutoff=word, version=word,
        remove={word: {word: amount}}, keep={word: amount}, prefixes={word: amount},
        inputs={word: 1}, seconds={word: 1.0}, stored=amount, action=word,
        swept=Swept(word, word, 2, 1, 1, 0, 0, 5),
    )  # fmt: skip
    rows = [gone(address=word, branch=word, reason=word, detail=word)] * 2
    return Page(rendered(report, rows))


def test_nothing_from_data_becomes_an_element_or_an_attribute():
    assert nasty(NASTY).shape() == nasty("plain").shape()


def test_any_character_of_a_name_is_shown_and_none_is_obeyed():
    page = nasty(NASTY)
    assert page.text.count(" ".join(SEEN.split())) == nasty("plain").text.count("plain") > 15
    assert [SEEN, "1.5 kB", "2026-01-03 04:05:06", SEEN, SEEN, SEEN] in page.rows
    page_bytes = rendered(
        replace(REPORT, repository=NASTY), [gone(address=NASTY)]
    ).encode()  # no lone surrogate is left
    assert b"\x00" not in page_bytes


def test_a_page_lists_no_more_rows_than_it_was_allowed_and_says_how_many_it_leaves_out():
    page = Page(rendered(REPORT, whole(), listed=10))
    assert sum(row[0].startswith("data/0") for row in page.rows) == 10
    assert "The first 10 of 1,239 objects are listed here, and the filter looks at these only; 1,229 are" in page.text
    assert "The whole list is in the Parquet files in plan/ , beside this page; desilt runs export" in page.text


def test_a_plan_of_a_billion_objects_makes_a_small_page():
    report = replace(REPORT, remove={"main": {"unreferenced": Amount(10**9, 10**15)}})
    html = rendered(report, (gone(number, address=f"data/{number:0100d}") for number in count()))
    assert f"The first {LISTED:,} of 1,000,000,000 objects" in html
    assert len(html) < 2_500_000


def test_rows_past_the_cap_are_never_read():
    endless = count()
    rendered(REPORT, (gone(number) for number in endless), listed=10)
    assert next(endless) == 10


def test_a_list_that_is_whole_leaves_nothing_out():
    text = Page(rendered(REPORT, whole())).text
    assert "Listed: 1,239 objects, which is all." in text
    assert "left out" not in text


def test_a_list_longer_than_the_figures_is_called_out():
    assert "do not agree: 2 listed, 0 counted" in Page(rendered(NOTHING, [gone(1), gone(2)])).text


def test_nothing_to_remove_is_said_plainly():
    page = Page(rendered(NOTHING, []))
    assert "Nothing to remove All that is stored is kept: 8,766 objects (7.0 MB)." in page.text
    assert "0 objects" in page.words
    for absent in ("would be", "by branch", "by prefix", "one by one", "Parquet"):
        assert absent not in page.text
    assert "Nothing to remove" not in Page(rendered(REPORT, whole())).text


def test_nothing_looked_at_is_not_the_same_as_nothing_to_remove():
    page = Page(rendered(replace(NOTHING, keep={}, inputs={}, seconds={}, stored=Amount()), []))
    assert "Nothing was looked at" in page.text
    assert "Nothing to remove" not in page.text
    assert "%" not in page.text  # no share of nothing
    assert not [tag for tag, _ in page.elements if tag == "table"]


def test_the_page_loads_nothing():
    html = rendered(replace(REPORT, repository="https://example.com/x"), [gone(address="s3://bucket/http://x")])
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
    bare = rendered(REPORT, whole())
    for loader in ("http:", "https:", "//", "url(", "@import", "fetch("):
        assert loader not in bare


def test_the_security_policy_allows_the_style_and_the_script_of_the_page_and_no_more():
    html = rendered(REPORT, whole())
    (policy,) = [attrs["content"] for _, attrs in Page(html).elements if "http-equiv" in attrs]
    allowed = [
        "'sha256-" + b64encode(sha256(html.split(f"<{tag}>")[1].split(f"</{tag}>")[0].encode()).digest()).decode() + "'"
        for tag in ("style", "script")
    ]
    assert policy == f"default-src 'none'; style-src {allowed[0]}; script-src {allowed[1]}"


def test_tables_have_headers_and_the_filter_has_a_label():
    page = Page(rendered(REPORT, whole()))
    assert all(attrs.get("scope") for tag, attrs in page.elements if tag == "th")
    tags = [tag for tag, _ in page.elements]
    assert tags.count("caption") == tags.count("table") == tags.count("thead") > 5
    assert ("label", {"for": "wanted"}) in page.elements
    assert [attrs["id"] for tag, attrs in page.elements if tag == "input"] == ["wanted"]
    assert ("html", {"lang": "en"}) in page.elements


@pytest.mark.parametrize(
    ("part", "all_of_it", "told"),
    [(0, 10, "0.0 %"), (1, 10**6, "< 0.1 %"), (10**6 - 1, 10**6, "> 99.9 %"), (5, 5, "100.0 %"), (0, 0, "–")],
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
    html = rendered(REPORT, whole(), listed=PRINTED + 1)
    assert f"at most {PRINTED} rows are printed" in html
    assert f".list tbody tr:nth-child(n + {PRINTED + 1}) {{ display: none; }}" in html
    assert "are printed" not in rendered(REPORT, whole(), listed=PRINTED)
