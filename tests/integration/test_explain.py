"""Why an object is kept or was removed: every verdict, every kind of holder, and that a plan says the same."""

import json
import random
import shutil
import uuid
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from desilt.cli.explain import answer
from desilt.domain.entry import AddressType, Entry
from desilt.errors import BadRequest, NotFound
from desilt.executors.executor import HERE
from desilt.jobs.explain.explain import explain
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, run
from desilt.lake import Lake, commits, schema
from desilt.lake.lake import locate
from desilt.objects import open_store
from desilt.objects.file import ObjectFile
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import State, Tombstone
from desilt.runs.steps import Action
from desilt.sstable.values import decode_entry
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import add_hold, days, put, seal, stage
from words import collect as take

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTLES = timedelta(hours=24, minutes=10)
SURE = Limits(max_share=1.0, confirm=True)
DELETED = "d0000000000000000000"
STRANGE = ["a\tb", "\x1b[31mred", "ä/ö 🦆", "branches/x", "s3://bucket/key", "/rooted", "a//b/../c", " ", "%41", "it's"]


@pytest.fixture
def name(uri):
    """Of the repository, for commands."""
    return uri


def collect(repo, **ask):
    put(repo, "main", "kept")  # a run refuses to remove everything
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask), SURE)[-1]


def lost(repo, path="lost"):
    """The address of an upload that nothing holds."""
    address = put(repo, "main", path)
    repo.reset("main", path=path)
    return address


def only(repo, wanted, **more):
    (one,) = explain(repo, wanted, **more)
    return one


def turned(repo, address, state, *, at):
    with repo.database.write() as tx:
        run_id = tombstones.recorded(tx, repo.uid, [address])[address].run
        tombstones.lift(tx, repo.uid, run_id, [address], state, at=at)


def ref_names(one):
    return [(ref.kind, ref.name, ref.shows) for ref in one.refs]


# ---- what holds it


def test_committed_names_commits_paths_and_the_refs_that_reach_them(repo):
    address = put(repo, "main", "a")
    repo.copy("main", "a", "main", "b")
    first = repo.commit("main", "one", committer="ana")
    repo.create_tag("v1", "main")
    repo.create_branch("dev", "main")
    repo.create_branch("other", "main~1")
    repo.remove("main", "a")
    second = repo.commit("main", "two")
    repo.remove("main", "b")
    repo.commit("main", "three")
    days(repo, 9)
    one = only(repo, address)
    assert (one.verdict, one.exists, one.size, one.modified_at) == ("committed", True, 1, START)
    assert (one.branch, one.named_at, one.until) == ("main", START, None)
    assert [(held.id, held.paths, held.reachable) for held in one.commits] == [
        (first.id, ("a", "b"), True),
        (second.id, ("b",), True),
    ]
    assert (one.commits[0].message, one.commits[0].committer, one.commits[0].created_at) == (
        "one",
        "ana",
        first.created_at,
    )
    assert one.paths == ("a", "b")
    assert ref_names(one) == [("branch", "dev", True), ("tag", "v1", True), ("branch", "main", False)]
    assert answer(one).endswith("is kept: 2 commits hold it, reachable from dev, tag v1, main.")


def test_commits_that_no_ref_reaches_are_said_to_be_so(repo):
    repo.create_branch("dev", "main")
    address = put(repo, "dev", "a")
    detached = repo.commit("dev", "on a branch that goes")
    repo.delete_branch("dev")
    days(repo, 9)
    one = only(repo, address)
    assert (one.verdict, one.refs, one.staged) == ("committed", (), ())
    assert [(held.id, held.reachable) for held in one.commits] == [(detached.id, False)]
    assert one.branch == address.split("/")[1]
    assert answer(one).endswith("1 commit holds it, though no ref reaches it; `desilt collect` would take it.")


