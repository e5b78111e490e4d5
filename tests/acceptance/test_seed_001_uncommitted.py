"""Seed 001, uncommitted garbage: what it asks of the lake, its two flows and its limits, in its order, swept for real.

The seed's "GC commit" is called a staging manifest here. As written, its optimised
run removes what is in use, and leaves garbage behind for ever: the five traps, (a) to
(e), are histories on which it does. Each is swept here through optimised runs, and
judged by the naive oracle.
"""

import re
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from desilt.clock import ManualClock
from desilt.domain import address as addresses
from desilt.domain.expiry import Expiry
from desilt.errors import BadRequest, BadTicket
from desilt.executors.executor import HERE
from desilt.inventory import listing as inventory
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.gc.watermark import read_saved
from desilt.jobs.runner import plan, run
from desilt.lake import Lake, partitions, staging
from desilt.lake.lake import locate
from desilt.lake.manifest import ranges_of
from desilt.objects.file import ObjectFile
from desilt.sstable.values import decode_entry
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import collecting, contents, later, put, read, stage, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
TICKET = timedelta(hours=24)
# ---- words


@pytest.fixture
def lake(place):
    opened = Lake.create(locate(str(place / "lake")))
    yield opened
    opened.close()


@pytest.fixture
def repo(lake):
    return lake.create_repository("my-repo", clock_at=START)


def committed(repo, branch, path):
    address = put(repo, branch, path)
    repo.commit(branch, path)
    return address


def lost(repo, branch, path):
    """Uploaded, and reset."""
    address = put(repo, branch, path)
    repo.reset(branch, path=path)
    return address


def handed_out(repo, branch, path):
    return repo.physical_address(branch, path)


def arrives(repo, handed):
    """What was sent to an address that was handed out is there; the lake does not hear of it."""
    repo.store.put(repo.prefix + handed.ticket.address, [b"sent directly"])
    return handed.ticket.address


def in_use(repo):
    return oracle.committed(repo) | oracle.staged(repo) | oracle.ticketed(repo, repo.clock())


def swept(repo, *, clean=False, **ask):
    """One run: what it removed, which is all that the oracle names; nothing that is in use is touched by it."""
    before, wanted = stored(repo), oracle.collectable(repo, repo.clock())
    used = in_use(repo) & before
    known = read_saved(repo, uncommitted.JOB)
    assert bool(known.run) is not clean  # else it is no optimised run
    report = run(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask), SURE)[-1]
    removed = before - stored(repo)
    assert removed == wanted
    assert used <= stored(repo)
    assert repo.tombstones(sorted(used)) == {}
    assert (report.swept.removed, report.swept.failed) == (len(removed), 0)
    assert looked_at(repo, report.run) == {one for one in before if is_newer(one, known.settled)}
    assert (
        plan(uncommitted.job, repo, HERE, uncommitted.job.ask(full=True)).removed.objects == 0
    )  # as a clean run would say
    return removed


def is_newer(address, settled):
    """Whether it is in a partition of its branch that sorts before what was read last."""
    _, branch, partition, _ = address.split("/")
    return branch not in settled or partition < settled[branch]


def rows_of(repo, folder):
    keys = [key for batch in repo.store.list(repo.prefix + folder) for key in batch["key"].to_pylist()]
    return [row for key in keys for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()]


def looked_at(repo, run_id):
    """What a run has listed."""
    return {row["folder"] + row["name"] for row in rows_of(repo, f"_desilt/runs/gc/{run_id}/inputs/inventory/")}


def pending(repo):
    """What the last run left to the next to look at again, though it lists it no more."""
    files = [file.key for file in read_saved(repo, uncommitted.JOB).pending]
    rows = [row for key in files for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()]
    return {row["folder"] + row["name"] for row in rows}


# ---- Objects Path Conventions


def test_an_objects_path_is_its_repository_its_branch_a_partition_and_a_name_of_its_own(repo):
    repo.create_branch("test-branch", "main")
    (branch,) = [one for one in repo.branches() if one.name == "test-branch"]
    first, second = put(repo, "test-branch", "file1"), put(repo, "test-branch", "file1")
    (key, _) = [key for batch in repo.store.list() for key in batch["key"].to_pylist() if branch.uid in key]
    assert repo.prefix == f"repos/{repo.uid}/"
    assert key in (repo.prefix + first, repo.prefix + second)
    assert re.fullmatch(rf"branches/{branch.uid}/[0-9]{{14}}_[0-9a-v]{{20}}/[0-9a-v]{{20}}", first)
    assert first.rpartition("/")[0] == second.rpartition("/")[0]
    assert first != second


