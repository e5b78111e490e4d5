"""Signs of life: what is said of how far something is, and when."""

import time

import pytest

from desilt.cli import progress
from desilt.cli.progress import Progress, Told, about, counted, tracked


def line(seconds, done, **told):
    one = Progress("verdicts", **told)
    one.advance(done)
    return one.line(seconds)


def test_a_stage_that_has_nothing_to_count_yet_is_told_with_its_seconds():
    assert line(7.4, 0) == "verdicts: 7 s"
    assert line(7.4, 0, total=100) == "verdicts: 7 s"


def test_what_was_done_is_told_with_its_rate_and_the_rest_where_the_total_is_known():
    assert line(10, 5_000_000) == "verdicts: 5,000,000, 500,000/s"
    assert line(10, 5_000_000, total=20_000_000) == "verdicts: 5,000,000 of 20,000,000, 500,000/s, about 30 s left"
    assert (
        line(10, 2_000_000, total=8_000_000, in_bytes=True) == "verdicts: 2.0 MB of 8.0 MB, 200.0 kB/s, about 30 s left"
    )


def test_a_total_that_was_passed_is_no_estimate():
    assert line(10, 101, total=100) == "verdicts: 101, 10/s"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.1, "1 s"), (89, "89 s"), (90, "2 min"), (5_000, "83 min"), (7_300, "2 h")]
)
def test_times_are_told_roughly(seconds, said):
    assert about(seconds) == f"about {said}"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(progress, "EVERY_SECONDS", {True: 0.01, False: 0.01})


def until_said(capfd, what):
    said = ""
    for _ in range(1000):
        said += capfd.readouterr().err
        if what in said:
            return said
        time.sleep(0.01)
    raise AssertionError(f"{what!r} was not said: {said!r}")


@pytest.mark.usefixtures("impatient")
def test_a_stage_is_told_though_nothing_gets_on_and_the_next_in_its_place(capfd):
    told = Told()
    told.begins("commits")
    until_said(capfd, "commits: ")
    told.begins("verdicts")
    told.expects(100)
    told.advance(50)
    until_said(capfd, "verdicts: 50 of 100, ")
    told.ends()


def test_many_short_stages_are_a_long_time_too(monkeypatch):
    """Who has waited for two seconds is told of every stage from then on; a file, of some of them."""
    now = 100.0
    waits = []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(Progress, "begin", lambda self: waits.append(self._quiet) or self)
    told = Told()
    for _ in range(3):
        now += 1.5
        told.begins("a stage")
    assert waits == [2.0, 0.5, 0.0, 0.0]
    told._progress.spoke_at = now
    told.begins("the next")
    assert waits[-1] == progress.EVERY_SECONDS[False]


@pytest.mark.usefixtures("impatient")
def test_nothing_is_said_once_it_is_over(capfd):
    told = Told()
    told.begins("commits")
    told.ends()
    time.sleep(0.1)
    capfd.readouterr()
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_what_is_over_soon_says_nothing(capfd):
    assert list(counted([1, 2, 3], "put")) == [1, 2, 3]
    assert list(tracked([b"a", b"b"], "get", of_bytes=2)) == [b"a", b"b"]
    assert capfd.readouterr() == ("", "")
