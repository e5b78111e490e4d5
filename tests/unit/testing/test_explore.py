"""The explorer finds what it must find, by the shortest way, and leaves out nothing but repetition."""

import random

import pytest

from desilt.testing.explore import Actor, Blob, Bounds, Declined, Harm, Model, Pointer, Rows, World, explore
from desilt.testing.explore.acts import drop, erase, get, listing, now, put, put_if, scan, transaction, upload, wait


def staged(world):
    return [Pointer(key, value) for key, value in world.store.items() if key.startswith("entry/")]


def model(entries=(), objects=(), *, job=None, pointers=staged, held=None, collector=None):
    start = World(Rows(entries), Rows({address: Blob("text") for address in objects}))
    return Model(
        start, pointers, held or (lambda world: {one.address for one in pointers(world)}), job=job, collector=collector
    )


def nothing(_):
    return ()


def add(key):
    def flow():
        seen = yield get(key)
        yield put(key, (seen or 0) + 1)

    return flow


def test_a_lost_update_is_found_by_the_shortest_history():
    two_deep = model(pointers=lambda world: [Pointer("sum", "x")] if world.store.get("n") == 1 else [], objects=["x"])

    def check():
        total = yield get("n")
        if total == 1:
            yield erase("x")

    found = explore(two_deep, [Actor("one", add("n")), Actor("two", add("n")), Actor("check", check)])
    assert str(found.found[Harm.LOSS]).splitlines() == [
        "one    reads n: nothing",
        "one    sets n = 1",
        "check  reads n: 1",
        "check  removes object x",
        "=> loss: sum points to x, which is gone",
    ]


def test_every_order_of_two_flows_is_run_when_each_step_meets_the_other():
    found = explore(model(pointers=nothing), [Actor("one", add("n")), Actor("two", add("n"))], reduced=False)
    assert found.histories == 6  # 4 over 2
    assert {world.store["n"] for world in found.ends} == {1, 2}


def test_a_conditional_write_loses_no_update():
    def flow():
        for _ in range(2):
            seen = yield get("n")
            if (yield put_if("n", (seen or 0) + 1, was=seen)):
                return
        raise Declined("others were faster")

    found = explore(model(pointers=nothing), [Actor("one", flow), Actor("two", flow)])
    assert {world.store["n"] for world in found.ends} == {2}


def test_steps_that_do_not_meet_are_run_in_one_order():
    def writes(*keys):
        def flow():
            for key in keys:
                yield put(key, 1)

        return flow

    actors = [Actor("one", writes("a", "b")), Actor("two", writes("c", "d")), Actor("three", writes("e", "f"))]
    plain, reduced = (explore(model(pointers=nothing), actors, reduced=reduced) for reduced in (False, True))
    assert (plain.histories, reduced.histories) == (90, 1)
    assert (plain.steps, reduced.steps) == (54, 26)
    assert plain.ends == reduced.ends


def test_what_crashes_stays_where_it_was():
    def flow():
        yield get("half")  # a crash after this is one before it
        yield put("half", 1)
        yield put("whole", 1)

    found = explore(model(pointers=nothing), [Actor("one", flow)], Bounds(crashes=1))
    assert found.histories == 2
    assert {tuple(sorted(world.store)) for world in found.ends} == {("half",), ("half", "whole")}
    unharmed = explore(model(pointers=nothing), [Actor("one", flow)])
    assert {tuple(sorted(world.store)) for world in unharmed.ends} == {("half", "whole")}


def test_an_upload_that_crashed_is_left_to_the_collector_and_is_no_leak():
    def flow():
        yield upload("x", "text")
        yield put("entry/a", "x")

    found = explore(model(), [Actor("put", flow)], Bounds(crashes=1))
    assert str(found.found[Harm.LEFT]).splitlines() == [
        "put  uploads text to x",
        "put  crashes",
        "=> left: x is held by nobody, and the design does not remove it",
    ]
    assert found.violations == {}


def test_what_neither_the_job_nor_the_collector_takes_is_a_leak():
    def flow():
        yield drop("entry/a")

    def collect():
        yield listing("")

    world = model({"entry/a": "x"}, ["x"], collector=Actor("collector", collect))
    assert str(explore(world, [Actor("remove", flow)]).found[Harm.LEAK]).splitlines() == [
        "remove  deletes entry/a",
        "=> leak: x is held by nobody, and nothing will remove it",
    ]


