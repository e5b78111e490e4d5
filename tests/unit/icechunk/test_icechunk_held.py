"""What holds a file at the moment of removal: what any ref reaches by then, and what is young; the rest may go."""

import time
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

import icechunk_world
from desilt.columns.schemas import MOMENT, PLAN
from desilt.errors import Conflict, DamagedAsset, DamagedRun, Unreadable, WentBack
from desilt.executors.executor import HERE
from desilt.icechunk.held import IcechunkHeld
from desilt.icechunk.layout import MANIFESTS, SNAPSHOTS, TRANSACTIONS
from desilt.icechunk.opening import open_repository
from desilt.records import ledger, locks, removals
from desilt.records.holds import HoldKind
from desilt.records.ledger import RunRow, RunState
from desilt.records.opening import open_records
from desilt.records.removals import State
from desilt.repository.gate import Batch, Reliance
from desilt.repository.sealed import Sealed, seal
from desilt.repository.snapshot import Revision
from desilt.testing.faults import Proxy
from icechunk_world import natives

RUN = "62000000000000-00000001"
DAY = timedelta(days=1)


@pytest.fixture
def repository(world, place):
    found = open_repository(world.store, open_records(f"sqlite://{place}/records.db"))
    yield found
    found.records.close()


class Files:
    """What a snapshot has, as addresses of each kind."""

    def __init__(self, world, snapshot):
        self.snapshot, self.log = f"{SNAPSHOTS}{snapshot}", f"{TRANSACTIONS}{snapshot}"
        self.manifests = {f"{MANIFESTS}{name}" for name, *_ in world.manifests(snapshot)}
        self.chunks = {f"chunks/{name}" for name in natives(world.store, [snapshot])}

    @property
    def every(self):
        return {self.snapshot, self.log, *self.manifests, *self.chunks}


def rows(repository, addresses, age=30 * DAY):
    texts = [pa.repeat(text, len(addresses)) for text in ("remove", "unreferenced", "nobody holds it")]
    times = pa.array([None if age is None else repository.clock() - age] * len(addresses), MOMENT)
    return pa.table([pa.array(sorted(addresses)), pa.array([1] * len(addresses)), times, *texts], schema=PLAN)


def revision(repository):
    return repository.source(HERE).snapshot(repository.clock()).revision


def relies_on(repository, **words):
    return Reliance(repository.clock(), repository.clock(), **words)


def looked(repository, since=None, clock=lambda: 0.0, **words):
    held = IcechunkHeld(
        repository._core, RUN, since or revision(repository), relies_on(repository, **words), clock=clock
    )
    held.catch_up()
    return held


def of(held, repository, addresses, age=30 * DAY):
    """Which of some addresses are held."""
    return {
        address
        for address, flag in zip(sorted(addresses), held.holds(rows(repository, addresses, age)), strict=True)
        if flag
    }


def sealed(repository, *names):
    return seal(repository.store, f"_desilt/{'-'.join(names)[:40]}.txt", "".join(f"{one}\n" for one in names).encode())


@pytest.fixture
def lost(world):
    """A snapshot that no ref reaches, with chunks and a manifest of its own."""
    first = world.commit("first", a=range(10))
    lost = world.commit("lost", a=range(1, 11))
    world.repo.reset_branch("main", first)
    return lost


def test_what_a_ref_reaches_is_held_with_all_that_it_consists_of(world, repository, lost):
    main = world.repo.lookup_branch("main")
    world.repo.create_tag("v1", main)
    old, held = Files(world, main), looked(repository)
    assert of(held, repository, old.every) == old.every
    assert len(old.chunks) == 5
    if world.version == 1:  # in format 2 it is in a list, until somebody takes it out
        assert of(held, repository, Files(world, lost).every) == set()


def test_whatever_a_ref_is_put_onto_is_held_from_the_next_look_on(world, repository, lost):
    moments = iter(range(0, 10_000, 100))
    held = looked(repository, taken=sealed(repository, lost), clock=lambda: next(moments))
    files = Files(world, lost)
    assert of(held, repository, files.every) == set()
    world.repo.create_branch("again", lost)
    held.catch_up()
    assert of(held, repository, files.every) == files.every


