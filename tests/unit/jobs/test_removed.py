"""Whatever becomes of sets of what runs have removed, jobs are told what the runs that are over have removed."""

import hashlib
import json
import tempfile
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.columns import classes
from desilt.columns.files import Files
from desilt.errors import NotReadBack
from desilt.executors.executor import HERE
from desilt.jobs.collect.tidy import replaced_sets
from desilt.jobs.removed import distrust, growth, past, removed
from desilt.jobs.removed.sets import say
from desilt.records.ledger import RunState
from desilt.sweep.tidy import OWN
from desilt.testing.faults import After, Before, Crash, Steps, stepped
from past_runs import PastRuns, in_memory

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2100, 1, 1, tzinfo=UTC)  # by when everything here is old


@pytest.fixture(autouse=True, scope="module")
def small():
    """Three sets are many, and ten rows are much."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FEW": 3, "SMALLEST": 8, "LARGE": 60, "MOST": 90}.items():
            patch.setattr(classes, name, value)
        patch.setattr(past, "PAGE", 4)
        yield


@pytest.fixture
def runs(memory_repo):
    """Three of them, with a set each, about to grow together."""
    made = PastRuns(memory_repo)
    for _ in range(3):
        made.add(2)
        assert made.told() == made.straight()
    assert len(made.names()) == 6
    return made


@pytest.fixture
def merged(runs):
    """The same, which have grown together."""
    runs.told()
    assert len(runs.names()) == 8
    return runs


def several(runs):
    """The set that is of several runs, whether it is of use now or not."""
    sets = runs.sets()
    (one,) = (one for one in (*sets.used, *sets.barred) if len(one.runs) > 1)
    return one


PLACE = st.integers(0, 30)
ACT = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 9), st.sampled_from(["collect", "lifecycle", "gc"])),
    st.tuples(st.just("cut off"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["resume", "end", "forget", "damage", "damage a word", "lose"]), PLACE),
    st.tuples(st.sampled_from(["tidy", "see", "merge what was seen"])),
)


@given(st.lists(ACT, max_size=30))
@settings(max_examples=80)
def test_any_history_tells_what_the_wanted_runs_have_removed(acts):
    with tempfile.TemporaryDirectory() as directory, in_memory(directory, START) as runs:
        pieces, away = [], []
        for what, *how in acts:
            keys = sorted(runs.names())
            if what == "add":
                runs.add(how[0], job=how[1])
            elif what == "cut off":
                away.append(runs.add(how[0], state=RunState.SWEEPING))
            elif what in ("resume", "forget") and runs.wanted:
                run = runs.wanted[how[0] % len(runs.wanted)]
                getattr(runs, what)(run)
                away += [run] if what == "resume" else []
            elif what == "end" and away:
                runs.end(away.pop(how[0] % len(away)))
            elif what in ("damage", "damage a word", "lose"):
                ending = ".json" if what == "damage a word" else ".parquet"
                if some := [key for key in keys if key.endswith(ending)]:
                    key = some[how[0] % len(some)]
                    runs.damage(key) if what != "lose" else runs.store.delete_many([key])
            elif what == "tidy":
                runs.tidy(LATER)
            elif what == "see":  # somebody else is about to merge this, now or much later
                pieces += growth.due(runs.store.uri, runs.folder, runs.names(), runs.sets())
            elif what == "merge what was seen":
                for piece in pieces:
                    past.distrust(runs.store, runs.repo.prefix, {growth.merge(piece)})
            if what != "see":  # so that there is something to see
                assert runs.told() == runs.straight()
        assert runs.told() == runs.straight()  # and once more, from what that left


def test_a_thousand_runs_leave_few_sets(memory_repo):
    runs, read = PastRuns(memory_repo), []
    for _ in range(200):
        runs.add(1)
        read.append(len(removed(HERE, runs.repo)))
    assert max(read) <= 3 * classes.FEW + 200 // classes.LARGE + 2
    assert runs.told() == runs.straight()


def test_sets_without_an_address_grow_together_too(memory_repo):
    runs = PastRuns(memory_repo)
    for _ in range(20):
        runs.add(0)
        assert runs.told() == set()
    assert len(runs.sets().used) <= 2 * classes.FEW


def test_what_is_replaced_is_not_even_asked(merged, monkeypatch):
    for _ in range(40):  # until those are replaced that have replaced others
        merged.add(2)
        merged.told()
    while list(growth.due(merged.store.uri, merged.folder, merged.names(), merged.sets())):
        merged.told()
    asked, get = [], type(merged.store).get
    monkeypatch.setattr(
        type(merged.store), "get", lambda self, key, **part: asked.append(key) or get(self, key, **part)
    )
    files = removed(HERE, merged.repo)
    used = [one.word for one in merged.sets().used]
    assert asked[: len(used)] == used
    assert len(used) == len(files) < 9
    assert len(asked) == 2 * len(used)  # once by the job, once by this test: nothing else
    assert sum(key.endswith(".json") for key in merged.names()) > 43  # nothing is removed here


def test_a_set_of_several_has_every_row_of_theirs(runs):
    """Those too that two runs have removed, one after the other: an address came back between them."""
    again = min(runs.known[runs.wanted[0]])
    runs.add(1, addresses=[again])
    assert runs.told() == runs.straight()
    assert runs.told() == runs.straight()
    one = several(runs)
    assert (one.rows, len(one.runs)) == (6, 3)
    assert sum(file.rows for file in removed(HERE, runs.repo)) == 8


def test_a_set_is_never_changed(runs):
    before = {key: runs.store.get(key) for key in runs.names()}
    for _ in range(12):
        runs.add(2)
        runs.told()
    assert before == {key: runs.store.get(key) for key in before}


@pytest.mark.parametrize("tidied", [False, True], ids=["replaced sets there", "tidied up"])
@pytest.mark.parametrize("how", ["resume", "forget"])
def test_a_set_of_several_is_not_used_where_one_of_its_runs_is_not_over(merged, how, tidied):
    """A job would be told that something is gone which is there."""
    if tidied:
        merged.tidy(LATER)
    run, one = merged.wanted[1], several(merged)
    getattr(merged, how)(run)
    assert merged.told() == merged.straight()
    assert merged.known[run].isdisjoint(merged.told())
    assert several(merged) == one
    if how == "resume":
        merged.end(run)
        assert [file.key for file in removed(HERE, merged.repo)] == [file.key for file in one.files]
        assert merged.told() == merged.straight()


@pytest.mark.parametrize("tidied", [False, True], ids=["replaced sets there", "tidied up"])
@pytest.mark.parametrize("where", ["file", "word", "lost", "both"])
def test_a_damaged_set_of_several_is_made_again(merged, where, tidied):
    one = several(merged)
    if tidied:
        merged.tidy(LATER)
    if where in ("file", "both"):
        merged.damage(one.files[0].key)
    if where in ("word", "both"):
        merged.damage(one.word)
    if where == "lost":
        merged.store.delete_many([one.files[0].key])
    if where == "file":
        with pytest.raises(NotReadBack):
            merged.rows(removed(HERE, merged.repo))
    assert merged.told() == merged.straight()
    assert one not in merged.sets().used


def test_no_other_set_is_distrusted_for_a_damaged_one(merged):
    """Nor is one that has replaced it: it may be what made the damaged one needless."""
    first = several(merged)
    for _ in range(6):
        merged.add(2)
        merged.told()
    before = {one.word: one for one in merged.sets().used}
    single, *_ = (one for one in before.values() if len(one.runs) == 1)
    assert first.files[0].key in frozenset().union(*(one.replaces for one in before.values()))
    damaged = {single.files[0].key, first.files[0].key, "plan/x", f"{merged.folder}what-is-not-there"}
    distrust(merged.store, merged.repo.prefix, damaged)
    assert before.keys() - {one.word for one in merged.sets().used} == {single.word}
    assert merged.told() == merged.straight()


def test_a_damaged_set_is_not_merged_but_written_again(runs):
    key = min(key for key in runs.names() if key.endswith(".parquet"))
    runs.damage(key)
    assert runs.rows(removed(HERE, runs.repo)) == runs.straight()  # the job does not stop, either
    assert not [one for one in runs.sets().used if len(one.runs) > 1]
    assert runs.told() == runs.straight()
    assert len(several(runs).runs) == 3


def test_a_merge_that_would_lose_an_address_is_refused(runs, monkeypatch):
    """Whatever a reader lost: then those sets are not believed, and are written again."""
    real = Files.rows
    with monkeypatch.context() as patch:
        patch.setattr(Files, "rows", lambda *asked: real(*asked).slice(1))
        removed(HERE, runs.repo)
        assert not [one for one in runs.sets().used if len(one.runs) > 1]
    assert runs.told() == runs.straight()


@pytest.mark.parametrize("wrong", ["fewer", "others"])
def test_a_merge_that_changes_addresses_itself_leaves_no_word(runs, monkeypatch, wrong):
    real = growth.put_in_order
    with monkeypatch.context() as patch:
        if wrong == "fewer":
            patch.setattr(growth, "put_in_order", lambda a, b, rows, at: real(a, b, rows.slice(1), at[1:]))
        else:
            patch.setattr(growth, "put_in_order", lambda a, b, rows, at: real(a, b, rows, at[::-1] + 1))
        with pytest.raises(NotReadBack, match="lost on the way"):
            removed(HERE, runs.repo)
    assert not [one for one in runs.sets().used if len(one.runs) > 1]
    assert runs.told() == runs.straight()


def test_addresses_that_are_not_those_of_their_hashes_are_not_merged(runs, monkeypatch):
    real = growth.address_hash
    with monkeypatch.context() as patch:
        patch.setattr(growth, "address_hash", lambda addresses: real(addresses) ^ 1)
        removed(HERE, runs.repo)
    assert not [one for one in runs.sets().used if len(one.runs) > 1]
    assert runs.told() == runs.straight()


def test_two_that_merge_at_once_do_no_harm(runs):
    (piece,) = growth.due(runs.store.uri, runs.folder, runs.names(), runs.sets())
    assert [growth.merge(piece), growth.merge(piece)] == ["", ""]
    sets = runs.sets()
    assert [len(some) for some in (sets.used, sets.idle)] == [1, 1]
    assert runs.told() == runs.straight()
    for _ in range(6):
        runs.add(2)
        assert runs.told() == runs.straight()
    assert sets.idle[0].keys | sets.used[0].keys <= runs.replaced(LATER)
    assert runs.sets().idle == ()  # not even asked


def test_a_set_replaces_none_with_a_run_that_is_not_its_own(memory_repo):
    runs = PastRuns(memory_repo)
    for _ in range(3):
        runs.add(4)
        runs.told()
    (piece,) = growth.due(runs.store.uri, runs.folder, runs.names(), runs.sets())
    growth.merge(piece)
    growth.merge(piece)  # by somebody else at once, so that this one is idle
    for _ in range(3):
        runs.add(1)
        runs.told()
    (piece,) = growth.due(runs.store.uri, runs.folder, runs.names(), runs.sets())
    assert {len(one.runs) for one in piece.sources} == {1}
    assert piece.replaces == frozenset()


@pytest.mark.parametrize("crash", [kind(number) for number in range(12) for kind in (Before, After)])
def test_killed_at_any_step_the_next_job_is_told_everything(runs, monkeypatch, crash):
    runs.add(3)
    store = stepped(runs.store, Steps(crash))
    with monkeypatch.context() as patch:
        patch.setattr(growth, "open_store", lambda _: store)
        patch.setattr(runs.repo, "store", store)
        try:
            removed(HERE, runs.repo)
        except Crash:
            pass
        else:
            assert crash.number > 5  # there were no more steps than that
    assert runs.told() == runs.straight()


@pytest.mark.parametrize("named", [False, True], ids=["by the old name", "by the hash of what it says"])
@pytest.mark.parametrize("lie", ["a run more", "a run less", "a run that is none", "files elsewhere"])
def test_a_word_that_does_not_fit_is_not_believed(merged, lie, named):
    one = several(merged)
    said = json.loads(merged.store.get(one.word))
    other = merged.add(2)
    if lie == "a run more":
        said["runs"].append(other)
    elif lie == "a run less":
        said["runs"].pop()
    elif lie == "a run that is none":
        said["runs"][0] = "x"
    else:
        said["files"][0]["key"] += "x"
    data = json.dumps(said).encode()
    merged.store.delete_many([one.word])
    word = f"{merged.folder}3-runs.{hashlib.sha256(data).hexdigest()}.json" if named else one.word
    merged.store.put(word, [data])
    sets = merged.sets()
    assert word not in {one.word for one in (*sets.used, *sets.idle, *sets.barred)}
    assert merged.told() == merged.straight()


def test_a_word_that_is_not_what_its_name_says_is_not_believed(merged):
    """It names another run, in the place of one of its own."""
    one, other = several(merged), merged.add(2)
    said = merged.store.get(one.word).replace(max(one.runs).encode(), other.encode())
    merged.store.put(one.word, [said])
    assert merged.told() == merged.straight()


# ---- what is replaced


def test_what_was_replaced_goes_and_nothing_else(merged):
    one = several(merged)
    assert merged.replaced(LATER) == merged.names() - one.keys
    merged.tidy(LATER)
    assert merged.names() == one.keys
    assert merged.told() == merged.straight()
    assert merged.replaced(LATER) == set()


def test_words_go_before_their_files(merged):
    endings = [key.rpartition(".")[2] for key in replaced_sets(merged.repo, LATER)]
    assert endings == ["json"] * 3 + ["parquet"] * 3


@pytest.mark.parametrize("which", ["word", "file"])
def test_what_was_replaced_a_moment_ago_stays_for_those_who_read_it(merged, which):
    one = several(merged)
    late = one.word if which == "word" else one.files[0].key
    assert merged.replaced(LATER) == merged.names() - one.keys
    merged.store.dated(lambda: LATER).put(late, [merged.store.get(late)])
    assert merged.replaced(LATER) <= one.keys - {late}


@pytest.mark.parametrize("how", ["resume", "forget", "damage", "lose"])
def test_what_was_replaced_stays_while_that_which_replaced_it_is_of_no_use(merged, how):
    one, run = several(merged), merged.wanted[1]
    if how in ("resume", "forget"):
        getattr(merged, how)(run)
        assert merged.replaced(LATER) == set()  # and this one, too, stays: it may be of use again
    else:
        merged.damage(one.word) if how == "damage" else merged.store.delete_many([one.files[0].key])
        assert merged.replaced(LATER) <= one.keys
    assert merged.told() == merged.straight()


def test_what_a_killed_merge_left_goes(runs, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(growth, "say", lambda *_: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            removed(HERE, runs.repo)
    (left,) = (key for key in runs.names() if "-runs" in key)
    assert runs.replaced(LATER) == {left}
    assert runs.replaced(START) == set()


def test_sets_of_runs_that_no_set_of_several_has_stay(merged):
    other = merged.add(2)
    unfinished = merged.add(2, state=RunState.SWEPT)
    merged.told()
    merged.resume(unfinished)
    merged.store.put(f"{merged.folder}notes.json", [b"mine"])
    merged.store.put(f"{merged.folder}8-runs-notes.parquet", [b"mine"])
    gone = merged.replaced(LATER)
    assert not [key for key in gone if other in key or unfinished in key or "notes" in key]
    assert gone


def test_a_word_cannot_have_anything_else_removed(merged):
    one = several(merged)
    merged.store.put(f"{merged.repo.prefix}branches/b/x", [b"live"])
    others = [f"{merged.repo.prefix}branches/b/x", "branches/b/x", f"{merged.folder}../x"]
    say(merged.store, merged.folder, one.runs, one.files, frozenset(others))
    gone = merged.replaced(LATER)
    assert gone
    assert all(OWN.fullmatch(key.removeprefix(merged.repo.prefix)) for key in gone)
    assert gone < merged.names()
