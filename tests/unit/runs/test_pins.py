"""The report of what keeps the bytes, and its page."""

from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from desilt.jobs.pins.pins import AT_ONCE, by_pin, told
from desilt.render.pins import LISTED, render
from desilt.runs.pins import Pin, PinGroup, Pins, several, told_apart
from desilt.runs.report import Amount

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ["branch main", "tag v1", "staged on main"]


def test_each_pin_is_told_what_it_keeps_alone_and_what_it_reaches():
    amounts = {0b001: Amount(1, 10), 0b010: Amount(1, 50), 0b011: Amount(2, 200), 0: Amount(3, 3)}
    found = told("r", START, amounts, NAMES, limit=20)
    assert found.pins == (
        Pin("tag v1", Amount(1, 50), Amount(3, 250)),
        Pin("branch main", Amount(1, 10), Amount(3, 210)),
        Pin("staged on main", Amount(), Amount()),
    )
    assert found.groups == (PinGroup(("branch main", "tag v1"), Amount(2, 200)),)
    assert (found.total, found.nothing, found.kept) == (Amount(7, 263), Amount(3, 3), Amount(4, 260))
    assert (found.groups_left, found.left) == (0, Amount())


def test_the_biggest_groups_are_told_and_the_others_summed_up():
    amounts = {0b011: Amount(9, 1), 0b110: Amount(1, 30), 0b101: Amount(1, 20), 0b111: Amount(2, 20)}
    found = told("r", START, amounts, NAMES, limit=2)
    assert [group.amount for group in found.groups] == [Amount(1, 30), Amount(2, 20)]
    assert (found.groups_left, found.left) == (2, Amount(10, 21))
    assert found.together == found.total == found.kept == Amount(13, 71)


def test_what_each_reaches_is_added_up_over_many_sets_exactly():
    amounts = {bits: Amount(1, 2**40 + bits) for bits in range(AT_ONCE + 5)}
    wanted = [Amount() for _ in range(20)]
    for bits, amount in amounts.items():
        wanted = [one + amount if bits >> number & 1 else one for number, one in enumerate(wanted)]
    assert by_pin(amounts, 20) == wanted
    assert by_pin({}, 3) == [Amount()] * 3
    assert by_pin({0: Amount(1, 1)}, 0) == []


@pytest.mark.parametrize(
    ("many", "named", "more"), [(2, 2, ""), (4, 4, ""), (5, 3, "and 2 more"), (20, 3, "and 17 more")]
)
def test_a_long_list_of_names_is_told_in_short(many, named, more):
    names = [f"tag v{number}" for number in range(many)]
    assert several(names) == (names[:named], more)


def read(*groups):
    return [
        f"{' '.join(names)} {more}".strip()
        for names, more in told_apart([PinGroup(tuple(g), Amount()) for g in groups])
    ]


def test_two_groups_never_read_the_same():
    assert read("abcdef", "abcdeg") == ["f a b and 3 more", "g a b and 3 more"]
    assert read("abcdef", "abcdefg") == ["a b c and 3 more", "g a b and 4 more"]
    alike = "abcdefgh", "abcdefij", "ghij"  # every name is in two of them: so many are told as it takes
    assert read(*alike) == ["a b c d e f g h", "a b c d e f i j", "g h i j"]
    assert read("abcde", "abcde") == ["a b c d e", "a b c d e"]  # never asked for; it ends all the same
    assert read() == []


def page(**more):
    facts = {
        "repository": "r",
        "at": START,
        "total": Amount(4, 4_000),
        "nothing": Amount(1, 1_000),
        "pins": (Pin("tag v1", Amount(1, 1_000), Amount(3, 3_000)),),
        "groups": (PinGroup(("tag v1", "tag v2"), Amount(2, 2_000)),),
        "groups_left": 0,
        "left": Amount(),
    }
    return render(Pins(**(facts | more)))


def test_a_page_obeys_nothing_that_came_from_data():
    odd = "<script>alert('x')</script>\u202e"
    found = page(
        repository=odd, pins=(Pin(odd, Amount(1, 1), Amount(1, 1)),), groups=(PinGroup((odd, odd), Amount(1, 1)),)
    )
    assert "<script" not in found
    assert "\u202e" not in found
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in found
    assert "http" not in found.replace("http-equiv", "")


def test_a_page_allows_its_own_styles_and_nothing_else():
    found = page()
    policy = found.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    styles = [part.partition("</style>")[0] for part in found.split("<style>")[1:]]
    hashes = [f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" for style in styles]
    assert policy == f"default-src 'none'; style-src {' '.join(hashes)}"
    assert len(styles) == 2
    assert "style=" not in found
    assert "$" not in found


def test_a_page_says_what_comes_back_and_what_is_left_out():
    assert '<span class="raw">tag v1</span> keeps most alone: 1 object (1.0 kB)' in page()
    assert "nothing: waits for collection" in page()
    assert "<dt>Kept</dt><dd>3 objects (3.0 kB)</dd>" in page()
    assert "nothing: waits for collection" not in page(nothing=Amount())
    assert "3 more groups" in page(groups_left=3, left=Amount(3, 3))
    assert "1 more group<" in page(groups=(), groups_left=1, left=Amount(3, 3))
    assert "What several keep together" not in page(groups=())
    assert "keeps anything alone" in page(pins=(Pin("tag v1", Amount(), Amount(3, 3_000)),))
    assert "Nothing is kept" in page(
        total=Amount(), nothing=Amount(), groups=(), pins=(Pin("branch main", Amount(), Amount()),)
    )
    many = page(pins=tuple(Pin(f"tag {n}", Amount(1, 1), Amount(1, 1)) for n in range(LISTED + 7)))
    assert "7 more keep less alone" in many
    many = page(groups=(PinGroup(tuple(f"tag {n}" for n in range(30)), Amount(1, 1)),))
    assert '<li class="more">and 22 more</li>' in many