def test_a_partition_names_the_time_downwards_so_the_newest_lists_first(repo):
    made = []
    for _ in range(4):
        made.append(put(repo, "main", "a").split("/")[2])
        later(repo, hours=2)
    (branch,) = repo.branches()
    listed = [part.split("/")[-2] for part in inventory.partitions(repo.store, repo.prefix + "branches/", branch.uid)]
    assert listed == made[::-1]


def test_a_new_partition_is_opened_each_hour_and_for_every_so_many_objects(repo, monkeypatch):
    monkeypatch.setattr(addresses, "PARTITION_OBJECTS", 24)  # 50,000
    monkeypatch.setattr(partitions, "MOST_SLOTS", 8)

    def used(count):
        return [put(repo, "main", f"{number}").split("/")[2] for number in range(count)]

    filled = used(100)
    assert len(set(filled)) >= 4
    assert max(map(filled.count, filled)) <= 24
    later(repo, hours=2)
    (opened,) = used(1)
    later(repo, minutes=59)
    assert used(1) == [opened]
    later(repo, minutes=1)
    assert used(1) != [opened]


def test_a_branch_made_again_under_its_name_has_another_path(repo):
    """Else what was uploaded to the first would be taken for the second's."""
    repo.create_branch("dev", "main")
    first = put(repo, "dev", "a")
    repo.delete_branch("dev", force=True)
    repo.create_branch("dev", "main")
    assert put(repo, "dev", "a").split("/")[1] != first.split("/")[1]


# ---- StageObject


def test_only_an_address_outside_of_the_lake_is_staged_and_no_run_removes_it(repo, place):
    inside = f"{repo.store.uri}/{repo.prefix}{put(repo, 'main', 'mine')}"
    with pytest.raises(BadRequest, match="inside the lake"):
        repo.stage("main", "stolen", inside, size=1, checksum="")
    outside = place / "outside"
    outside.write_bytes(b"theirs")
    repo.stage("main", "theirs", outside.as_uri(), size=6, checksum="")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    repo.reset("main")
    later(repo, days=5)
    assert len(swept(repo)) == 1  # mine
    assert outside.read_bytes() == b"theirs"


# ---- Get and Link PhysicalAddress


def test_a_token_comes_with_an_address_and_is_good_once_and_until_it_expires(repo):
    handed = handed_out(repo, "main", "a")
    arrives(repo, handed)
    repo.link("main", "a", handed.token)
    with pytest.raises(BadTicket, match="was used already"):
        repo.link("main", "a", handed.token)
    late = handed_out(repo, "main", "b")
    arrives(repo, late)
    later(repo, hours=24)
    with pytest.raises(BadTicket, match="expired"):
        repo.link("main", "b", late.token)
    with pytest.raises(BadTicket, match="altered"):
        repo.link("main", "b", late.token[:-2])
    assert contents(repo, "main") == {"a": "sent directly"}


def test_what_waits_for_its_link_is_kept_and_what_was_not_linked_in_time_is_removed_one_day(repo):
    waits, forgotten = handed_out(repo, "main", "a"), handed_out(repo, "main", "b")
    arrives(repo, waits)
    address = arrives(repo, forgotten)
    later(repo, hours=23)
    assert swept(repo, clean=True) == set()
    repo.link("main", "a", waits.token)
    later(repo, hours=2)
    assert swept(repo) == {address}
    assert read(repo, "main", "a") == "sent directly"


# ---- CopyObject


def test_a_copy_in_a_branch_is_a_second_entry_and_one_from_elsewhere_an_object_of_its_own(repo):
    repo.create_branch("dev", "main")
    first = committed(repo, "main", "a")
    assert repo.copy("main", "a", "main", "b").address == first
    assert repo.move("main", "b", "c").address == first
    assert repo.copy("main", "a", "dev", "a").address not in (first, "")
    assert contents(repo, "main") == {"a": "x", "c": "x"}


# ---- PrepareUncommittedForGC


