"""Pieces of work in processes of their own: results in order, errors as they were, and nobody left behind."""

import os
import signal
import sys
import threading
import time
from operator import itemgetter, methodcaller
from pathlib import Path

import pytest

from desilt.errors import NotFound, WorkFailed
from desilt.executors import processes
from desilt.executors.executor import Nobody
from desilt.executors.processes import Processes


@pytest.fixture
def two():
    executor = Processes(2)
    yield executor
    executor.close()


def pid_of(_item):
    return os.getpid()


@pytest.fixture(autouse=True)
def _found(monkeypatch):
    """This module can be imported by its own name, here and in a worker."""
    folder = str(Path(__file__).parent)
    monkeypatch.setattr(sys, "path", [folder, *sys.path])
    monkeypatch.setitem(sys.modules, "test_processes", sys.modules[__name__])
    for work in (pid_of, raising, dying, slow, unpicklable):
        monkeypatch.setattr(work, "__module__", "test_processes")


def raising(kind):
    if kind == "ours":
        raise NotFound("branch", "dev", "see `desilt lake branches`")
    if kind == "other":
        raise ZeroDivisionError("division by zero")
    return kind


def dying(_item):
    os.kill(os.getpid(), signal.SIGKILL)


def slow(path):
    Path(f"{path}.begun").touch()
    while not Path(f"{path}.go").exists():
        time.sleep(0.01)
    Path(f"{path}.done").touch()


def unpicklable(_item):
    return lambda: None


def test_results_come_in_the_order_of_the_items(two):
    items = [{"n": n} for n in range(50)]
    assert two(itemgetter("n"), items) == list(range(50))
    assert two(itemgetter("n"), []) == []


def test_work_is_done_elsewhere_by_as_many_as_there_are_and_by_the_same_again(two):
    first = set(two(pid_of, range(40)))
    assert os.getpid() not in first
    assert len(first) <= 2
    assert set(two(pid_of, range(40))) <= first


def test_an_error_of_ours_arrives_as_it_was(two):
    with pytest.raises(NotFound, match="there is no branch 'dev'; see `desilt lake branches`") as raised:
        two(raising, ["fine", "ours"])
    assert (raised.value.kind, raised.value.name) == ("branch", "dev")


@pytest.mark.parametrize(
    ("work", "said"),
    [(dying, "a worker process ended"), (unpicklable, "cannot|Can't|local object")],
)
def test_what_else_goes_wrong_is_one_line(two, work, said):
    with pytest.raises(WorkFailed, match=said) as raised:
        two(work, [1, 2])
    assert "\n" not in str(raised.value)


def test_another_error_is_told_in_a_line_and_with_its_trace_in_the_log(two, caplog):
    with caplog.at_level("INFO", "desilt"), pytest.raises(WorkFailed, match="ZeroDivisionError: division by zero"):
        two(raising, ["other"])
    assert "in raising" in caplog.text


def test_after_a_failure_it_works_again(two):
    with pytest.raises(WorkFailed):
        two(dying, [1])
    assert two(itemgetter("n"), [{"n": 1}, {"n": 2}]) == [1, 2]


def test_what_is_under_way_when_another_piece_fails_is_ended_as_it_should_be(tmp_path, two):
    path = tmp_path / "piece"
    failed = []

    def run():
        with pytest.raises(NotFound):
            two(both, [str(path), "ours"])
        failed.append(True)

    both.__module__ = "test_processes"
    thread = threading.Thread(target=run)
    thread.start()
    while not Path(f"{path}.begun").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    assert not failed  # it waits for the slow one
    Path(f"{path}.go").touch()
    thread.join()
    assert failed
    assert Path(f"{path}.done").exists()


def both(item):
    return raising(item) if item == "ours" else slow(item)


def test_whoever_watches_is_told_of_every_piece():
    class Watch(Nobody):
        seen = 0

        def advance(self, objects):
            self.seen += objects

    watch = Watch()
    executor = Processes(2, watch)
    executor(methodcaller("upper"), ["a", "bb", "ccc"], weigh=len)
    executor.close()
    assert watch.seen == 6


def test_nobody_is_left_behind(two):
    pids = set(two(pid_of, range(10)))
    processes.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
