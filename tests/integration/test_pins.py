"""What keeps the bytes: told for each branch, tag, hold and staging area, alone and together; nothing is removed."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from desilt.cli import pins as command
from desilt.columns.files import Files
from desilt.domain.policy import parse
from desilt.errors import NotReadBack, Unreadable
from desilt.executors.executor import HERE, Here
from desilt.executors.on_spark import OnSpark
from desilt.jobs import holds, trash
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.pins.pins import pins
from desilt.jobs.runner import run
from desilt.lake import commits, refs
from desilt.records import locks
from desilt.records.holds import Hold, HoldKind
from desilt.runs.report import Amount
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import pinned
from words import add_hold

START = datetime(1998, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
SIZES = {"a": 1, "b": 20, "c": 300, "d": 4_000, "e": 50_000}
CACHES = ("_desilt/ranges/", "_desilt/metaranges/", "_desilt/removed/")


def put(repo, branch, *paths):
    """Objects as big as the last letter of their path says."""
    return [repo.put(branch, path, b"x" * SIZES[path[-1]]).address for path in paths]


def commit(repo, branch, *paths):
    found = put(repo, branch, *paths)
    return found, repo.commit(branch, " ".join(paths))


def kept(repo, executor=HERE):
    """Bytes, by the pins that keep them."""
    found = pins(repo, executor)
    sets = {pin.name: pin.alone for pin in found.pins}
    sets |= {" + ".join(sorted(group.pins)): group.amount for group in found.groups}
    sets["nothing"] = found.nothing
    assert found.total == found.alone + found.together + found.nothing
    assert pinned_bytes(repo) == {name: amount.bytes for name, amount in sets.items() if amount.objects}
    return {name: amount.bytes for name, amount in sets.items() if amount.objects}


def pinned_bytes(repo):
    return {" + ".join(sorted(names)) or "nothing": amount[1] for names, amount in pinned.kept(repo).items()}


def test_what_a_tag_alone_keeps_comes_back_when_it_is_deleted(repo):
    commit(repo, "main", "a", "b")
    repo.create_branch("dev", "main")
    commit(repo, "dev", "c")
    repo.create_tag("v1", "dev")
    repo.delete_branch("dev")
    assert kept(repo) == {"branch main + tag v1": 21, "tag v1": 300}
    repo.delete_tag("v1")
    assert kept(repo) == {"branch main": 21, "nothing": 300}


def test_a_tag_keeps_its_commit_and_all_before_it_and_nothing_after(repo):
    commit(repo, "main", "a")
    commit(repo, "main", "b")
    repo.create_tag("v1", "main")
    commit(repo, "main", "c")
    found = {pin.name: pin for pin in pins(repo, HERE).pins}
    assert found["tag v1"].reaches == Amount(2, 21)
    assert found["tag v1"].alone == Amount()
    assert found["branch main"].reaches == Amount(3, 321)
    assert found["branch main"].alone == Amount(1, 300)


def test_an_object_overwritten_on_a_branch_is_kept_by_its_history(repo):
    commit(repo, "main", "x/a")
    repo.put("main", "x/a", b"another")
    repo.commit("main", "over it")
    assert kept(repo) == {"branch main": 8}


def test_an_object_counts_once_however_many_paths_and_commits_point_to_it(repo):
    commit(repo, "main", "a", "b")
    repo.copy("main", "b", "main", "copy")
    repo.commit("main", "copied")
    commit(repo, "main", "c")
    found = pins(repo, HERE)
    assert found.total == Amount(3, 321)
    assert kept(repo) == {"branch main": 321}


def test_a_copy_on_another_branch_is_another_object(repo):
    commit(repo, "main", "c")
    root = next(one for one in repo.log("main") if not one.parents)
    repo.create_branch("dev", root.id)
    repo.copy("main", "c", "dev", "copy")
    assert kept(repo) == {"branch main": 300, "staged on dev": 300}


def test_what_only_a_deleted_branch_had_waits_for_collection(repo):
    repo.create_branch("dev", "main")
    commit(repo, "dev", "d")
    commit(repo, "main", "a")
    repo.delete_branch("dev")
    found = pins(repo, HERE)
    assert found.nothing == Amount(1, 4_000)
    assert [pin.name for pin in found.pins] == ["branch main"]
    assert kept(repo) == {"branch main": 1, "nothing": 4_000}


def test_a_branch_keeps_what_it_reaches_by_the_parents_that_commits_have_today(repo):
    root = repo.resolve("main").commit
    commit(repo, "main", "x/a")
    repo.remove("main", "x/a")
    _, last = commit(repo, "main", "b")
    assert kept(repo) == {"branch main": 21}
    with repo.database.write() as tx:
        assert commits.edit(tx, repo.uid, last.id, seen=last.parents, parents=[root.id])
    assert kept(repo) == {"branch main": 20, "nothing": 1}


def test_what_is_staged_is_kept_by_its_area_sealed_or_hidden(repo):
    commit(repo, "main", "a")
    put(repo, "main", "x/b")
    with repo.database.write() as tx:
        refs.seal(tx, refs.branch(tx, repo.uid, "main"), token="another")
    put(repo, "main", "x/c")
    repo.put("main", "x/b", b"newer")
    repo.remove("main", "a")
    repo.stage("main", "far", "s3://elsewhere/far", size=9, checksum="1")
    assert kept(repo) == {"branch main": 1, "staged on main": 20 + 300 + 5}


def test_each_branch_has_an_area_of_its_own(repo):
    repo.create_branch("dev", "main")
    put(repo, "dev", "a")
    put(repo, "main", "b")
    assert kept(repo) == {"staged on dev": 1, "staged on main": 20}


def test_a_branch_with_nothing_but_removals_staged_has_no_area(repo):
    commit(repo, "main", "a")
    repo.remove("main", "a")
    assert [pin.name for pin in pins(repo, HERE).pins] == ["branch main"]


def test_holds_of_every_kind_keep_what_they_name(repo):
    repo.create_branch("dev", "main")
    _, first = commit(repo, "dev", "logs/a")
    commit(repo, "dev", "logs/b", "c")
    (loose,) = put(repo, "main", "d")
    repo.reset("main", prefix="")
    put(repo, "main", "e")
    repo.delete_branch("dev")
    at_ref = holds.hold(repo, HoldKind.REF, first.id, reason="audit")
    below = holds.hold(repo, HoldKind.PREFIX, "logs/", reason="law")
    one = holds.hold(repo, HoldKind.ADDRESS, loose, reason="me")
    past = holds.hold(repo, HoldKind.PREFIX, "c", reason="over", until=DAY)
    repo.set_clock(START + 2 * DAY)
    names = [f"hold {hold.id} ({hold.reason})" for hold in (at_ref, below, one, past)]
    assert kept(repo) == {
        " + ".join(sorted(names[:2])): 1,
        names[1]: 20,
        names[2]: 4_000,
        "staged on main": 50_000,
        "nothing": 300,
    }
    assert names[3] not in {pin.name for pin in pins(repo, HERE).pins}


def test_a_hold_on_an_object_that_is_not_there_keeps_nothing(repo):
    address = "branches/x/62293363200000_d5ari0dei0bs72fpblu0/d5ari0dei0bs72fpblu0"
    add_hold(repo, Hold("3f2a", HoldKind.ADDRESS, address, "lost", START, None))
    (pin,) = [pin for pin in pins(repo, HERE).pins if pin.name == "hold 3f2a (lost)"]
    assert pin.reaches == Amount()


def test_a_hold_on_a_commit_that_is_missing_stops_it(repo):
    add_hold(repo, Hold("3f2a", HoldKind.REF, "0" * 64, "lost", START, None))
    with pytest.raises(Unreadable, match="hold 3f2a names commit 0000"):
        pins(repo, HERE)


def test_paths_are_read_only_for_holds_on_prefixes(repo, monkeypatch):
    commit(repo, "main", "a")
    asked, read = [], Files.rows
    monkeypatch.setattr(Files, "rows", lambda *words: asked.append(words[3]) or read(*words))
    pins(repo, HERE)
    assert not any("path" in columns for columns in asked)
    holds.hold(repo, HoldKind.PREFIX, "a", reason="law")
    pins(repo, HERE)
    assert any("path" in columns for columns in asked)


def expired(repo, action):
    commit(repo, "main", "tmp/c", "keep/b")
    repo.set_clock(repo.clock() + 5 * DAY)
    ask = lifecycle.job.ask(policy=parse({"r": {"prefix": "tmp/", "days": 2}}), action=action)
    return run(lifecycle.job, repo, HERE, ask, SURE)[-1]


def test_what_a_run_removed_does_not_count(repo):
    expired(repo, Action.DELETE)
    assert kept(repo) == {"branch main": 20}


def test_what_came_back_from_the_trash_counts_again(repo):
    report = expired(repo, Action.TRASH)
    assert kept(repo) == {"branch main": 20}
    trash.bring_back(repo, HERE, report.run)
    assert kept(repo) == {"branch main": 320}


def test_nothing_is_removed_nothing_locked_and_nothing_left_but_caches(repo):
    expired(repo, Action.DELETE)
    put(repo, "main", "e")
    before = keys(repo)
    with locks.held(repo.database, repo.uid, run="another"):
        pins(repo, HERE)
    assert before <= keys(repo)
    caches = tuple(repo.prefix + folder for folder in CACHES)
    assert all(key.startswith(caches) for key in keys(repo) - before)


def keys(repo):
    return {key for batch in repo.store.list("") for key in batch["key"].to_pylist()}


@pytest.mark.parametrize("folder", ["_desilt/ranges/", "_desilt/removed/"])
def test_a_damaged_cache_stops_it_once_and_is_made_again(repo, folder):
    expired(repo, Action.DELETE)
    wanted = kept(repo)
    for key in keys(repo):
        if key.startswith(repo.prefix + folder) and key.endswith(".parquet"):
            data = bytearray(repo.store.get(key))
            data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)  # of the first columns, all
            repo.store.put(key, [bytes(data)])
    with pytest.raises(NotReadBack, match=r"could not be read back; run again$"):
        pins(repo, HERE)
    assert kept(repo) == wanted


def test_what_only_collected_commits_had_is_nobodys_though_the_cache_still_has_it(repo):
    commit(repo, "main", "a")
    repo.create_branch("dev", "main")
    _, made = commit(repo, "dev", "c")
    assert kept(repo) == {"branch dev + branch main": 1, "branch dev": 300}
    repo.delete_branch("dev")
    with repo.database.write() as tx:
        commits.collect(tx, repo.uid, [made.id], run="another", at=repo.clock())
    assert kept(repo) == {"branch main": 1}


def test_more_pins_than_a_word_has_bits(repo):
    for number in range(70):
        repo.create_tag(f"v{number:02d}", "main")
        repo.put("main", "x", b"x" * (number + 1))
        repo.commit("main", f"{number}")
    repo.create_tag("v70", "main")
    found = pins(repo, HERE, limit=5)
    assert len(found.pins) == 72
    reached = {pin.name: pin.reaches.objects for pin in found.pins}
    assert [reached[f"tag v{number:02d}"] for number in range(71)] == list(range(71))
    assert [group.amount.bytes for group in found.groups] == [70, 69, 68, 67, 66]
    assert found.groups[0].pins == ("branch main", "tag v70")
    assert found.groups[2].pins == ("branch main", "tag v68", "tag v69", "tag v70")
    assert (found.groups_left, found.left) == (65, Amount(65, 65 * 66 // 2))
    names = {" + ".join(sorted(names)): amount for names, amount in pinned.kept(repo).items()}
    whole = pins(repo, HERE, limit=100)
    assert {" + ".join(sorted(one.pins)): (one.amount.objects, one.amount.bytes) for one in whole.groups} == names


def test_an_empty_repository_keeps_nothing(repo):
    found = pins(repo, HERE)
    assert found.total == Amount()
    assert [pin.name for pin in found.pins] == ["branch main"]


# ---- as a command


def story(repo):
    commit(repo, "main", "a", "b")
    repo.create_tag("v1", "main")
    repo.create_branch("dev", "main")
    commit(repo, "dev", "c")
    commit(repo, "main", "d")
    put(repo, "main", "e")


def test_on_spark_the_same_is_kept(spark, cli, repo, uri):
    story(repo)
    code, out, _ = cli("pins", uri, "--json")
    assert code == 0
    said, wanted = json.loads(out), json.loads(pins(repo, HERE).to_json())
    assert said == {**wanted, "at": said["at"]}
    assert kept(repo, OnSpark(spark)) == {
        "branch dev + branch main + tag v1": 21,
        "branch dev": 300,
        "branch main": 4_000,
        "staged on main": 50_000,
    }


def test_figures_for_programs(cli, repo, uri):
    story(repo)
    repo.create_branch("more", "dev")
    code, out, err = cli("pins", uri, "--json", "--limit", 1)
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["total"] == {"objects": 5, "bytes": 54_321}
    assert said["alone"] == {"objects": 2, "bytes": 54_000}
    assert said["together"] == {"objects": 3, "bytes": 321}
    assert said["nothing"] == {"objects": 0, "bytes": 0}
    assert said["pins"][0] == {
        "name": "staged on main",
        "alone": {"objects": 1, "bytes": 50_000},
        "reaches": {"objects": 1, "bytes": 50_000},
    }
    assert said["groups"] == [{"pins": ["branch dev", "branch more"], "objects": 1, "bytes": 300}]
    assert said["groups_left"] == {"groups": 1, "objects": 2, "bytes": 21}


def test_words_for_people(cli, repo, uri):
    story(repo)
    for number in range(2, 20):
        repo.create_tag(f"v{number:02d}", "v1")
    commit(repo, "dev", "x/c")
    repo.delete_branch("dev")
    code, out, _ = cli("pins", uri)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert lines[0] == "4 objects of 54.0 kB are kept; 2 objects of 600 B wait for collection."
    assert "staged on main\t50.0 kB\t1\t50.0 kB\t1" in out.splitlines()
    assert "tag v1 0 B 0 21 B 2" in lines
    assert "nothing: waits for collection 600 B 2 600 B 2" in lines
    assert "21 B 2 branch main, tag v02, tag v03 and 17 more" in lines
    code, out, _ = cli("pins", uri, "--limit", 0)
    assert "21 B 2 1 more group; see --limit" in [" ".join(line.split()) for line in out.splitlines()]


def test_whoever_watches_is_told_of_every_stage_and_of_objects(repo):
    class Noting:
        stages, objects = [], 0

        def begins(self, stage):
            self.stages.append(stage)

        def expects(self, objects): ...

        def advance(self, objects):
            self.objects += objects

    story(repo)
    watch = Noting()
    total = pins(repo, Here(watch)).total
    assert watch.stages == ["staged", "commits", "objects"]
    assert watch.objects >= total.objects


def test_a_page_is_written_where_it_is_asked_for(cli, repo, uri, tmp_path):
    story(repo)
    code, out, _ = cli("pins", uri, "--html", tmp_path / "page.html")
    assert code == 0
    assert f"The page is {tmp_path}/page.html" in out
    page = (tmp_path / "page.html").read_text()
    assert "staged on main</span> keeps most alone: 1 object (50.0 kB)" in page
    assert page.count('<li class="raw">') == 3
    code, out, _ = cli("pins", uri, "--html", tmp_path / "page.html", "--json")
    assert json.loads(out)["total"]["objects"] == 5


@pytest.mark.usefixtures("repo")
def test_a_page_that_cannot_be_written_is_refused_in_a_line_before_any_work(cli, uri, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "find_out", lambda *_words, **_more: pytest.fail("worked before it looked"))
    for path in (tmp_path / "nowhere" / "page.html", tmp_path):
        code, out, err = cli("pins", uri, "--html", path)
        assert (code, out) == (2, "")
        assert err.startswith("error: Invalid value for '--html'")
        assert err.count("\n") == 1
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.usefixtures("repo")
def test_a_disk_that_says_no_is_one_line(cli, uri):
    code, out, err = cli("pins", uri, "--html", "/proc/page.html")
    assert (code, out) == (1, "")
    assert err.startswith("error: /proc/page.html: ")