def test_reachable_commits_are_counted_apart_from_those_that_are_not(repo):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    repo.create_branch("dev", "main")
    put(repo, "dev", "b")
    repo.commit("dev", "two")
    repo.delete_branch("dev")
    assert answer(only(repo, address)).endswith("2 commits hold it, 1 of them reachable from main.")


def test_what_is_merged_is_reached_from_where_it_was_merged_to(repo):
    repo.create_branch("dev", "main")
    address = put(repo, "dev", "a")
    repo.commit("dev", "one")
    repo.merge("dev", "main")
    repo.delete_branch("dev")
    one = only(repo, address)
    assert ref_names(one) == [("branch", "main", True)]
    assert [held.reachable for held in one.commits] == [True, True]


def test_staged_names_branch_and_path_hidden_ones_too(repo):
    address = put(repo, "main", "a")
    repo.copy("main", "a", "main", "b")
    seal(repo, "main")
    put(repo, "main", "a", "newer")
    days(repo, 9)
    one = only(repo, address)
    assert one.verdict == "staged"
    assert [asdict(area) for area in one.staged] == [
        {"branch": "main", "path": "a", "hidden": True},
        {"branch": "main", "path": "b", "hidden": False},
    ]
    assert one.paths == ("a", "b")
    assert "it is staged on main as 'a', main as 'b'" in answer(one)


def test_the_default_branch_is_told_first(repo):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    repo.create_branch("alpha", "main")
    assert ref_names(only(repo, address)) == [("branch", "main", True), ("branch", "alpha", True)]


def test_a_commit_that_is_no_more_holds_nothing_though_its_ranges_are_cached(repo):
    kept = put(repo, "main", "a")
    repo.commit("main", "one")
    repo.create_branch("dev", "main~1")
    address = put(repo, "dev", "b")
    commit = repo.commit("dev", "two")
    repo.delete_branch("dev")
    assert only(repo, address).verdict == "committed"
    take(repo, commit)
    assert (only(repo, address).verdict, only(repo, kept).verdict) == ("young", "committed")
    with pytest.raises(NotFound):
        explain(repo, "b")


def test_a_removal_hides_a_staged_entry_as_well(repo):
    address = put(repo, "main", "a")
    seal(repo, "main")
    repo.remove("main", "a")
    assert [area.hidden for area in only(repo, address).staged] == [True]


def test_committed_comes_before_staged_and_both_are_told(repo):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    repo.copy("main", "a", "main", "b")
    one = only(repo, address)
    assert (one.verdict, len(one.commits), len(one.staged)) == ("committed", 1, 1)


def test_an_upload_under_way_is_held_by_its_ticket_until_it_expires(repo):
    handed = repo.physical_address("main", "in/coming")
    address = handed.ticket.address
    waiting = only(repo, address)
    assert (waiting.verdict, waiting.exists, waiting.ticket.open) == ("missing", False, True)
    assert "an upload under way may write it" in answer(waiting)
    repo.store.put(repo.prefix + address, [b"x"])
    one = only(repo, address)
    until = START + timedelta(hours=24)
    assert (one.verdict, one.until, one.ticket.path, one.ticket.branch) == ("ticket", until, "in/coming", "main")
    assert only(repo, "in/coming").places == ("upload",)
    days(repo, 2)
    late = only(repo, address)
    assert (late.verdict, late.until, late.ticket.open) == ("unreferenced", None, False)


def test_an_upload_that_never_came_is_told_while_its_ticket_is_on_record(repo):
    address = repo.physical_address("main", "a").ticket.address
    days(repo, 2)
    assert "never came" in answer(only(repo, address))


def test_an_entry_with_a_whole_address_holds_what_it_leads_to(repo):
    address = put(repo, "main", "a")
    entry = Entry("a", f"odd://{repo.prefix}{address}", 1, "x", 0, address_type=AddressType.FULL)
    stage(repo, "main", entry)  # past the check that refuses this
    assert (only(repo, address).verdict, only(repo, "a").address) == ("staged", address)
    repo.commit("main", "one")
    assert (only(repo, address).verdict, only(repo, "a").address) == ("committed", address)


