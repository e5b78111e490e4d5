"""Python's search for cycles is left out where it is asked for, and there alone."""

import gc
import threading

import pytest

from desilt import cycles


@pytest.fixture(autouse=True)
def _on_again():
    assert gc.isenabled()
    yield
    gc.enable()


def test_it_is_off_within_and_on_afterwards():
    with cycles.left_alone():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error_too():
    with pytest.raises(KeyError), cycles.left_alone():
        raise KeyError
    assert gc.isenabled()


def test_what_somebody_else_switched_off_stays_off():
    gc.disable()
    with cycles.left_alone():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_one_within_another_leaves_it_off_for_the_outer_one():
    with cycles.left_alone():
        with cycles.left_alone():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_function_that_is_decorated_leaves_it_off_each_time():
    @cycles.left_alone()
    def searches(error=None):
        if error:
            raise error
        return gc.isenabled()

    assert [searches(), searches()] == [False, False]
    with pytest.raises(KeyError):
        searches(KeyError())
    assert gc.isenabled()


@pytest.mark.parametrize("first", [0, 1], ids=["the first one ends first", "the second one ends first"])
def test_it_is_on_again_once_all_threads_are_done(first):
    """Whoever began while another was at it: one that ends early may switch it on for both, none leaves it off."""
    begun, end = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]

    def at_work(number):
        with cycles.left_alone():
            begun[number].set()
            end[number].wait(10)

    threads = [threading.Thread(target=at_work, args=(number,)) for number in range(2)]
    for thread, there in zip(threads, begun, strict=True):
        thread.start()
        assert there.wait(10)
    assert not gc.isenabled()
    for number in (first, 1 - first):
        end[number].set()
        threads[number].join(10)
    assert gc.isenabled()