def test_a_look_that_is_fresh_is_not_repeated_unless_somebody_ordered_something(world, repository, lost):
    now = [0.0]
    held = looked(repository, taken=sealed(repository, lost), clock=lambda: now[0])
    world.repo.create_branch("again", lost)
    held.catch_up()
    assert of(held, repository, {f"{SNAPSHOTS}{lost}"}) == set()
    repository.orders.add(HoldKind.ADDRESS, min(Files(world, lost).chunks), reason="x", until=None)
    held.catch_up()
    assert of(held, repository, {f"{SNAPSHOTS}{lost}"}) == {f"{SNAPSHOTS}{lost}"}


def test_a_snapshot_that_is_listed_is_held_unless_this_very_run_took_it(world, repository, lost):
    if world.version == 1:
        pytest.skip("in format 1 nothing lists what no ref reaches")
    files = Files(world, lost)
    assert of(looked(repository), repository, files.every) == files.every
    assert of(looked(repository, taken=sealed(repository, lost)), repository, files.every) == set()


def test_an_order_holds_a_snapshot_that_nothing_reaches_and_one_chunk(world, repository, lost):
    files, taken = Files(world, lost), sealed(repository, lost)
    chunk = min(files.chunks)
    order = repository.orders.add(HoldKind.ADDRESS, chunk, reason="x", until=None)
    assert of(looked(repository, taken=taken), repository, files.every) == {chunk}
    repository.orders.lift(order.id)
    order = repository.orders.add(HoldKind.REF, lost, reason="x", until=None)
    assert of(looked(repository, taken=taken), repository, files.every) == files.every
    repository.orders.lift(order.id)
    assert of(looked(repository, taken=taken), repository, files.every) == set()


def test_an_order_that_lapses_after_the_plan_holds_until_all_is_swept(world, repository, lost):
    """By either clock: that of the plan, or this one."""
    until = repository.clock() + timedelta(seconds=0.3)
    repository.orders.add(HoldKind.REF, lost, reason="x", until=until)
    planned, since = repository.clock(), revision(repository)
    time.sleep(0.4)
    assert repository.clock() > until
    taken = sealed(repository, lost)
    for at, expected in ((planned, Files(world, lost).every), (repository.clock(), set())):
        held = IcechunkHeld(repository._core, RUN, since, Reliance(at, at, taken=taken), clock=lambda: 0.0)
        held.catch_up()
        assert of(held, repository, Files(world, lost).every) == expected


def test_an_order_that_comes_while_history_is_read_holds_all_the_same(repository, world, lost):
    """Else it would count as one that was looked at, and nobody would look again."""
    files, taken, real = Files(world, lost), sealed(repository, lost), repository.store
    waiting = [lambda: repository.orders.add(HoldKind.REF, lost, reason="x", until=None)]
    if world.version == 2:
        world.repo.expire_snapshots(repository.clock() + DAY)  # it is in no list any more, but there

    class Late(Proxy):
        def get(self, key, **words):
            if key == "repo" and waiting:
                waiting.pop()()
            return self._real.get(key, **words)

        def __getattr__(self, name):
            return getattr(self._real, name)

    since = revision(repository)
    core = replace(repository._core, store=Late(real, None))
    held = IcechunkHeld(core, RUN, since, relies_on(repository, taken=taken), clock=lambda: 0.0)
    held.catch_up()
    assert not waiting
    assert of(held, repository, files.every) == files.every


def test_a_held_snapshot_whose_file_is_gone_stops_everything_and_says_which_hold(world, repository, lost):
    order = repository.orders.add(HoldKind.REF, lost, reason="x", until=None)
    (world.root / "snapshots" / lost).unlink()
    if world.version == 2:  # which it is in a list for as long as nobody expires it
        with pytest.raises(DamagedAsset, match=lost):
            looked(repository)
        return
    with pytest.raises(Unreadable, match=order.id):
        looked(repository)


def test_an_order_holds_a_snapshot_whose_past_a_collector_has_taken(world, repository):
    first, *lost = [world.commit(f"commit {at}", a=range(at, at + 10)) for at in range(4)]
    repository.orders.add(HoldKind.REF, lost[-1], reason="x", until=None)
    world.repo.reset_branch("main", first)
    if world.version == 2:
        world.repo.expire_snapshots(repository.clock() + DAY)
    world.repo.garbage_collect(repository.clock() + DAY)
    assert not world.files("snapshots") & {*lost}  # which knows nothing of our orders
    with pytest.raises(Unreadable, match="hold"):
        looked(repository)


