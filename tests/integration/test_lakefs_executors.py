"""A lakeFS server's repository, worked on by others: processes, and Spark, who find its keys for themselves."""

import pickle

import pytest

from desilt.executors.on_spark import OnSpark
from desilt.executors.processes import Processes
from lakefs_http import SECRET
from lakefs_world import DAY, world

KEPT, LOST = 30, 40


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr("desilt.sweep.batches.BATCHES_TO_A_PIECE", 4)  # some for each
    with world(tmp_path, monkeypatch) as found:
        found.repository.store.delete_batch = 3  # so that there are many
        yield found


@pytest.fixture(params=["processes", "spark"])
def executor(request, here):  # noqa: ARG001 - which sets what processes are started with
    if request.param == "spark":
        yield OnSpark(request.getfixturevalue("spark"))
        return
    two = Processes(2)
    yield two
    two.close()


@pytest.fixture
def lost(here):
    """What nothing points to, beside what is committed and staged."""
    for number in range(KEPT):
        here.upload("main", f"kept/{number}", b"k" * number)
    here.subject.commit("main", "kept")
    found = {here.upload("main", f"lost/{number}", b"l" * (100 + number)) for number in range(LOST)}
    here.subject.unstage("main")
    here.upload("main", "staged", b"s")
    here.wait(3 * DAY)
    return found


def test_they_remove_what_is_garbage_and_nothing_else(here, lost, executor):
    before = here.stored()
    report = here.done_by(executor).gc.run(confirm=True, max_share=1)
    assert (report.swept.removed, report.swept.failed, report.swept.held_again) == (LOST, 0, 0)
    assert here.stored() == before - lost
    assert here.done_by(executor).gc.run(confirm=True).removed.objects == 0


def test_what_was_staged_again_since_the_plan_they_leave(here, lost, executor):
    before, back = here.stored(), sorted(lost)[:5]
    planned = here.done_by(executor).gc.plan()
    for number, address in enumerate(back):
        here.subject.stage_again("main", f"back/{number}", address)
    done = planned.sweep(confirm=True, max_share=1).swept
    assert (done.removed, done.held_again) == (LOST - len(back), len(back))
    assert here.stored() == before - lost | set(back)


@pytest.mark.usefixtures("lost")
def test_no_secret_is_in_what_they_are_sent(here, executor):
    assert SECRET.encode() not in pickle.dumps(here.repository.handle)
    report = here.done_by(executor).gc.plan().report
    folder = [key for batch in here.repository.store.list("_desilt/") for key in batch["key"].to_pylist()]
    assert any(report.run in key for key in folder)
    assert not any(SECRET.encode() in here.repository.store.get(key) for key in folder)