def test_what_is_staged_is_written_down_as_a_metarange_and_ranges(repo):
    repo.create_branch("dev", "main")
    hidden, shown, other = put(repo, "main", "a"), put(repo, "main", "b"), put(repo, "dev", "a")
    made = repo.prepare_uncommitted()
    ranges = ranges_of(repo.core)
    records = [ranges.read(one) for one in ranges.metarange(made.metarange)]
    pairs = [pair for one in records for pair in zip(one["key"].to_pylist(), one["value"].to_pylist(), strict=True)]
    assert {decode_entry(key, value).address for key, value in pairs} == {hidden, shown, other} == oracle.staged(repo)
    assert repo.prepare_uncommitted("dev").entries == 1


# ---- Flow 1: Clean Run


@pytest.fixture
def lived_in(repo):
    """A repository with something for every step of a run, and names for its objects."""
    repo.create_branch("test-branch", "main")
    names = {
        "committed": committed(repo, "test-branch", "committed"),
        "overwritten": put(repo, "test-branch", "staged", "first"),
        "staged": put(repo, "test-branch", "staged", "second"),
        "lost": lost(repo, "test-branch", "lost"),
        "lost on main": lost(repo, "main", "lost"),
        "never linked": arrives(repo, handed_out(repo, "test-branch", "never linked")),
    }
    later(repo, days=5)
    names["young"] = lost(repo, "test-branch", "young")
    names["waits"] = arrives(repo, handed_out(repo, "test-branch", "waits"))
    return repo, names


def named(names, found):
    return sorted(name for name, address in names.items() if address in found)


def test_a_clean_run_step_by_step(lived_in):
    repo, names = lived_in
    made = plan(uncommitted.job, repo, HERE)
    folder = f"_desilt/runs/gc/{made.run}/"
    # 1. and 3. what is staged, as it was read; whoever asks has it as ranges
    assert made.inputs["staged entries"] == repo.prepare_uncommitted().entries == len(oracle.staged(repo)) == 1
    assert {row["address"] for row in rows_of(repo, f"{folder}inputs/staged/")} == set(oracle.staged(repo))
    # 2. all addresses of all commits
    assert (made.inputs["commits"], made.inputs["committed entries"]) == (2, 1)
    # 4. all objects, from the store
    assert looked_at(repo, made.run) == stored(repo) == set(names.values())
    # 5. without those; 6. without young ones; 7. the rest
    gone = {row["address"] for row in rows_of(repo, f"{folder}plan/")}
    assert named(names, gone) == ["lost", "lost on main", "never linked", "overwritten"]
    assert gone == oracle.collectable(repo, repo.clock())
    assert {reason: amount.objects for reason, amount in made.keep.items()} == {
        "committed": 1, "staged": 1, "ticket": 1, "young": 1
    }  # fmt: skip
    # 8. nothing is saved by a plan that nobody carries out
    assert read_saved(repo, uncommitted.JOB).run == ""

    assert swept(repo, clean=True) == gone
    saved = read_saved(repo, uncommitted.JOB)
    assert saved.settled.keys() == {one.uid for one in repo.branches()}
    assert named(names, pending(repo)) == ["staged"]  # the next run does not list its partition


def test_special_paths_are_no_candidates(lived_in):
    repo, _ = lived_in
    repo.commit("test-branch", "its ranges are old by then")
    later(repo, days=30)
    special = {
        key
        for batch in repo.store.list(repo.prefix)
        for key in batch["key"].to_pylist()
        if key.removeprefix(repo.prefix).startswith(("_lakefs/", "_desilt/"))
    }
    assert any("/_lakefs/" in key for key in special)
    swept(repo, clean=True)
    assert special <= {key for batch in repo.store.list(repo.prefix) for key in batch["key"].to_pylist()}


# ---- Flow 2: Optimized Run


