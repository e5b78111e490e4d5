"""Time to delete in, given out once: by one row, to whoever asks, by the clock of the database."""

import json
import subprocess
import sys
from itertools import pairwise

import pytest

from desilt.records import budget
from desilt.records.opening import open_records
from patience import FOR_EVER

HERE, THERE = "lakefs://there/repo", "lakefs://there/other"
HOUR = 3600.0  # a lease that lasts, beside what a test takes: nothing of it passes meanwhile that counts
MICRO = 1_000_000

LEASING = """
import json, sys
from desilt.records import budget
from desilt.records.opening import open_records
url, repository, seconds, times = sys.argv[1:]
database = open_records(url)
print("ready", flush=True)
sys.stdin.readline()
begins = []
for _ in range(int(times)):
    with database.write() as tx:
        wait = budget.lease(tx, repository, float(seconds))
        (as_of,) = tx.one("SELECT as_of FROM delete_budgets WHERE repository = ?", repository)
    begins.append(as_of + round(wait * 1_000_000))
print(json.dumps(begins))
"""


class Dies(Exception):
    pass


@pytest.fixture
def database(database_url):
    opened = open_records(database_url)
    yield opened
    opened.close()


def leased(database, seconds=HOUR, repository=HERE):
    """When a lease begins, by the database's clock, in microseconds."""
    with database.write() as tx:
        wait = budget.lease(tx, repository, seconds)
        (as_of,) = tx.one("SELECT as_of FROM delete_budgets WHERE repository = ?", repository)
    return as_of + round(wait * MICRO)


def row(database, repository=HERE):
    with database.read() as tx:
        return tx.one("SELECT given_out, as_of FROM delete_budgets WHERE repository = ?", repository)


def test_leases_follow_one_another_and_never_overlap(database):
    begins = [leased(database) for _ in range(5)]
    assert [later - earlier for earlier, later in pairwise(begins)] == [HOUR * MICRO] * 4


def test_the_first_begins_at_once(database):
    with database.write() as tx:
        assert budget.lease(tx, HERE, HOUR) == 0.0


def test_each_repository_has_its_own(database):
    leased(database)
    with database.write() as tx:
        assert budget.lease(tx, THERE, HOUR) == 0.0


def test_time_that_nobody_took_is_lost(database):
    """Else whoever comes after a quiet hour would delete an hour's worth at once."""
    leased(database, 1.0)
    with database.write() as tx:
        tx.execute("UPDATE delete_budgets SET as_of = as_of - ?", 10 * round(HOUR * MICRO))
        assert budget.lease(tx, HERE, 2.0) == 0.0
    assert row(database)[0] == 2 * MICRO


def test_a_clock_that_is_set_back_makes_nobody_wait_for_longer(database):
    leased(database, 7.0)
    with database.write() as tx:
        tx.execute("UPDATE delete_budgets SET as_of = as_of + ?", 10 * round(HOUR * MICRO))
        assert budget.lease(tx, HERE, 1.0) == 7.0
    assert row(database)[0] == 8 * MICRO


def test_who_is_held_back_waits_and_those_who_ask_for_it_do_not_add_up(database):
    for _ in range(3):
        with database.write() as tx:
            budget.hold_back(tx, HERE, HOUR)
    assert HOUR * MICRO * 0.9 < row(database)[0] <= HOUR * MICRO
    before = sum(row(database))
    with database.write() as tx:
        budget.hold_back(tx, HERE, 1.0)  # less than there is to wait anyway
    assert sum(row(database)) == before
    assert leased(database) == before


def test_what_was_not_committed_was_not_given_out(database):
    def dies():
        with database.write() as tx:
            budget.lease(tx, HERE, HOUR)
            raise Dies

    with pytest.raises(Dies):
        dies()
    assert row(database) is None


def test_processes_share_one_budget(database):
    command = [sys.executable, "-c", LEASING, database.url, HERE, str(HOUR), "10"]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(4)
    ]
    for one in running:
        assert one.stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    told = [json.loads(one.communicate(timeout=FOR_EVER)[0]) for one in running]
    begins = sorted(moment for some in told for moment in some)
    assert len(begins) == 40
    assert {later - earlier for earlier, later in pairwise(begins)} == {HOUR * MICRO}
