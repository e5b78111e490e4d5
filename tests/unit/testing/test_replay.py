"""Replaying: every operation does what the lake does, at the time the scenario says."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desilt.domain.address import partition_time, uid_time
from desilt.errors import AlreadyExists, BadRequest, BadTicket, Conflict, Dirty, MergeConflict, NotFound
from desilt.testing import oracle
from desilt.testing.scenario import (
    ReplayFailed,
    address,
    branch,
    commit,
    copy,
    days,
    delete,
    delete_branch,
    delete_tag,
    hours,
    link,
    merge,
    move,
    parse,
    put,
    replay,
    reset,
    revert,
    scenario,
    stage,
    tag,
    upload,
    wait,
)

MONDAY = datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.fixture
def repo(lake):
    return lake.create_repository("story", clock_at=MONDAY)


def paths(repo, ref="main"):
    return [entry.path for entry in repo.list(ref)]


def read(repo, ref, path):
    return b"".join(repo.get(ref, path))


# ---- each operation


def test_put_stages_a_text_or_seeded_bytes(repo):
    scenario(repo)(
        put("main", "text", text="hello", content_type="text/plain", metadata={"by": "ana"}),
        put("main", "seven", bytes=100, seed=7),
        put("main", "seven again", bytes=100, seed=7),
        put("main", "eight", bytes=100, seed=8),
        put("main", "large", bytes=3_000_000),
        put("main", "empty", text=""),
    )
    entry = repo.stat("main", "text")
    assert (read(repo, "main", "text"), entry.content_type, entry.metadata) == (b"hello", "text/plain", {"by": "ana"})
    assert read(repo, "main", "seven") == read(repo, "main", "seven again") != read(repo, "main", "eight")
    assert [repo.stat("main", path).size for path in ("eight", "large", "empty")] == [100, 3_000_000, 0]


def test_without_a_seed_no_two_puts_have_the_same_content(repo):
    story = scenario(repo)
    story(put("main", "a"), put("main", "b"))
    story(put("main", "c"))
    assert len({read(repo, "main", path) for path in "abc"}) == 3


def test_a_copy_inside_a_branch_shares_the_object_and_from_another_ref_does_not(repo):
    scenario(repo)(
        put("main", "a"), commit("main"), branch("dev"), copy("dev", "a", "b"), copy("dev", "a", "c", from_="main")
    )
    original = repo.stat("main", "a")
    assert repo.stat("dev", "b").address == original.address != repo.stat("dev", "c").address
    assert repo.stat("dev", "c").checksum == original.checksum


def test_move_and_delete(repo):
    scenario(repo)(put("main", "a"), put("main", "b"), commit("main"), move("main", "a", "c"), delete("main", "b"))
    assert paths(repo) == ["c"]
    assert paths(repo, "main@") == ["a", "b"]


def test_an_address_is_uploaded_to_and_linked_where_it_was_asked_for(repo):
    scenario(repo)(address("main", "a", as_="up"), upload("$up", text="direct"), link("$up", content_type="text/plain"))
    assert (read(repo, "main", "a"), repo.stat("main", "a").content_type) == (b"direct", "text/plain")


def test_a_ticket_expires_on_the_scenarios_clock_and_belongs_to_one_path(repo):
    scenario(repo)(
        address("main", "a", as_="up"),
        upload("$up"),
        link("$up", path="b", fails=BadTicket),
        hours(23),
        link("$up"),
        link("$up", fails=BadTicket),
        address("main", "c", as_="late"),
        upload("$late"),
        hours(24),
        link("$late", fails=BadTicket),
    )
    assert paths(repo) == ["a"]


def test_an_address_that_is_never_linked_is_garbage(repo):
    scenario(repo)(address("main", "a", as_="up"), upload("$up", bytes=5))
    assert list(oracle.garbage(repo).values()) == [5]


def test_stage_points_outside(repo):
    scenario(repo)(stage("main", "a", "s3://elsewhere/a", 7, "abc", metadata={"k": "v"}))
    entry = repo.stat("main", "a")
    assert (entry.address, entry.size, entry.checksum) == ("s3://elsewhere/a", 7, "abc")


def test_commits_have_names_that_later_lines_use(repo):
    named = scenario(repo)(
        put("main", "a"),
        commit("main", "first", committer="ana", metadata={"job": "7"}, as_="first"),
        put("main", "b"),
        commit("main", "second", as_="second"),
        branch("old", "$first"),
        tag("v1", "$second~1"),
        tag("v2", "$second"),
    )
    assert (named["first"].message, named["first"].committer, named["first"].metadata) == ("first", "ana", {"job": "7"})
    assert repo.resolve("old").commit == repo.resolve("v1").commit == named["first"]
    assert repo.resolve("v2").commit == named["second"]


def test_an_empty_commit_must_be_meant(repo):
    scenario(repo)(commit("main", fails=Conflict), commit("main", "nothing", allow_empty=True))
    assert next(repo.log("main")).message == "nothing"


def test_merge_by_strategy_and_revert_by_parent(repo):
    named = scenario(repo)(
        *(put("main", "a", "base"), commit("main"), branch("dev")),
        *(put("main", "a", "ours"), commit("main"), put("dev", "a", "theirs"), commit("dev")),
        merge("dev", "main", fails=MergeConflict),
        merge("dev", "main", strategy="source-wins", message="take theirs", committer="ben", as_="merged"),
    )
    assert (read(repo, "main", "a"), named["merged"].message) == (b"theirs", "take theirs")
    scenario(repo)(revert("main", "main", fails=BadRequest), revert("main", "main", parent=1, message="back"))
    assert read(repo, "main", "a") == b"ours"


def test_a_merge_with_nothing_to_bring_makes_no_commit_to_name(repo):
    scenario(repo)(branch("dev"), merge("dev", "main"))
    with pytest.raises(ReplayFailed, match="nothing to call"):
        scenario(repo)(merge("dev", "main", as_="merged"))


@pytest.mark.parametrize(
    ("what", "left"),
    [({"all": True}, []), ({"prefix": "a/"}, ["b"]), ({"path": "a/1"}, ["a/2", "b"])],
)
def test_reset_forgets_all_a_prefix_or_a_path(repo, what, left):
    scenario(repo)(put("main", "a/1"), put("main", "a/2"), put("main", "b"), reset("main", **what))
    assert paths(repo) == left


def test_branches_and_tags_go(repo):
    scenario(repo)(
        branch("dev"),
        put("dev", "a"),
        delete_branch("dev", fails=Dirty),
        delete_branch("dev", force=True),
        tag("v1", "main"),
        delete_tag("v1"),
        delete_tag("v1", fails=NotFound),
    )
    assert [found.name for found in repo.branches()] == ["main"]
    assert repo.tags() == []


# ---- times


def test_times_land_in_entries_commits_names_and_files(directory_lake, tmp_path):
    text = """
        {"do": "put", "branch": "main", "path": "a", "at": "2026-01-05T09:00:00Z"}
        {"do": "commit", "branch": "main", "at": "+3d"}
        {"do": "branch", "branch": "dev", "at": "+2h30m"}
        {"do": "copy", "branch": "dev", "from": "main", "source": "a", "path": "b", "at": "2026-02-04"}
        {"do": "address", "branch": "dev", "path": "c", "as": "up", "at": "+1d"}
        {"do": "upload", "address": "$up", "at": "+1h"}
        {"at": "+40d"}
    """
    repo = replay(directory_lake, "demo", parse(text))
    put_at, committed_at = MONDAY, MONDAY + timedelta(days=3)
    branched_at, copied_at = committed_at + timedelta(hours=2.5), datetime(2026, 2, 4, tzinfo=UTC)
    asked_at, uploaded_at = copied_at + timedelta(days=1), copied_at + timedelta(days=1, hours=1)

    assert repo.stat("main", "a").modified_at == put_at
    assert repo.stat("dev", "b").modified_at == copied_at
    assert [found.created_at for found in repo.log("main")] == [committed_at, MONDAY]
    assert {found.name: found.created_at for found in repo.branches()} == {"main": MONDAY, "dev": branched_at}
    assert uid_time(repo.uid) == MONDAY

    files = sorted(
        Path(tmp_path, "lake", repo.prefix, "branches").rglob("*/*/*"), key=lambda path: path.stat().st_mtime
    )
    modified = [datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in files]
    assert modified == [put_at, copied_at, uploaded_at]
    assert [uid_time(path.name) for path in files] == [put_at, copied_at, asked_at]
    assert [partition_time(path.parent.name) for path in files] == [put_at, copied_at, asked_at]
    metadata = Path(tmp_path, "lake", repo.prefix, "_lakefs").iterdir()
    assert {datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in metadata} == {committed_at}

    assert directory_lake.repository("demo").clock() == uploaded_at + timedelta(days=40)


def test_a_scenario_without_a_date_begins_on_a_fixed_one(lake):
    repo = replay(lake, "demo", [days(1), put("main", "a")])
    assert repo.stat("main", "a").modified_at == datetime(2026, 1, 2, tzinfo=UTC)
    assert next(repo.log("main")).created_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_what_lines_say_is_told_at_their_time_even_if_they_fail(repo):
    told = []
    scenario(repo, say=lambda moment, text: told.append((moment, text)))(
        wait(say="it begins"), delete("main", "a", at=timedelta(days=1), say="in vain", fails=NotFound)
    )
    assert told == [(MONDAY, "it begins"), (MONDAY + timedelta(days=1), "in vain")]


def test_the_systems_clock_is_not_moved(lake):
    repo = lake.create_repository("story")
    scenario(repo)(put("main", "a"))
    with pytest.raises(ReplayFailed, match=r"operation 1: wait: .*system's clock"):
        scenario(repo)(days(1))
    with pytest.raises(ReplayFailed, match="system's clock"):  # and that is not the failure that was asked for
        scenario(repo)(delete("main", "b", at=timedelta(days=1), fails=BadRequest))


# ---- what fails


def test_a_failing_line_is_named_and_what_came_before_stays(lake):
    text = '{"do": "put", "branch": "main", "path": "a"}\n\n{"do": "put", "branch": "nosuch", "path": "b"}\n'
    text += '{"do": "put", "branch": "main", "path": "c"}'
    with pytest.raises(ReplayFailed) as caught:
        replay(lake, "demo", parse(text, source="story.jsonl"))
    assert str(caught.value).startswith("story.jsonl:3: put: there is no branch 'nosuch'")
    assert "holds what came before it" in str(caught.value)
    assert caught.value.exit_code == 1
    assert paths(lake.repository("demo")) == ["a"]


def test_the_exit_code_is_that_of_the_reason(repo):
    with pytest.raises(ReplayFailed) as caught:
        scenario(repo)(put("main", ""))
    assert caught.value.exit_code == 2


def test_a_line_that_must_fail_and_does_not_fails(repo):
    with pytest.raises(ReplayFailed, match=r"must fail with Gone, and did not.*holds this and all that came before"):
        replay_one(repo, '{"do": "put", "branch": "main", "path": "a", "fails": "Gone"}')
    with pytest.raises(ReplayFailed, match="must fail with Gone, and failed with NotFound: there is no object 'b'"):
        replay_one(repo, '{"do": "delete", "branch": "main", "path": "b", "fails": "Gone"}')
    replay_one(repo, '{"do": "delete", "branch": "main", "path": "b", "fails": "DesiltError"}')


def replay_one(repo, line):
    scenario(repo)(*parse(line))


def test_nothing_is_done_of_a_scenario_that_cannot_be(lake, repo):
    for wrong in (tag("v1", "$nosuch"), wait(at=MONDAY - timedelta(days=30)), wait(at=timedelta(days=-1))):
        with pytest.raises(BadRequest, match="operation 2"):
            scenario(repo)(put("main", "a"), wrong)
        with pytest.raises(BadRequest):
            replay(lake, "other", [put("main", "a", at=MONDAY), wrong])
    assert paths(repo) == []
    assert lake.repositories() == ["story"]


def test_an_existing_repository_is_left_alone(lake, repo):
    scenario(repo)(put("main", "a"))
    with pytest.raises(AlreadyExists):
        replay(lake, "story", [put("main", "b")])
    assert paths(lake.repository("story")) == ["a"]


def test_a_story_goes_on_with_its_names(repo):
    story = scenario(repo)
    story(put("main", "a"), commit("main", as_="first"))
    story(days(1), tag("v1", "$first"))
    assert repo.resolve("v1").commit == story.named["first"]
    with pytest.raises(BadRequest, match="has a meaning already"):
        story(commit("main", as_="first", allow_empty=True))