def test_an_optimised_run_step_by_step(lived_in):
    repo, names = lived_in
    swept(repo, clean=True)
    later(repo, days=5)
    again = names["staged"]
    repo.reset("test-branch")
    new = {"new": committed(repo, "test-branch", "new"), "new and lost": lost(repo, "test-branch", "new and lost")}
    later(repo, days=2)

    made = plan(uncommitted.job, repo, HERE)
    # Step 1: what was staged then and is neither staged nor committed now, though its partition is not listed
    assert again not in looked_at(repo, made.run)
    assert again in oracle.collectable(repo, repo.clock())
    # Step 2: all objects down to the partition that was read last
    settled = read_saved(repo, uncommitted.JOB).settled
    assert looked_at(repo, made.run) == {one for one in stored(repo) if is_newer(one, settled)}
    assert named({**names, **new}, looked_at(repo, made.run)) == ["new", "new and lost", "waits", "young"]

    assert swept(repo) == {again, names["young"], names["waits"], new["new and lost"]}
    assert contents(repo, "test-branch") == {"committed": "x", "new": "x"}


def test_of_optimised_runs_each_lists_what_came_since_the_one_before(repo):
    for day in range(6):
        committed(repo, "main", f"kept-{day}")
        lost(repo, "main", f"lost-{day}")
        later(repo, days=3)
        assert len(swept(repo, clean=day == 0)) == 1
        made = plan(uncommitted.job, repo, HERE)
        assert (made.inputs["listed"], made.inputs["known from before"]) == (0, day + 1)


def test_what_was_staged_through_many_runs_goes_when_it_is_let_go_of_and_stays_when_it_is_committed(repo):
    repo.create_branch("dev", "main")
    dropped, kept = put(repo, "main", "dropped"), put(repo, "dev", "kept")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    later(repo, days=5)
    assert swept(repo) == set()
    repo.reset("main")
    repo.commit("dev", "kept")
    later(repo, days=2)
    assert swept(repo) == {dropped}
    later(repo, days=2)
    assert swept(repo) == set()
    assert pending(repo) == set()
    assert kept in stored(repo)


# ---- (a) "committed" is what any commit has, of any branch, reachable or not


@pytest.mark.parametrize("then", ["reset", "deleted"])
def test_a_what_was_merged_into_another_branch_outlives_its_own(repo, then):
    """It lies on dev's path, and no commit of dev's has it any more."""
    repo.create_branch("dev", "main")
    merged = put(repo, "dev", "merged")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    assert pending(repo) == {merged}  # not committed then
    repo.commit("dev", "merged")
    repo.merge("dev", "main")
    repo.delete_branch("dev")
    if then == "reset":
        repo.create_branch("dev", "main~1")
    later(repo, days=5)
    assert swept(repo) == set()
    assert read(repo, "main", "merged") == "x"
    later(repo, days=5)
    assert swept(repo) == set()


def test_a_what_only_a_commit_has_that_no_branch_reaches_is_kept(repo):
    repo.create_branch("dev", "main")
    put(repo, "dev", "a")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    detached = repo.commit("dev", "a")
    repo.delete_branch("dev")
    for _ in range(2):
        later(repo, days=5)
        assert swept(repo) == set()
    assert read(repo, detached.id, "a") == "x"


def test_a_once_such_a_commit_is_collected_the_next_run_is_a_clean_one(repo):
    """What it had was counted and passed over, as held for good."""
    repo.create_branch("dev", "main")
    committed(repo, "main", "kept")
    put(repo, "dev", "a")
    repo.commit("dev", "a")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    held = repo.copy("dev", "a", "dev", "copy").address  # and so it is staged
    assert swept(repo) == set()
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(repo.clock())), SURE)
    repo.reset("dev")
    repo.delete_branch("dev")
    later(repo, days=5)
    run(collection.job, repo, HERE, collecting(), SURE)
    assert held not in stored(repo)
    assert swept(repo, clean=True) == set()


# ---- (b) a copy stages an address that an old commit holds


def test_b_a_copy_that_is_let_go_of_does_not_take_the_committed_object_along(repo):
    """It was staged at the last run, is staged no more, and no *new* commit has it: step 1, as written, removes it."""
    held = committed(repo, "main", "a")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    repo.copy("main", "a", "main", "copy")
    assert held in oracle.staged(repo)
    assert swept(repo) == set()
    assert pending(repo) == set()  # a commit holds it
    repo.reset("main")
    later(repo, days=5)
    assert swept(repo) == set()
    assert read(repo, "main", "a") == "x"


def test_b_nor_does_one_that_was_staged_at_a_clean_run(repo):
    held = committed(repo, "main", "a")
    repo.move("main", "a", "moved")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    repo.reset("main")
    later(repo, days=5)
    assert swept(repo) == set()
    assert held in stored(repo)
    assert read(repo, "main", "a") == "x"


