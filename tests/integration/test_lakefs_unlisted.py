"""What branches serve and no list of uncommitted objects has: kept, at no more requests than it takes."""

import pytest

import lakefs_answers
import lakefs_model
from desilt.lakefs.gate import LakefsGate
from desilt.lakefs.held import LakefsHeld
from desilt.repository.looks import Looks
from desilt.repository.snapshot import Revision
from lakefs_model import REF, LakefsModel
from lakefs_world import DAY, world

STAT, LIST = ("GET", REF + "/objects/stat"), ("GET", REF + "/objects/ls")
BRANCHES = ("main", "dev", "ops")


@pytest.fixture(params=["local", "s3"])
def kind(request, monkeypatch):
    """The blockstore that the server says it has; files are in a directory either way."""
    told = LakefsModel._storage.fget
    monkeypatch.setattr(
        LakefsModel, "_storage", property(lambda self: {**told(self), "blockstore_type": request.param})
    )
    return request.param


@pytest.fixture
def here(kind, tmp_path, monkeypatch):
    """Three branches with the same commit of three paths."""
    with world(tmp_path, monkeypatch) as found:
        assert found.repository._core.blockstore == kind
        for number in range(3):
            found.upload("main", f"data/{number}", b"x" * (100 + number))
        found.subject.commit("main", "first")
        for name in BRANCHES[1:]:
            found.subject.branch(name, "main")
        yield found


def planned(here):
    """The addresses that a plan would remove, after two days; and how often was asked for paths and for pages."""
    here.wait(2 * DAY)
    here.model.asked.clear()
    found = {row["address"] for row in here.api.gc.plan().removals().to_pylist()}
    return found, (here.model.asked[STAT], here.model.asked[LIST])


def garbage(here, body):
    """An upload that is dropped at once."""
    address = here.upload("main", "dropped", body)
    here.subject.unstage("main")
    return address


def test_an_upload_of_the_bytes_that_its_path_has_is_kept(here):
    address = here.upload("dev", "data/1", b"x" * 101)
    assert planned(here)[0] == set()
    assert address in here.stored()


def test_what_was_uploaded_so_and_dropped_goes(here):
    address = here.upload("dev", "data/1", b"x" * 101)
    here.subject.unstage("dev")
    assert planned(here)[0] == {address}


@pytest.mark.parametrize("kind", ["s3"], indirect=True)
def test_only_paths_of_that_size_are_asked_for(here):
    address = garbage(here, b"y" * 101)
    assert planned(here) == ({address}, (len(BRANCHES), 0))


@pytest.mark.parametrize("kind", ["s3"], indirect=True)
def test_nothing_is_asked_for_where_no_path_has_that_size(here):
    address = garbage(here, b"y" * 99)
    assert planned(here) == ({address}, (0, 0))


@pytest.mark.parametrize("kind", ["s3"], indirect=True)
def test_branches_are_listed_where_that_is_fewer_requests(here):
    kept = here.upload("ops", "data/2", b"x" * 102)
    gone = {garbage(here, b"y" * (100 + number)) for number in range(3)}
    going, asked = planned(here)
    assert going == gone
    assert kept in here.stored()
    assert asked == (0, len(BRANCHES))


@pytest.mark.parametrize("told", [{}, {"content_type": "half \ud800"}, {"new": [1, {"path": None}]}])
def test_an_upload_on_any_page_is_kept_whatever_its_rows_have_besides(here, monkeypatch, told):
    """Pages of two; an entry that Arrow cannot read is on the one that has the upload."""
    gone = {garbage(here, b"y" * (100 + number)) for number in range(3)}
    kept = [here.upload(name, f"data/{number}", b"x" * (100 + number)) for number, name in enumerate(BRANCHES)]
    listed = lakefs_model.listed
    monkeypatch.setattr(lakefs_answers, "MOST", 2)
    monkeypatch.setattr(lakefs_model, "listed", lambda *one: {**listed(*one), **told})
    going, asked = planned(here)
    assert going == gone
    assert here.stored() >= {*kept}
    assert asked == (0, 2 * len(BRANCHES))


@pytest.mark.parametrize("kind", ["local"], indirect=True)
def test_on_a_local_blockstore_every_branch_is_listed(here):
    address = garbage(here, b"y" * 99)
    assert planned(here) == ({address}, (0, len(BRANCHES)))


@pytest.mark.parametrize("kind", ["s3"], indirect=True)
def test_a_page_that_cannot_be_had_stops_the_plan(here, monkeypatch):
    for number in range(3):
        garbage(here, b"y" * (100 + number))
    monkeypatch.setattr("desilt.lakefs.calls.FIRST_PAUSE", 0.0)
    here.model.misbehave("GET", ".*/ops/objects/ls", status=500, times=100)
    here.wait(2 * DAY)
    with pytest.raises(Exception, match="list objects of a branch"):
        here.api.gc.plan()


@pytest.mark.parametrize("kind", ["local"], indirect=True)
def test_a_sweep_lists_each_branch_once_in_a_look_however_many_batches(here):
    for number in range(6):
        garbage(here, b"y" * (90 + number))
    here.wait(2 * DAY)
    here.repository.store.delete_batch = 2
    made = here.api.gc.plan()
    here.model.asked.clear()
    assert made.sweep(confirm=True, max_share=1).swept.removed == 6
    assert here.model.asked[LIST] == len(BRANCHES)


@pytest.mark.parametrize("kind", ["local"], indirect=True)
def test_what_is_served_by_now_is_found_in_the_next_look(here, monkeypatch):
    """A look that counts for no time at all: every batch has its own."""
    monkeypatch.setattr(Looks, "fresh_for", lambda *_: 0.0)
    lost = [garbage(here, b"y" * (90 + number)) for number in range(4)]
    here.wait(2 * DAY)
    here.repository.store.delete_batch = 1
    made = here.api.gc.plan()
    condemn, batches = LakefsGate.condemn, []

    def staged_meanwhile(gate, batch, *more):
        batches.append(batch)
        if len(batches) == 2:
            left = [address for address in lost if address in here.stored()]
            here.subject.stage_again("dev", "again", left[-1])
        return condemn(gate, batch, *more)

    monkeypatch.setattr(LakefsGate, "condemn", staged_meanwhile)
    done = made.sweep(confirm=True, max_share=1).swept
    assert len(batches) == 4
    assert (done.removed, done.held_again) == (3, 1)


@pytest.mark.parametrize(("took", "listed", "fresh"), [(1.0, 2.0, 30.0), (10.0, 10.0, 40.0), (0.0, 200.0, 400.0)])
def test_a_look_counts_for_half_a_minute_or_for_as_long_again_as_it_took(here, took, listed, fresh):
    held = LakefsHeld(here.repository._core, "run", Revision(1, ""), None)
    held._looks.took = took
    assert held._looks.fresh_for(listed) == fresh