def test_an_entry_whose_address_only_ends_alike_holds_something_else(repo):
    address = lost(repo)
    entry = Entry("a", f"elsewhere/{repo.prefix}{address}", 1, "x", 0, address_type=AddressType.RELATIVE)
    stage(repo, "main", entry)
    assert (only(repo, address).verdict, only(repo, address).staged) == ("young", ())


# ---- what nothing holds


def test_young_until_every_clock_calls_it_old(repo):
    address = lost(repo)
    assert only(repo, address, now=START + timedelta(days=2)).verdict == "dropped"  # by the clock, that was just now
    days(repo, 2)
    one = only(repo, address, now=START)
    assert (one.verdict, one.until) == ("young", START + SETTLES)
    assert only(repo, address, now=one.until).verdict == "young"
    after = only(repo, address, now=one.until + timedelta(microseconds=1))
    assert (after.verdict, after.until) == ("unreferenced", None)
    assert "would be removed by the next run" in answer(after)


def test_an_object_that_was_written_again_is_young_by_the_stores_clock(repo):
    address = lost(repo)
    days(repo, 9)
    repo.store.put(repo.prefix + address, [b"again"])
    one = only(repo, address)
    assert (one.verdict, one.until) == ("young", START + timedelta(days=9) + SETTLES)


def test_foreign_objects_are_explained_by_address_and_uri(repo):
    repo.store.put(f"{repo.prefix}branches/nested/thing%20", [b"x"])
    days(repo, 9)
    for wanted in ("branches/nested/thing%20", repo.core.uri + "branches/nested/thing%20"):
        one = only(repo, wanted)
        assert (one.verdict, one.address) == ("foreign", "branches/nested/thing%20")
    assert "not ours to remove" in answer(one)


def test_an_object_is_not_taken_for_one_whose_name_goes_on(repo):
    repo.store.put(f"{repo.prefix}branches/nested/thing2", [b"x"])
    with pytest.raises(NotFound):
        explain(repo, "branches/nested/thing")


def test_the_leftover_of_a_crash_is_explained_like_an_object(repo):
    leftover = lost(repo).rsplit("/", 1)[0] + "/0011223344556677.partial"
    repo.store.put(repo.prefix + leftover, [b"half"])
    assert only(repo, leftover).verdict == "young"
    days(repo, 9)
    one = only(repo, leftover)
    assert (one.verdict, one.named_at, one.branch) == ("unreferenced", None, "main")


def test_what_no_run_looks_at_is_outside(repo):
    put(repo, "main", "a")
    repo.commit("main", "one")
    repo.stage("main", "far", "s3://elsewhere/key", size=1, checksum="c")
    far = only(repo, "far")
    assert (far.verdict, far.exists, far.address) == ("outside", None, "s3://elsewhere/key")
    assert [(area.branch, area.path) for area in far.staged] == [("main", "far")]
    metadata = next(key for batch in repo.store.list(f"{repo.prefix}_lakefs/") for key in batch["key"].to_pylist())
    assert only(repo, repo.core.uri + metadata.removeprefix(repo.prefix)).verdict == "outside"


def test_an_object_that_is_missing_is_not_called_removed(repo):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    Path(repo.store.root, repo.prefix + address).unlink()
    one = only(repo, address)
    assert (one.verdict, one.exists, one.size, one.removal) == ("missing", False, None, None)
    assert "1 commit holds it, reachable from main, and no run removed it; see `desilt fsck`" in answer(one)


# ---- what runs did


