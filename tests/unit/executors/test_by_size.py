"""Where work is done: as near as its size allows."""

import os

import pytest

from desilt.executors import by_size
from desilt.executors.by_size import IN_ONE_PROCESS, WITHOUT_SPARK, BySize
from desilt.executors.executor import Here
from desilt.repository.handle import Access


class Elsewhere(Here):
    place = "on Spark"
    width = 7


@pytest.fixture
def started():
    return []


@pytest.fixture
def fit(started):
    def spark(watch):
        started.append(watch)
        return Elsewhere(watch)

    executor = BySize(spark=spark, cores=2)
    yield executor
    executor.close()


def pids(executor, rows, count=4):
    return set(executor(Pid(), range(count), rows=rows))


class Pid:
    def __call__(self, _item):
        return os.getpid()


@pytest.fixture(autouse=True)
def _a_stand_in(monkeypatch):
    """For processes, which have tests of their own."""

    class Beside(Here):
        def __init__(self, width, watch):
            super().__init__(watch)
            self.width, self.place, self.closed = width, f"in {width} processes", False

        def close(self):
            self.closed = True

    monkeypatch.setattr(by_size, "Processes", Beside)


def test_what_is_small_is_done_here_and_starts_nothing(fit, started):
    assert pids(fit, IN_ONE_PROCESS) == {os.getpid()}
    assert (fit.place, started) == ("in one process", [])


def test_more_is_done_beside_and_what_is_small_after_that_here(fit, started):
    pids(fit, IN_ONE_PROCESS + 1)
    assert (fit.place, started) == ("in 2 processes", [])
    pids(fit, 1)
    assert fit.place == "in 2 processes"  # that is where most of it was done


def test_one_piece_alone_is_never_sent_away(fit):
    pids(fit, WITHOUT_SPARK, count=1)
    assert fit.place == "in one process"


def test_what_is_large_is_done_on_spark_and_all_after_it(fit, started):
    pids(fit, WITHOUT_SPARK + 1)
    pids(fit, 1)
    assert (fit.place, fit.width, len(started)) == ("on Spark", 7, 1)


@pytest.fixture
def always(started):
    """Somebody said that it is to be done on Spark."""

    def spark(watch):
        started.append(watch)
        return Elsewhere(watch)

    return BySize(spark=spark, without_spark=-1, cores=2)


def test_where_somebody_says_so_all_is_done_on_spark_which_is_started_when_there_is_something_to_do(always, started):
    assert (always.place, started) == ("in one process", [])
    assert always(Pid(), []) == []
    assert started == []
    pids(always, 0, count=1)
    assert (always.place, len(started)) == ("on Spark", 1)


def test_who_asks_how_wide_it_is_is_about_to_begin(always, started):
    assert (always.width, len(started)) == (7, 1)
    pids(always, 0)
    assert len(started) == 1


def test_nothing_to_do_starts_nothing(fit, started):
    assert fit(Pid(), [], rows=WITHOUT_SPARK + 1) == []
    assert started == []


def test_where_there_is_no_spark_it_stays_here():
    executor = BySize(cores=2)
    pids(executor, WITHOUT_SPARK + 1)
    assert executor.place == "in 2 processes"


def test_on_one_core_nothing_is_sent_beside():
    executor = BySize(cores=1)
    pids(executor, WITHOUT_SPARK)
    assert executor.place == "in one process"


def test_a_piece_finds_the_repository_as_it_is_and_its_handle_elsewhere():
    import pickle

    class Repository:
        handle = os.getpid

    repository = Repository()
    assert Access(repository)() is repository
    assert pickle.loads(pickle.dumps(Access(repository))) is os.getpid