# ---- (c) a partition that was read goes on receiving


def test_c_what_is_younger_than_a_ticket_lives_is_skipped_and_found_later(repo):
    young = lost(repo, "main", "young")
    later(repo, hours=24, minutes=10)
    assert swept(repo, clean=True) == set()
    later(repo, seconds=1)
    assert swept(repo) == {young}


def opened_by(repo, clock):
    """The same repository as a writer with another clock sees it."""
    return Lake(repo.database, repo.store, clock=clock).repository(repo.name)


@pytest.mark.parametrize(
    "handed_after",
    [
        pytest.param(timedelta(0), id="as its partition was opened"),
        pytest.param(timedelta(minutes=59, seconds=59), id="just before its partition closed"),
    ],
)
@pytest.mark.parametrize("slow", [timedelta(0), timedelta(minutes=9)], ids=["", "by a writer whose clock is slow"])
@pytest.mark.parametrize(
    "arrives_after",
    [
        pytest.param(TICKET - timedelta(minutes=1), id="arrives just before its ticket ends"),
        pytest.param(2 * TICKET - timedelta(minutes=1), id="arrives as long again after it"),
    ],
)
def test_c_a_direct_upload_that_arrives_after_a_run_has_read_its_partition_is_found_by_the_next(
    repo, handed_after, slow, arrives_after
):
    """Nobody links it. Whoever takes its partition for read too early never looks there again."""
    clock = ManualClock(START)
    writer = opened_by(repo, lambda: clock() - slow)
    early = writer.put("main", "early", b"x").address
    writer.commit("main", "early")
    clock.now += handed_after
    handed = handed_out(writer, "main", "direct")
    assert handed.ticket.address.split("/")[2] == early.split("/")[2]
    repo.set_clock(clock() + arrives_after - timedelta(minutes=1))
    assert swept(repo, clean=True) == set()
    later(repo, minutes=1)
    address = arrives(repo, handed)
    repo.set_clock(max(repo.clock(), START) + timedelta(days=5))
    assert swept(repo) == {address}


def test_c_an_upload_that_takes_days_holds_its_partition_open(repo, monkeypatch):
    """Its ticket is renewed as bytes pass. It is cut off before it is staged: the object is garbage."""
    committed(repo, "main", "early")

    def body():
        for day in range(8):
            yield b"a day's work"
            later(repo, hours=23)
            assert swept(repo, clean=day == 0) == set()

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(staging, "stage", killed)
        with pytest.raises(KeyboardInterrupt):
            repo.put("main", "slow", body())
    (address,) = stored(repo) - oracle.committed(repo)
    later(repo, days=5)
    assert swept(repo) == {address}


def test_c_an_upload_that_takes_days_lives(repo):
    def body():
        for day in range(8):
            yield b"."
            later(repo, hours=23)
            assert swept(repo, clean=day == 0) == set()

    repo.put("main", "slow", body())
    later(repo, days=5)
    assert swept(repo) == set()
    assert read(repo, "main", "slow") == "." * 8


# ---- (d) a deleted branch has no staging area, and a path full of objects


@pytest.mark.parametrize("made", ["before a run", "between two runs"])
def test_d_what_a_deleted_branch_leaves_behind_is_removed(repo, made):
    later(repo, days=1)
    committed(repo, "main", "kept")
    if made == "between two runs":
        later(repo, days=5)
        assert swept(repo, clean=True) == set()
    repo.create_branch("dev", "main")
    mine = {put(repo, "dev", "a"), lost(repo, "dev", "b"), put(repo, "dev", "c")}
    if made == "before a run":
        later(repo, days=5)
        removed = swept(repo, clean=True)
        assert pending(repo) == mine - removed
        mine -= removed
    repo.delete_branch("dev", force=True)
    later(repo, days=5)
    assert swept(repo) == mine
    later(repo, days=5)
    assert swept(repo) == set()


def test_d_the_path_of_a_deleted_branch_may_hold_what_others_have(repo):
    repo.create_branch("dev", "main")
    mine = committed(repo, "dev", "merged")
    repo.merge("dev", "main")
    staged = put(repo, "dev", "staged")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    repo.delete_branch("dev", force=True)
    later(repo, days=5)
    assert swept(repo) == {staged}
    assert mine in stored(repo)
    assert read(repo, "main", "merged") == "x"