def test_a_removed_object_names_its_run_rule_and_time(repo):
    address = lost(repo)
    days(repo, 3)
    report = collect(repo)
    days(repo, 1)
    one = only(repo, address)
    assert (one.verdict, one.exists) == ("removed", False)
    told = one.removal
    assert (told.run, told.rule, told.at, told.state) == (
        *(report.run, "unreferenced", START + timedelta(days=3)),
        State.REMOVED,
    )
    assert (told.job, told.action, told.run_state, told.size) == ("gc", "delete", "swept", 1)
    assert (told.policy, told.in_trash) == ("older than 1 day, 0:10:00", False)
    assert answer(one).endswith(f"was removed by run {report.run} on 2026-01-04 00:00:00 UTC by rule 'unreferenced'.")


def test_a_trashed_object_is_in_the_trash_and_restored_it_is_kept_for_a_while(repo):
    address = lost(repo)
    days(repo, 3)
    report = collect(repo, action=Action.TRASH)
    one = only(repo, address)
    assert (one.verdict, one.removal.state, one.removal.in_trash) == ("removed", State.TRASHED, True)
    assert f"was moved to the trash by run {report.run}" in answer(one)
    trash = Path(repo.store.root, repo.prefix, "_desilt/trash", report.run, address)
    place = Path(repo.store.root, repo.prefix + address)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(trash, place)
    days(repo, 1)
    turned(repo, address, State.RESTORED, at=repo.clock())
    back = only(repo, address)
    assert (back.verdict, back.until) == ("restored", repo.clock() + SETTLES)
    assert (back.removal.state, back.removal.in_trash) == (State.RESTORED, False)
    assert "and restored on 2026-01-05 00:00:00 UTC" in answer(back)
    days(repo, 2)
    assert only(repo, address).verdict == "unreferenced"
    place.unlink()
    assert only(repo, address).verdict == "missing"


@pytest.mark.parametrize(("state", "words"), [(State.FAILED, "the store failed"), (State.CONDEMNED, "was cut off")])
def test_what_a_run_could_not_remove_goes_with_the_next_and_the_try_is_told(repo, state, words):
    address = lost(repo)
    days(repo, 3)
    collect(repo)
    repo.store.put(repo.prefix + address, [b"x"])
    turned(repo, address, state, at=repo.clock())
    days(repo, 3)
    one = only(repo, address)
    assert (one.verdict, one.exists, one.removal.state) == ("unreferenced", True, state)
    assert "would be removed by the next run" in answer(one)
    assert words in answer(one)


@pytest.mark.parametrize("state", State)
def test_whatever_became_of_it_there_are_words_for_it(repo, state):
    address = lost(repo)
    days(repo, 3)
    report = collect(repo, action=Action.TRASH)
    turned(repo, address, state, at=repo.clock())
    who = "by hard delete" if state is State.DISCARDED else f"run {report.run}"  # nobody's run has it yet
    assert who in answer(only(repo, address))


def test_an_object_that_was_gone_before_its_run_is_told_so(repo):
    address = lost(repo)
    days(repo, 3)
    collect(repo)
    turned(repo, address, State.GONE, at=repo.clock())
    assert "was already gone when run" in answer(only(repo, address))


def test_a_removed_object_that_commits_still_list_is_removed_and_they_are_told(repo):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    with repo.database.write() as tx:  # as a job will, for which commits are not enough
        tombstones.condemn(tx, repo.uid, [Tombstone(address, "some-run", "expired", START, state=State.REMOVED)])
    there = only(repo, address)
    assert there.verdict == "committed"
    assert "it was removed by run some-run" in answer(there)
    Path(repo.store.root, repo.prefix + address).unlink()
    for wanted in (address, "a"):
        one = only(repo, wanted)
        assert (one.verdict, len(one.commits), one.removal.job) == ("removed", 1, "")
    assert "1 commit holds it, reachable from main, and reads as gone there" in answer(one)


# ---- by path


def test_a_path_means_every_object_it_has_on_branches_and_tags(repo):
    old = put(repo, "main", "a", "old")
    repo.commit("main", "one")
    repo.create_tag("v1", "main")
    repo.create_branch("dev", "main")
    new = put(repo, "main", "a", "new")
    repo.commit("main", "two")
    hidden = put(repo, "dev", "a", "hidden")
    seal(repo, "dev")
    staged = put(repo, "dev", "a", "staged")
    assert {one.address: one.places for one in explain(repo, "a")} == {
        staged: ("dev (staged)",),
        hidden: ("dev (staged, hidden)",),
        old: ("dev", "tag v1"),
        new: ("main",),
    }