@pytest.mark.parametrize("gone", [0, 1])
def test_an_order_holds_as_much_of_a_past_as_there_is(world, repository, gone):
    if world.version == 2:
        pytest.skip("in format 2 a snapshot's own file does not know its past")
    first, *lost = [world.commit(f"commit {at}", a=range(at, at + 10)) for at in range(4)]
    files = {name: Files(world, name) for name in lost}
    repository.orders.add(HoldKind.REF, lost[-1], reason="x", until=None)
    world.repo.reset_branch("main", first)
    (world.root / "snapshots" / lost[gone]).unlink()
    held = looked(repository)
    for name in lost[gone + 1 :]:
        assert of(held, repository, files[name].every) == files[name].every
    assert f"{SNAPSHOTS}{lost[0]}" not in of(held, repository, files[lost[0]].every)


def test_an_order_holds_what_format_1_had_and_format_2_has_expired(world, repository, place):
    if world.version == 1 and not icechunk_world.WRITES_BOTH:
        pytest.skip(icechunk_world.WHERE_BOTH)
    if world.version == 2:
        pytest.skip("it begins in format 1")
    lost = [world.commit(f"commit {at}", a=range(at, at + 10)) for at in range(3)][1]
    files = Files(world, lost)
    repository.orders.add(HoldKind.REF, lost, reason="x", until=None)
    world.upgrade()
    world.commit("last", b=[1])
    world.repo.expire_snapshots(next(world.repo.ancestry(branch="main")).written_at)
    again = open_repository(world.store, open_records(f"sqlite://{place}/records.db"))
    assert of(looked(again), again, files.every) == files.every
    again.records.close()


def test_chunks_of_manifests_that_verdicts_took_into_account_are_not_read_again(world, repository, lost):
    main = Files(world, world.repo.lookup_branch("main"))
    judged = sealed(repository, *(one.removeprefix(MANIFESTS) for one in main.manifests))
    held = looked(repository, judged=judged, taken=sealed(repository, lost))
    assert of(held, repository, main.chunks) == set()  # nothing that was judged by them would name these
    assert of(held, repository, main.manifests) == main.manifests


def test_what_a_plan_vouches_for_must_be_what_it_wrote(repository, lost):
    good = sealed(repository, lost)
    repository.store.put(good.key, [b"something else"])
    with pytest.raises(DamagedRun):
        looked(repository, judged=good)
    with pytest.raises(DamagedRun):
        looked(repository, taken=Sealed("_desilt/nowhere", good.sha256))


@pytest.mark.parametrize("age", [timedelta(0), 6 * DAY, None])
def test_what_is_young_by_the_stores_clock_is_left_to_sessions(repository, lost, age):
    address = f"chunks/{lost}"
    assert of(looked(repository), repository, {address}, age) == {address}
    assert of(looked(repository), repository, {address}, 8 * DAY) == set()


def test_a_run_may_be_told_another_age(repository, lost):
    address = f"chunks/{lost}"
    for told, held in ((5 * DAY, set()), (7 * DAY, {address})):
        assert of(looked(repository, least_age=told), repository, {address}, 6 * DAY) == held


@pytest.mark.usefixtures("lost")
def test_damage_stops_the_moment_of_removal(world, repository):
    since = revision(repository)
    head = world.repo.lookup_branch("main")
    (name, *_), *_ = world.manifests(head)
    whole = world.file(f"manifests/{name}")
    (world.root / "manifests" / name).write_bytes(whole[:-10])
    with pytest.raises(DamagedAsset, match=name):
        looked(repository, since)


@pytest.mark.usefixtures("lost")
def test_a_revision_that_these_records_never_saw_is_refused(repository):
    with pytest.raises(WentBack):
        looked(repository, Revision(1, "forged"))


def test_logs_that_a_snapshot_took_over_are_held(world, repository):
    if world.version == 1:
        pytest.skip("in format 1 a snapshot takes no logs over")
    middle = [world.commit(f"commit {at}", a=range(at, at + 10)) for at in range(4)]
    last = world.commit("last", b=[1])
    world.repo.expire_snapshots(next(world.repo.ancestry(branch="main")).written_at)
    logs = {f"{TRANSACTIONS}{name}" for name in [*middle, last]}
    held = looked(repository)
    assert of(held, repository, logs) == logs
    assert of(held, repository, {f"{SNAPSHOTS}{name}" for name in middle}) == set()


