"""Spark's workers: what they are given, what they must have, and what comes back, on any session."""

from dataclasses import dataclass

import pytest

from desilt.errors import BadRequest, NotFound, WorkersDiffer, WorkFailed
from desilt.executors import on_spark, package, workers
from desilt.executors.executor import Nobody
from desilt.executors.on_spark import OnSpark
from desilt.executors.package import Package

OTHER = Package("0.0.1", "0123456789abcdef")


@dataclass(frozen=True)
class Shared:
    """Something that all pieces have, and one that each has alone."""

    all: bytes
    own: int


class Watching(Nobody):
    def __init__(self):
        self.seen = 0

    def advance(self, objects):
        self.seen += objects


def own(piece):
    return piece.own, len(piece.all)


def test_each_piece_is_done_by_a_task_and_what_they_share_is_sent_once(spark):
    shared = bytes(range(256)) * 4096
    pieces = [Shared(shared, number) for number in range(20)]
    assert OnSpark(spark)(own, pieces) == [(number, len(shared)) for number in range(20)]
    assert OnSpark(spark)(own, []) == []


def test_what_is_too_much_for_one_frame_goes_in_several(spark, monkeypatch):
    monkeypatch.setattr(on_spark, "AT_ONCE", 100)
    pieces = [Shared(number.to_bytes(2, "big") * 50, number) for number in range(5)]
    assert [number for number, _ in OnSpark(spark)(own, pieces)] == [0, 1, 2, 3, 4]


def test_who_watches_sees_all_of_it(spark):
    watch = Watching()
    OnSpark(spark, watch)(len, ["a", "bb", "ccc"], weigh=int)
    assert watch.seen == 6


def missing(name):
    raise NotFound("branch", name)


def test_an_error_of_ours_arrives_as_it_was_and_another_in_a_line(spark):
    with pytest.raises(NotFound, match="there is no branch 'dev'"):
        OnSpark(spark)(missing, ["dev"])
    with pytest.raises(WorkFailed, match="ZeroDivisionError") as raised:
        OnSpark(spark)(lambda number: 1 // number, [0])
    assert "\n" not in str(raised.value)


def test_a_worker_with_another_desilt_does_nothing(spark, monkeypatch, tmp_path):
    monkeypatch.setattr(package, "this", lambda: OTHER)
    with pytest.raises(WorkersDiffer, match=r"has desilt .* the driver has desilt 0\.0\.1 \(01234567\)"):
        OnSpark(spark)(touch, [tmp_path / "done"])
    assert list(tmp_path.iterdir()) == []


def touch(path):
    path.touch()


def test_workers_are_looked_at_before_anything_is_given_out(spark, monkeypatch):
    workers.prepare(spark, "as it is", 2)
    monkeypatch.setattr(package, "this", lambda: OTHER)
    with pytest.raises(WorkersDiffer, match=r"has desilt .*; install the driver's desilt 0\.0\.1 \(01234567\) there"):
        workers.prepare(spark, "another", 2)


def test_what_is_no_session_is_refused():
    with pytest.raises(BadRequest, match="is no Spark session"):
        OnSpark("local[*]")


def test_spark_shows_what_is_being_done(spark):
    frame = workers.numbered(spark, 2, workers.sendable(lambda _: b"", "sweep_piece"), "binary")
    assert "sweep_piece(id" in frame._jdf.queryExecution().toString()