def test_a_ref_narrows_a_path_to_what_it_is_there(repo):
    old = put(repo, "main", "a", "old")
    first = repo.commit("main", "one")
    new = put(repo, "main", "a", "new")
    assert only(repo, "a", ref="main").address == new
    assert only(repo, "a", ref="main@").address == old
    assert only(repo, "a", ref=first.id[:8]).address == old
    with pytest.raises(NotFound, match="without --ref"):
        explain(repo, old, ref="main")
    with pytest.raises(NotFound, match="desilt lake ls"):
        explain(repo, "b", ref="main")
    with pytest.raises(NotFound, match="no ref 'zz'"):
        explain(repo, "a", ref="zz")


def test_a_deleted_path_is_found_in_history_even_where_no_ref_reaches_it(repo):
    first = put(repo, "main", "a", "1")
    repo.commit("main", "one")
    repo.create_branch("dev", "main")
    second = put(repo, "dev", "a", "2")
    repo.commit("dev", "two")
    repo.delete_branch("dev")
    assert [one.address for one in explain(repo, "a")] == [first]
    repo.remove("main", "a")
    repo.commit("main", "three")
    found = {one.address: one for one in explain(repo, "a")}
    assert found.keys() == {first, second}
    assert {one.places for one in found.values()} == {("history",)}
    assert [found[second].refs, len(found[second].commits)] == [(), 1]


@pytest.mark.parametrize("path", STRANGE)
def test_odd_names_are_explained_and_a_terminal_is_not_sent_them(repo, name, cli, path):
    address = put(repo, "main", path)
    assert only(repo, path).address == address
    repo.commit("main", f"with {path}")
    one = only(repo, path)
    assert (one.address, one.paths) == (address, (path,))
    code, out, _ = cli("explain", name, "--", path)
    assert code == 0
    assert all(character.isprintable() for character in out.replace("\n", ""))
    repo.remove("main", path)
    repo.commit("main", "gone")
    assert only(repo, path).address == address


def test_a_path_that_looks_like_an_address_is_a_path_where_a_ref_says_so(repo):
    other = put(repo, "main", "a")
    address = put(repo, "main", other)
    assert only(repo, other).address == other
    assert only(repo, other, ref="main").address == address


def test_whole_uris_inside_the_repository_are_addresses(repo):
    address = put(repo, "main", "a")
    file = f"{repo.store.root}/{repo.prefix}{address}"
    for wanted in (repo.core.uri + address, file, f"file://{file}", f"file://localhost{file}", f"lake://{file}"):
        assert only(repo, wanted).address == address
    with pytest.raises(NotFound):
        explain(repo, f"s3://backup/{repo.prefix}{address}")


def test_a_uri_with_percent_signs_for_its_directory_is_found(tmp_path):
    lake = Lake.create(locate(str(tmp_path / "my lake")))
    repo = lake.create_repository("demo", clock_at=START)
    address = put(repo, "main", "a")
    for root in (f"{tmp_path}/my lake", f"file://{tmp_path}/my%20lake", f"file://{tmp_path}/my lake"):
        assert only(repo, f"{root}/{repo.prefix}{address}").address == address
    lake.close()


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ("nowhere", NotFound),
        (f"branches/{DELETED}/00000000000000_{DELETED}/{DELETED}", NotFound),
        ("branches/", NotFound),
        ("branches/../../x", NotFound),
        ("s3://elsewhere/key", NotFound),
        ("", BadRequest),
        ("a\0b", NotFound),
        ("\udcff", NotFound),
        ("branches/\udcff", NotFound),
        ("\ud800", BadRequest),
        ("x" * 1025, NotFound),
    ],
)
def test_bad_input_is_refused_in_one_line(repo, wanted, error):
    put(repo, "main", "a")
    with pytest.raises(error) as told:
        explain(repo, wanted)
    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize("tail", ["", "..", "branches//x", "branches/../../x", "branches/\udcff"])
