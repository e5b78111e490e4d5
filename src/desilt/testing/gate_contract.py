"""What every Gate must do, as tests: subclass it with a fixture ``subject``, and pytest runs them.

Each tries to have something condemned that is held by the moment it is. What no gate but
an atomic one can promise is asked of those alone; all others must still leave out what
was held before they were asked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from desilt.columns.arrays import Flags
from desilt.columns.schemas import MOMENT, PLAN
from desilt.errors import FencedOff, WentBack
from desilt.executors.executor import HERE
from desilt.objects.store import Outcome, Result
from desilt.records import ledger, locks, removals
from desilt.records.holds import HoldKind
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.locks import Lock
from desilt.records.removals import State
from desilt.repository.gate import Batch, Held, Reliance, Rules, Safety
from desilt.repository.snapshot import Revision
from desilt.testing.source_contract import shows_staged
from desilt.testing.subject import Subject

RUN, OTHER = "62000000000000-00000001", "62000000000000-00000002"


def begun(subject: Subject, lock: Lock, run: str = RUN) -> None:
    """A run is on record, and at work."""
    row = RunRow(run, "contract", "a policy", "delete", subject.now(), None, RunState.SWEEPING, 1, 1)
    subject.repository.gate.begin(lock, row, now=subject.now(), clock_is_right=False)


@contextmanager
def locked(subject: Subject, run: str = RUN) -> Iterator[Lock]:
    with locks.held(subject.repository.records, subject.repository.uid, run=run) as lock:
        begun(subject, lock, run)
        yield lock


def judged(subject: Subject, *addresses: str, run: str = RUN, number: int = 0) -> Batch:
    """A batch, by the history of now."""
    old = subject.now() - subject.repository.grace - timedelta(days=3)  # as garbage is
    times = pa.array([old] * len(addresses), MOMENT)
    texts = [pa.repeat(text, len(addresses)) for text in ("remove", "unreferenced", "nobody holds it")]
    rows = pa.table([pa.array(addresses), pa.array([1] * len(addresses)), times, *texts], schema=PLAN)
    since = subject.repository.source(HERE).snapshot(subject.now()).revision
    return Batch(run, number, rows, since)


def relies_on(subject: Subject) -> Reliance:
    return Reliance(subject.now(), subject.now())


def condemn(subject: Subject, batch: Batch, lock: Lock) -> dict[str, str]:
    gate, trusted = subject.repository.gate, relies_on(subject)
    return dict(gate.condemn(batch, gate.held(batch.run, batch.since, trusted), trusted, lock))


def states(subject: Subject, *addresses: str) -> dict[str, str]:
    with subject.repository.records.read() as tx:
        return {name: one.state for name, one in removals.recorded(tx, subject.repository.uid, addresses).items()}


def needs(subject: Subject, *levels: Safety) -> None:
    """Only a gate that is so safe promises this."""
    safety = subject.repository.gate.safety
    if safety not in levels:
        pytest.skip(f"a gate that is {safety.value} does not promise this")


def is_condemned(subject: Subject, address: str) -> bool:
    """Whether it is on record as about to go, before it is touched; only an atomic gate tells everybody else, too."""
    return states(subject, address) == {address: State.CONDEMNED}


def commits(subject: Subject, address: str) -> None:
    subject.stage_again("main", "again", address)
    subject.commit("main", "wanted after all")


def stages(subject: Subject, address: str) -> None:
    subject.stage_again("main", "again", address)


def orders(subject: Subject, address: str) -> None:
    subject.repository.orders.add(HoldKind.ADDRESS, address, reason="evidence", until=None)


class Surprised:
    """Has looked what came since; and right after the first look, it comes."""

    def __init__(self, held: Held, then: Callable[[], None]) -> None:
        self.surprised = False
        self._held, self._then = held, then

    @property
    def generation(self) -> int:
        return self._held.generation

    def catch_up(self) -> None:
        self._held.catch_up()
        if not self.surprised:
            self.surprised = True
            self._then()

    def holds(self, rows: pa.Table) -> Flags:
        return self._held.holds(rows)


class GateContract:
    """The moment of removal."""

    @pytest.fixture
    def garbage(self, subject: Subject) -> str:
        """The address of an object that nobody holds, and has not for long."""
        address = subject.upload("main", "lost", b"1")
        subject.unstage("main")
        subject.wait(subject.repository.grace + timedelta(days=3))
        return address

    def test_it_says_how_safe_it_is(self, subject: Subject) -> None:
        assert subject.repository.gate.safety in Safety

    def test_what_nobody_holds_is_condemned(self, subject: Subject, garbage: str) -> None:
        with locked(subject) as lock:
            assert condemn(subject, judged(subject, garbage), lock) == {}
        assert is_condemned(subject, garbage)

    @pytest.mark.parametrize("hold", [commits, stages, orders])
    def test_what_came_to_be_held_since_is_left_out(
        self, subject: Subject, garbage: str, hold: Callable[[Subject, str], None]
    ) -> None:
        if hold is stages:
            shows_staged(subject)
        batch = judged(subject, garbage)
        with locked(subject) as lock:
            hold(subject, garbage)
            assert condemn(subject, batch, lock).keys() == {garbage}
        assert states(subject, garbage) == {}

    @pytest.mark.parametrize("hold", [commits, stages, orders])
    def test_and_between_the_last_look_and_the_moment(
        self, subject: Subject, garbage: str, hold: Callable[[Subject, str], None]
    ) -> None:
        if hold is not orders:  # which are in the records, whoever keeps the rest
            needs(subject, Safety.ATOMIC)
        batch, gate, trusted = judged(subject, garbage), subject.repository.gate, relies_on(subject)
        held = Surprised(gate.held(batch.run, batch.since, trusted), lambda: hold(subject, garbage))
        with locked(subject) as lock:
            assert gate.condemn(batch, held, trusted, lock).keys() == {garbage}
        assert held.surprised

    @pytest.mark.parametrize("by_rules", [False, True])
    def test_where_nobody_vouches_for_verdicts_whatever_was_held_before_counts(
        self, subject: Subject, by_rules: bool
    ) -> None:
        """Though it comes with rules, and with refs as they are."""
        address = subject.upload("main", "kept", b"1")
        head = subject.commit("main", "kept")
        subject.wait(subject.repository.grace + timedelta(days=3))
        rules = Rules("contract", {"all": {"prefix": "", "days": 1}}, "fingerprint", True, {"main": head}, {})
        batch, gate = judged(subject, address), subject.repository.gate
        trusted = replace(relies_on(subject), rules=rules if by_rules else None)
        with locked(subject) as lock:
            held = gate.held(batch.run, batch.since, trusted)
            assert gate.condemn(batch, held, trusted, lock).keys() == {address}
        assert states(subject, address) == {}

    def test_an_upload_under_way_is_left_out(self, subject: Subject) -> None:
        address = subject.begin_upload("main", "a")
        if address is None:
            pytest.skip("nobody can know of uploads here")
        with locked(subject) as lock:
            assert condemn(subject, judged(subject, address), lock).keys() == {address}

    def test_done_twice_it_is_done_once(self, subject: Subject, garbage: str) -> None:
        batch = judged(subject, garbage)
        with locked(subject) as lock:
            assert condemn(subject, batch, lock) == condemn(subject, batch, lock) == {}

    def test_whoever_lost_the_lock_condemns_nothing(self, subject: Subject, garbage: str) -> None:
        with locked(subject) as lock:
            batch = judged(subject, garbage)
            with pytest.raises(FencedOff):
                condemn(subject, batch, replace(lock, fence=lock.fence - 1))
        assert states(subject, garbage) == {}

    def test_the_first_wins_until_it_is_settled(self, subject: Subject, garbage: str) -> None:
        """A run that is at work has condemned it; another may have it once that one was given up."""
        needs(subject, Safety.ATOMIC)
        with locked(subject) as lock:
            condemn(subject, judged(subject, garbage), lock)
            begun(subject, lock, OTHER)
            again = judged(subject, garbage, run=OTHER)
            assert condemn(subject, again, lock).keys() == {garbage}
            with subject.repository.records.write() as tx:
                ledger.end(tx, subject.repository.uid, RUN, RunState.ABANDONED, at=subject.now(), fence=lock.fence)
            assert condemn(subject, replace(again, number=1), lock) == {}

    def test_what_became_of_it_is_written_once(self, subject: Subject, garbage: str) -> None:
        gate, batch = subject.repository.gate, judged(subject, garbage)
        done = BatchRow(0, "results.parquet", 1, 0, 0, 1)
        with locked(subject) as lock:
            condemn(subject, batch, lock)
            gate.sure(batch, lock)
            key = subject.repository.prefix + garbage
            gate.settle(batch, lock, done, [Outcome(key, Result.FAILED)], State.REMOVED)
            gate.settle(batch, lock, done, [Outcome(key, Result.REMOVED)], State.REMOVED)
            with pytest.raises(FencedOff):
                gate.sure(batch, lock)
        assert states(subject, garbage) == {garbage: State.FAILED}

    def test_a_revision_of_another_history_is_not_known(self, subject: Subject, garbage: str) -> None:
        gate, batch = subject.repository.gate, judged(subject, garbage)
        forged = Revision(batch.since.number, "of another")
        later = Revision(batch.since.number + 9, batch.since.mark)
        assert gate.standing([batch.since, forged, later]).known == {batch.since}
        with locked(subject) as lock, pytest.raises(WentBack):
            condemn(subject, replace(batch, since=forged), lock)
        assert states(subject, garbage) == {}