# ---- phases


@pytest.fixture
def lock(repository):
    with locks.held(repository.records, repository.uid, run=RUN) as lock:
        row = RunRow(RUN, "collect", "a policy", "delete", repository.clock(), None, RunState.SWEEPING, 1, 1)
        repository.gate.begin(lock, row, now=repository.clock(), clock_is_right=False)
        yield lock


NAMES = [f"{letter * 19}0" for letter in "ABCD"]


def condemned(repository, lock, number, *addresses):
    """What of a batch is left alone, and why."""
    trusted, since = relies_on(repository), revision(repository)
    batch = Batch(RUN, number, rows(repository, addresses), since)
    return repository.gate.condemn(batch, repository.gate.held(RUN, since, trusted), trusted, lock)


def ended(repository, number, folder, state):
    with repository.records.write() as tx:
        removals.turn(tx, repository.uid, RUN, [f"{folder}{NAMES[0]}"], state)
        ledger.write_result(tx, repository.uid, RUN, ledger.BatchRow(number, "done"), at=repository.clock())


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("state", [State.FAILED, State.CONDEMNED])
@pytest.mark.parametrize(
    ("earlier", "left"),
    [
        ("snapshots/", {"transactions/", "manifests/", "chunks/"}),
        ("manifests/", {"chunks/"}),
        ("transactions/", set()),
        ("chunks/", set()),
    ],
)
def test_a_file_stays_while_something_stays_that_could_refer_to_it(repository, lock, earlier, left, state):
    assert condemned(repository, lock, 0, f"{earlier}{NAMES[0]}") == {}
    ended(repository, 0, earlier, state)
    for number, folder in enumerate(("snapshots/", "transactions/", "manifests/", "chunks/"), 1):
        why = condemned(repository, lock, number, f"{folder}{NAMES[number - 1 or 1]}")
        assert bool(why) == (folder in left), folder
        assert all("could not be removed" in one for one in why.values())
        if not why:  # it went
            with repository.records.write() as tx:
                removals.settle(tx, repository.uid, RUN, number, State.REMOVED)


@pytest.mark.usefixtures("lost")
def test_what_another_run_failed_at_is_in_nobodys_way(repository, lock):
    with repository.records.write() as tx:
        stone = removals.Tombstone(f"snapshots/{NAMES[0]}", "another", "x", repository.clock(), state=State.FAILED)
        removals.condemn(tx, repository.uid, [stone])
    assert condemned(repository, lock, 0, f"chunks/{NAMES[1]}") == {}


def chunk_files(world):
    """Two that nothing refers to."""
    for name in NAMES[:2]:
        (world.root / "chunks" / name).parent.mkdir(exist_ok=True)
        (world.root / "chunks" / name).write_bytes(b"of nobody")
    return [f"chunks/{name}" for name in NAMES[:2]]


def states_of(repository):
    with repository.records.read() as tx:
        return {one.address: one.state for one in removals.of_run(tx, repository.uid, RUN)}


@pytest.mark.usefixtures("lost")
def test_of_a_batch_that_was_cut_off_stays_what_came_to_be_held_since(world, repository, lock):
    kept, other = chunk_files(world)
    assert condemned(repository, lock, 0, kept, other) == {}
    repository.orders.add(HoldKind.ADDRESS, kept, reason="x", until=None)
    for _ in range(2):
        assert condemned(repository, lock, 0, kept, other).keys() == {kept}
        assert states_of(repository) == {kept: State.RESTORED, other: State.CONDEMNED}


@pytest.mark.usefixtures("lost")
def test_what_comes_to_be_held_while_its_batch_is_removed_stops_it(world, repository, lock):
    kept, other = chunk_files(world)
    trusted, since = relies_on(repository), revision(repository)
    batch = Batch(RUN, 0, rows(repository, [kept, other]), since)
    assert repository.gate.condemn(batch, repository.gate.held(RUN, since, trusted), trusted, lock) == {}
    repository.gate.sure(batch, lock)
    repository.orders.add(HoldKind.ADDRESS, kept, reason="x", until=None)
    with pytest.raises(Conflict, match=kept):
        repository.gate.sure(batch, lock)
    (world.root / kept).unlink()
    repository.gate.sure(batch, lock)  # it is too late for it, and the rest may go