def test_a_uri_that_is_no_key_is_a_bad_request(repo, tail):
    with pytest.raises(BadRequest):
        explain(repo, repo.core.uri + tail)


# ---- the cache


def cache(repo, ending):
    keys = [key for batch in repo.store.list(f"{repo.prefix}_desilt/ranges/") for key in batch["key"].to_pylist()]
    return [key for key in keys if key.endswith(ending)]


def test_nothing_is_left_behind_but_the_cache(repo):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    before, generation = oracle.stored(repo), repo.generation()
    only(repo, address)
    assert (oracle.stored(repo), repo.generation()) == (before, generation)
    folders = [f"{repo.prefix}_desilt/{name}/" for name in ("journal", "ranges")]  # the first was there before
    assert repo.store.folders(f"{repo.prefix}_desilt/") == folders


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "sidecar"])
def test_a_damaged_cache_file_is_made_again_and_never_trusted(repo, damage):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    expected = only(repo, address)
    repo.remove("main", "a")
    repo.commit("main", "two")
    assert (only(repo, "a").commits, only(repo, address).commits) == (expected.commits, expected.commits)
    (key,) = cache(repo, ".json" if damage == "sidecar" else ".parquet")
    raw = bytearray(repo.store.get(key))
    for at in range(len(raw) // 3, 2 * len(raw) // 3):
        raw[at] ^= 0x55
    repo.store.put(key, [{"cut": bytes(raw[:-30]), "flip": bytes(raw), "empty": b"", "sidecar": b'{"ran'}[damage]])
    assert only(repo, address).commits == only(repo, "a").commits == expected.commits


# ---- the command


def test_the_first_line_is_the_answer_and_the_rest_its_evidence(repo, name, cli):
    address = put(repo, "main", "a")
    repo.commit("main", "a reason")
    code, out, err = cli("explain", name, "a")
    first, *rest = out.splitlines()
    assert (code, err) == (0, "")
    assert first == f"{address} is kept: 1 commit holds it, reachable from main."
    facts = [line[2:].split(None, 1) for line in rest]
    assert ["object", "1 B, modified 2026-01-01 00:00:00, named 2026-01-01 00:00:00"] in facts
    assert ["verdict", "committed"] in facts
    assert ["ref", "main: its last commit has it"] in facts
    assert any(fact[0] == "commit" and fact[1].endswith("2026-01-01 00:00:01  a reason") for fact in facts)


def test_the_ledger_is_quoted(repo, name, cli):
    address = lost(repo)
    days(repo, 3)
    report = collect(repo, action=Action.TRASH)
    _, out, _ = cli("explain", name, address)
    assert f"run {report.run}: gc (trash, older than 1 day, 0:10:00), begun 2026-01-04 00:00:00, swept" in out
    assert "1 B, still in the trash" in out


def test_many_holders_are_cut_and_counted(repo, name, cli):
    address = put(repo, "main", "a")
    for number in range(12):
        repo.copy("main", "a", "main", f"copy{number:02d}")
        days(repo, 1)
        repo.commit("main", f"message {number}")
        repo.create_tag(f"v{number:02d}", "main")
    _, out, _ = cli("explain", name, address)
    assert "12 commits hold it, reachable from main, tag v00, tag v01 and 10 more." in out
    assert "… and 3 more; --json lists all" in out  # 13 paths, 13 refs
    assert "… 2 more of 12; the last:" in out
    assert [number for number in range(12) if f"message {number}\n" in out] == [*range(9), 11]
    row = json.loads(cli("explain", name, address, "--json")[1])
    assert [len(row[kind]) for kind in ("paths", "refs", "commits")] == [13, 13, 12]


def test_json_is_one_object_a_line_with_everything(repo, name, cli):
    put(repo, "main", "a")
    commit = repo.commit("main", "one", committer="ana")
    put(repo, "main", "a", "newer")
    first, second = map(json.loads, cli("explain", name, "a", "--json")[1].splitlines())
    assert list(first) == [
        *("answer", "address", "uri", "verdict", "until", "places", "exists", "size", "modified_at", "named_at"),
        *("branch", "paths", "refs", "commits", "staged", "ticket", "dropped", "orders", "removal"),
    ]
    assert (first["verdict"], first["staged"]) == ("staged", [{"branch": "main", "path": "a", "hidden": False}])
    at = "2026-01-01T00:00:00.000000Z"
    made = f"{commit.created_at:%Y-%m-%dT%H:%M:%S.%fZ}"
    told = {
        "id": commit.id,
        "created_at": made,
        "committer": "ana",
        "message": "one",
        "paths": ["a"],
        "reachable": True,
    }
    assert second["commits"] == [told]
    assert second["refs"] == [{"kind": "branch", "name": "main", "shows": True}]
    assert (second["modified_at"], second["ticket"], second["removal"]) == (at, None, None)


def test_json_of_a_removed_object_names_its_run(repo, name, cli):
    address = lost(repo)
    days(repo, 3)
    report = collect(repo)
    row = json.loads(cli("explain", name, address, "--json")[1])
    assert (row["verdict"], row["removal"]["run"], row["removal"]["state"]) == ("removed", report.run, "removed")
    assert row["removal"]["at"] == "2026-01-04T00:00:00.000000Z"


def test_errors_are_one_line_and_tell_a_way_out(repo, name, cli):
    assert cli("explain", name, "nowhere") == (
        *(1, ""),
        f"error: there is no object 'nowhere'; no branch, tag, commit or run knows it; "
        f"give a path, or an address below {repo.core.uri}\n",
    )
    assert cli("explain", name)[0] == cli("explain", name, "")[0] == 2


def test_on_postgres_and_s3_the_same_is_told(s3_server, fresh_postgres_url, monkeypatch):
    for variable, value in s3_server.env.items():
        monkeypatch.setenv(variable, value)
    bucket = s3_server.create_bucket(f"explain-{uuid.uuid4().hex[:8]}")
    lake = Lake.create(locate(bucket, db=fresh_postgres_url()))
    repo = lake.create_repository("demo")
    address = put(repo, "main", "100%_\N{DUCK}")
    assert only(repo, address).verdict == "staged"
    repo.commit("main", "one")
    gone = lost(repo)
    one = only(repo, "100%_\N{DUCK}")
    assert (one.address, one.verdict, one.size, one.paths) == (address, "committed", 1, ("100%_\N{DUCK}",))
    for form in (repo.core.uri, repo.core.uri.replace("s3://", "s3a://")):
        assert only(repo, form + gone).verdict == "young"
    with pytest.raises(NotFound):
        explain(repo, gone[:-1] + ("0" if gone[-1] != "0" else "1"))
    lake.close()


# ---- the same as a plan, and as the slow and obvious way


def removals(repo, report):
    folder = f"{repo.prefix}_desilt/runs/{report.job}/{report.run}/plan/"
    keys = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist()]
    return {row["address"] for key in keys for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()}