# ---- (e) what is held is held from anywhere


@pytest.mark.parametrize("then", ["reset", "deleted"])
def test_e_what_another_branch_stages_is_kept_on_the_path_it_lies_on(repo, then):
    """No command does that, but other programs may: an entry of main whose object lies on dev's path."""
    repo.create_branch("dev", "main")
    entry = repo.put("dev", "a", b"x")
    stage(repo, "main", entry)
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    if then == "reset":
        repo.reset("dev")
    else:
        repo.delete_branch("dev", force=True)
    for _ in range(2):
        later(repo, days=5)
        assert swept(repo) == set()
        assert pending(repo) == {entry.address}
    assert read(repo, "main", "a") == "x"
    repo.reset("main")
    later(repo, days=5)
    assert swept(repo) == {entry.address}


def test_e_a_run_of_one_branch_heeds_what_all_hold(repo):
    repo.create_branch("dev", "main")
    kept = committed(repo, "dev", "a")
    repo.merge("dev", "main")
    garbage = {lost(repo, "dev", "b"), lost(repo, "main", "b")}
    waits = handed_out(repo, "dev", "waits")
    (dev,) = [one.uid for one in repo.branches() if one.name == "dev"]
    repo.delete_branch("dev")
    later(repo, days=5)
    for branch in ("main", dev):
        run(uncommitted.job, repo, HERE, uncommitted.job.ask(branch=branch), SURE)
    assert garbage.isdisjoint(stored(repo))
    assert kept in stored(repo)
    assert arrives(repo, waits) in stored(repo)


def test_e_an_open_ticket_of_any_branch_keeps_its_object(repo):
    repo.create_branch("dev", "main")
    later(repo, days=3)
    assert swept(repo, clean=True) == set()
    handed = {branch: handed_out(repo, branch, "direct") for branch in ("main", "dev")}
    for one in handed.values():
        arrives(repo, one)
    later(repo, hours=23)
    assert swept(repo) == set()
    for branch, one in handed.items():
        repo.link(branch, "direct", one.token)
    later(repo, days=5)
    assert swept(repo) == set()


# ---- Limitations


def test_objects_that_lie_otherwise_are_left_alone(repo):
    """As the seed has it, other structures are not collected: here they are told as foreign, and stay."""
    mine = lost(repo, "main", "mine")
    folder = mine.rpartition("/")[0]
    others = ["data/old-style", "branches/main/file1", f"{folder}/file1", f"{folder}/deeper/0123456789abcdefghij"]
    for address in others:
        repo.store.put(repo.prefix + address, [b"theirs"])
    later(repo, days=5)
    report = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1]
    assert report.swept.removed == 1
    assert report.keep["foreign"].objects == 3  # and what is beside the branches is not even listed
    assert stored(repo) == set(others)


def test_a_path_of_many_partitions_is_listed_in_many_pieces(repo):
    for _ in range(60):
        put(repo, "main", "a")
        later(repo, hours=1)
    made = plan(uncommitted.job, repo, HERE)
    listings = repo.store.list(f"{repo.prefix}_desilt/runs/gc/{made.run}/inputs/inventory/")
    assert sum(batch.num_rows for batch in listings) >= 30
    assert looked_at(repo, made.run) == stored(repo)


def test_after_a_long_time_without_a_run_the_next_lists_more_and_misses_nothing(repo):
    committed(repo, "main", "kept")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    garbage = set()
    for month in range(12):
        garbage.add(lost(repo, "main", f"lost-{month}"))
        committed(repo, "main", f"kept-{month}")
        later(repo, days=30)
    made = plan(uncommitted.job, repo, HERE)
    assert (made.inputs["listed"], made.inputs["known from before"]) == (24, 1)
    assert swept(repo) == garbage


def test_a_direct_upload_that_comes_days_after_its_ticket_is_found_by_a_clean_run_alone(repo):
    committed(repo, "main", "early")
    handed = handed_out(repo, "main", "direct")
    later(repo, days=5)
    assert swept(repo, clean=True) == set()
    address = arrives(repo, handed)
    later(repo, days=5)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)
    assert address in stored(repo)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(full=True), SURE)
    assert address not in stored(repo)
