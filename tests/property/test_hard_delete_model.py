"""The design that ships, explored: nothing is lost, leaked or stuck, and each condition counts."""

import itertools
import random

import pytest

from desilt.testing.explore import Actor, Bounds, Harm, explore
from desilt.testing.explore.condemning import ALL, OPERATIONS, Conditions, busy, operation
from desilt.testing.explore.condemning.writes import put
from drawn import MUTATIONS, mutated

HERE = Bounds(crashes=1, ticks=1)
FURTHER = Bounds(crashes=1, ticks=2)
LAKE = busy()
NAMES = list(OPERATIONS)


def together(*names):
    return [operation(name, new=f"new{number}", who=f"{number} {name}") for number, name in enumerate(names, 1)]


def harmless(bounds, *names):
    found = explore(LAKE, together(*names), bounds)
    assert found.violations == {}, "\n\n".join(map(str, found.violations.values()))
    return found


@pytest.mark.parametrize("one", NAMES)
def test_nothing_is_lost_when_two_do_something_at_once(one):
    for other in NAMES[NAMES.index(one) :]:
        harmless(HERE, one, other)


@pytest.mark.slow
@pytest.mark.parametrize("one", NAMES)
def test_nothing_is_lost_with_the_worker_at_any_step_of_two(one):
    for other in NAMES[NAMES.index(one) :]:
        harmless(FURTHER, one, other, "worker")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_when_three_do_something_at_once(seed):
    rng = random.Random(seed)
    for _ in range(100):
        harmless(HERE, *rng.choices(NAMES, k=3))


@pytest.mark.parametrize(
    "names", [("commit", "reset", "put over what is open"), ("commit", "commit", "move what is sealed")]
)
def test_nothing_is_lost_when_three_that_move_much_meet(names):
    assert harmless(Bounds(ticks=1), *names).states > 100


def test_whatever_a_transaction_drops_last_is_condemned_by_it():
    """Nothing is left to the collector, as long as nobody crashes, is refused, or turns it off."""
    for name in ("put over what is open", "remove what is open", "reset", "reset one path", "stage elsewhere"):
        found = explore(LAKE, [operation(name)])
        assert found.found == {} or "handed" in found.found[Harm.LEFT].because
        (end,) = found.ends
        assert end.store.get("stone/open") is not None, name
    (end,) = explore(LAKE, [operation("commit what changes nothing")]).ends
    assert end.store.get("stone/undone") is not None
    (end,) = explore(LAKE, [operation("commit")]).ends
    assert end.store.get("stone/hidden") is not None  # what the newer of two areas hid
    assert end.store.get("stone/open") is None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: " and ".join(one.without))
def test_a_condition_that_is_left_out_is_missed(mutation):
    assert mutation.harm in mutated(mutation).violations
    assert mutated(mutation, names=()).violations == {}


HIDING = [one for one in MUTATIONS if len(one.without) > 1]


@pytest.mark.parametrize("mutation", HIDING, ids=lambda one: " and ".join(one.without))
def test_each_of_two_conditions_hides_that_the_other_is_missing(mutation):
    for name in mutation.without:
        assert mutated(mutation, names=(name,)).violations == {}, name


NO_MATTER_OF_LOSS = {
    "held_is_spared",  # a claim looks for holds again
    "grace_is_waited_for",  # it is there for people, who may want something back
    "restore_writes_a_row",  # without one, what came back is the collector's
}


def test_every_condition_is_left_out_somewhere():
    tried = {name for mutation in MUTATIONS for name in mutation.without}
    assert tried | NO_MATTER_OF_LOSS == set(Conditions.names())
    assert not tried & NO_MATTER_OF_LOSS


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NO_MATTER_OF_LOSS))
def test_what_is_no_matter_of_loss_is_none_in_any_pair(name):
    when = ALL.without(name)
    lake = busy(when)
    for one, other in itertools.combinations_with_replacement(NAMES, 2):
        actors = [operation(one, when, new="new1", who="1"), operation(other, when, new="new2", who="2")]
        assert explore(lake, actors, HERE).violations == {}, (one, other)


def test_an_upload_that_was_cut_off_is_left_to_the_collector():
    found = explore(LAKE, [Actor("put", put(ALL, "main", "n", "new"))], Bounds(crashes=1))
    assert "new" in found.found[Harm.LEFT].because
    assert found.violations == {}


@pytest.mark.parametrize(
    "names", [("commit", "reset"), ("copy what is open", "remove what is open"), ("put on dev", "gc")]
)
def test_leaving_out_repetition_leaves_out_no_end_of_the_design(names):
    plain, reduced = (explore(LAKE, together(*names), HERE, reduced=reduced) for reduced in (False, True))
    assert plain.ends == reduced.ends
    assert plain.states == reduced.states
    assert plain.histories > reduced.histories