def holding_commits(repo):
    """By address: which commits have it, under which paths, read entry by entry."""
    with repo.database.read() as tx:
        every = list(commits.every(tx, repo.uid))
    found = {}
    for commit in every:
        for listed in repo.ranges.metarange(commit.metarange):
            records = repo.ranges.read(listed)
            for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True):
                found.setdefault(decode_entry(key, value).address, {}).setdefault(commit.id, set()).add(key.decode())
    return found


def random_history(repo, chance, steps):
    """Anything people do to a lake, and what strangers leave in it."""
    paths = [f"p{number}" for number in range(12)]
    for step in steps:
        branch = chance.choice(repo.branches()).name
        path = chance.choice(paths)
        match chance.randrange(16):
            case 0 | 1 | 2 | 3 | 4:
                put(repo, branch, path)
            case 5 | 6:
                repo.commit(branch, f"step {step}", allow_empty=True)
            case 7:
                put(repo, branch, path)
                seal(repo, branch)
            case 8 if any(repo.list(branch)):
                repo.copy(branch, next(repo.list(branch)).path, branch, path)
            case 9 if any(repo.list(branch)):
                repo.remove(branch, next(repo.list(branch)).path)
            case 10:
                repo.reset(branch)
            case 11:
                repo.create_branch(f"b{step}", chance.choice(list(repo.log(branch))).id)
            case 12 if branch != "main":
                repo.delete_branch(branch, force=True)
            case 13:
                repo.create_tag(f"t{step}", branch)
            case 14:
                handed = repo.physical_address(branch, path)
                repo.store.put(repo.prefix + handed.ticket.address, [b"direct"])
                if chance.random() < 0.3:
                    repo.link(branch, path, handed.token)
            case 15:
                repo.store.put(f"{repo.prefix}branches/stranger/{step}", [b"x"])
        repo.set_clock(repo.clock() + timedelta(hours=chance.choice([0, 0, 1, 5])))


