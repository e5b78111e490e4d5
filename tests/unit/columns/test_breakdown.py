"""What goes, summed up."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from desilt.columns.breakdown import AGES, Breakdown, breakdown
from desilt.columns.schemas import PLAN
from desilt.lake.layout import LAYOUT

NOW = datetime(2026, 1, 31, tzinfo=UTC)
DAY = timedelta(days=1)


def rows(*objects):
    """Rows of a plan: branch, size and age."""
    said = ["remove", "unreferenced", "nobody holds it"]
    found = [
        (f"branches/{branch}/partition/{number}", size, None if age is None else NOW - age, *said)
        for number, (branch, size, age) in enumerate(objects)
    ]
    return pa.table([list(column) for column in zip(*found, strict=True)] if found else [[]] * 6, schema=PLAN)


def test_each_object_counts_once_by_age_and_once_by_branch():
    found = breakdown(rows(("a", 1, DAY / 2), ("a", 2, 400 * DAY), ("b", 4, 3 * DAY)), LAYOUT, NOW)
    assert found.age_objects == {"under a day": 1, "a year and more": 1, "a day to a week": 1}
    assert found.age_bytes == {"under a day": 1, "a year and more": 2, "a day to a week": 4}
    assert found.group_objects == {"a": 2, "b": 1}
    assert found.group_bytes == {"a": 3, "b": 4}


def test_an_age_ends_where_the_next_begins():
    ends = [age for age in AGES.values() if age is not None]
    names, tick = list(AGES), timedelta(microseconds=1)
    for place, end in enumerate(ends):
        assert breakdown(rows(("a", 1, end - tick)), LAYOUT, NOW).age_objects == {names[place]: 1}
        assert breakdown(rows(("a", 1, end)), LAYOUT, NOW).age_objects == {names[place + 1]: 1}


def test_what_has_no_date_or_a_later_one_is_young():
    found = breakdown(rows(("a", 1, None), ("a", 1, -DAY)), LAYOUT, NOW)
    assert found.age_objects == {"under a day": 2}


def test_nothing_is_nothing_and_parts_add_up():
    assert breakdown(rows(), LAYOUT, NOW) == Breakdown()
    some = rows(("a", 1, DAY), ("b", 2, 9 * DAY), ("a", 3, 99 * DAY))
    assert breakdown(some.slice(0, 1), LAYOUT, NOW) + breakdown(some.slice(1), LAYOUT, NOW) == breakdown(
        some, LAYOUT, NOW
    )