def test_what_the_job_takes_once_all_is_quiet_was_not_left():
    def flow():
        yield drop("entry/a")

    def job():
        entries = yield scan("entry/")
        if "x" not in dict(entries).values():
            yield erase("x")

    found = explore(model({"entry/a": "x"}, ["x"], job=Actor("job", job)), [Actor("remove", flow)])
    assert found.found == {}


def test_a_job_that_removes_too_much_once_all_is_quiet_is_found():
    def job():
        yield erase("x")

    def flow():
        yield put("entry/b", "x")

    found = explore(model({"entry/a": "x"}, ["x"], job=Actor("job", job)), [Actor("copy", flow)])
    assert str(found.found[Harm.LOSS]).splitlines() == [
        "copy  sets entry/b = x",
        "time  passes",
        "job   removes object x",
        "=> loss: entry/a points to x, which is gone",
    ]


def test_whoever_waits_for_what_never_comes_is_stuck():
    def holding():
        yield wait("lock", lambda value: value is None, "lock is free")
        yield put("lock", "taken")
        yield drop("lock")

    actors = [Actor("one", holding), Actor("two", holding)]
    assert explore(model(pointers=nothing), actors).violations == {}
    found = explore(model(pointers=nothing), actors, Bounds(crashes=1))
    assert str(found.found[Harm.STUCK]).splitlines() == [
        "one  waits until lock is free: nothing",
        "one  sets lock = taken",
        "one  crashes",
        "=> stuck: two waits until lock is free, for ever",
    ]


def test_time_passes_at_any_step_or_only_between_flows():
    def slow():
        begun = yield transaction("begins", lambda visit: visit.now)
        ended = yield transaction("ends", lambda visit: visit.now)
        if ended > begun:
            yield erase("x")

    start = model({"entry/a": "x"}, ["x"])
    assert Harm.LOSS in explore(start, [Actor("slow", slow)], Bounds(ticks=1)).found
    assert explore(start, [Actor("slow", slow)], Bounds(ticks=1, patient=True)).found == {}


def test_a_transaction_that_declines_has_changed_nothing():
    def all_or_nothing(visit):
        visit.set("entry/b", "nowhere")
        visit.erase("x")
        raise Declined("too late")

    def flow():
        yield transaction("does it", all_or_nothing)

    found = explore(model({"entry/a": "x"}, ["x"]), [Actor("one", flow)])
    assert found.found == {}
    assert [dict(world.store) for world in found.ends] == [{"entry/a": "x"}]


def some_flow(rng, number):
    """A few steps on a few keys; what some of them do depends on what others have read."""
    keys = ["entry/a", "entry/b", "k", "l"]
    kinds = ["get", "set", "if", "drop", "scan", "now", "put", "erase"]
    plan = [(rng.choice(kinds), rng.choice(keys)) for _ in range(3)]

    def flow():
        seen = None
        for kind, key in plan:
            address = f"x{(number + len(str(seen)) + (seen == 1)) % 2}"
            if kind == "get":
                seen = yield get(key)
            elif kind == "set":
                yield put(key, address)
            elif kind == "if":
                seen = yield put_if(key, address, was=seen)
            elif kind == "drop":
                yield drop(key)
            elif kind == "scan":
                seen = yield scan("entry/")
            elif kind == "now":
                seen = yield now()
            elif kind == "put":
                yield upload(address, "text")
            elif seen is None:
                yield erase(address)

    return Actor(f"f{number}", flow)


@pytest.mark.parametrize("seed", range(4))
def test_leaving_out_repetition_changes_no_verdict_and_no_end(seed):
    """Many small worlds, with and without the reduction."""
    rng, saved, total = random.Random(seed), 0, 0
    for _ in range(40):
        actors = [some_flow(rng, number) for number in range(rng.choice((2, 3)))]
        start = model({"entry/a": "x0"}, ["x0", "x1"])
        bounds = Bounds(crashes=rng.choice((0, 0, 1)), ticks=rng.choice((0, 1)), patient=rng.random() < 0.3)
        plain, reduced = (explore(start, actors, bounds, reduced=reduced) for reduced in (False, True))
        assert plain.ends == reduced.ends
        assert plain.states == reduced.states
        assert {harm: str(one).count("\n") for harm, one in plain.found.items()} == {
            harm: str(one).count("\n") for harm, one in reduced.found.items()
        }
        total, saved = total + plain.steps, saved + plain.steps - reduced.steps
    assert saved > total / 10