def restore_some(repo, addresses):
    """As a restore leaves them."""
    for address in addresses:
        repo.store.put(repo.prefix + address, [b"x"])
        turned(repo, address, State.RESTORED, at=repo.clock())


@pytest.mark.parametrize("seed", range(4))
def test_every_object_gets_the_verdict_of_a_plan_and_the_holders_it_has(tmp_path, seed):
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    repo = Lake(database, store, raggedness=3).create_repository("model", clock_at=START)  # so ranges are many
    chance = random.Random(seed)
    random_history(repo, chance, range(120))
    if seed % 2:
        days(repo, 2)
        collect(repo, action=Action.TRASH)
        with repo.database.read() as tx:
            trashed = [str(row[0]) for row in tx.rows("SELECT address FROM tombstones ORDER BY address")]
        chance.shuffle(trashed)
        restore_some(repo, trashed[::3])
        random_history(repo, chance, range(120, 180))
        restore_some(repo, trashed[1::3])
        repo.set_clock(repo.clock() + timedelta(hours=chance.choice([1, 20])))
    before = set(oracle.stored(repo))
    told = {address: only(repo, address) for address in before}
    report = plan(uncommitted.job, repo, HERE, uncommitted.job.ask(full=True))
    assert {address for address, one in told.items() if one.verdict == "unreferenced"} == removals(repo, report)
    counts = Counter(one.verdict for one in told.values())
    counts.pop("unreferenced", None)
    assert counts == {reason: amount.objects for reason, amount in report.keep.items()}
    expected = holding_commits(repo)
    histories = {("branch", one.name): {c.id for c in repo.log(one.name)} for one in repo.branches()}
    histories |= {("tag", one.name): {c.id for c in repo.log(one.name)} for one in repo.tags()}
    reached = set().union(*histories.values())
    staged = oracle.staged(repo)
    for address, one in told.items():
        held = expected.get(address, {})
        assert {commit.id: set(commit.paths) for commit in one.commits} == held
        assert {commit.id for commit in one.commits if commit.reachable} == held.keys() & reached
        assert {(ref.kind, ref.name) for ref in one.refs} == {
            ref for ref, ids in histories.items() if ids & held.keys()
        }
        assert bool(one.staged) == (address in staged)
    database.close()


def test_an_order_to_keep_is_told(repo):
    address = lost(repo)
    add_hold(repo, Hold("h1", HoldKind.ADDRESS, address, "audit", repo.clock(), None))
    days(repo, 5)
    one = only(repo, address)
    assert (one.verdict, [hold.id for hold in one.orders]) == ("held", ["h1"])
