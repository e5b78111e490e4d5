"""Every job on a lake with paths that are not UTF-8, judged by the oracle like any other."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from desilt.cache import ranges as range_cache
from desilt.cache.known import VERSION, sealed
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import BadRequest
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs import holds, trash
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.explain.explain import explain
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle.simulate import Rehearsal as Simulated
from desilt.jobs.lifecycle.simulate import simulate
from desilt.jobs.pins.pins import pins
from desilt.jobs.rules import paths
from desilt.jobs.runner import plan, run, sweep
from desilt.lake.fsck import check
from desilt.objects.file import ObjectFile
from desilt.records.holds import HoldKind
from desilt.runs.folder import Folder, find
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle, pinned
from odd_paths import commit_odd, listed, stage_odd, text
from words import collecting, days

START = datetime(1998, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
BAD, FE, NUL, GOOD = b"tmp/bad\xffutf8", b"tmp/\xfe/x", b"tmp/a\0b", b"keep/\xffgood"
TEN_DAYS = {"tmp": {"prefix": "tmp/", "days": 10}}


@pytest.fixture
def odd(repo):
    """By path, the addresses of one commit."""
    paths = [BAD, FE, NUL, GOOD, b"tmp/plain"]
    return dict(zip(paths, commit_odd(repo, "main", *paths), strict=True))


def files(repo, report, folder):
    """What lies in a folder of a run, as rows."""
    root = find(repo.store, repo.prefix, report.run)
    where = f"{Folder(repo.store, repo.prefix, root).root}{folder}/"
    keys = [key for batch in repo.store.list(where) for key in batch["key"].to_pylist()]
    return [row for key in keys for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()]


def page(repo, report):
    return Folder(repo.store, repo.prefix, find(repo.store, repo.prefix, report.run)).get_text("report.html")


def expire(repo, rules, *, executor=HERE, **ask):
    """A lifecycle run; the oracle has the last word on what goes."""
    before, wanted = set(oracle.stored(repo)), oracle.expired(repo, parse(rules), repo.clock())
    report = run(lifecycle.job, repo, executor, lifecycle.job.ask(policy=parse(rules), **ask), SURE)[-1]
    assert before - set(oracle.stored(repo)) == wanted
    assert check(repo).sound
    return wanted, report


# ---- uncommitted garbage


def test_garbage_is_collected_and_what_is_staged_or_committed_there_is_not(repo, odd):
    lost = stage_odd(repo, "main", b"lost\xff")
    assert repo.reset("main", path=text(b"lost\xff")) == 1
    held = stage_odd(repo, "main", b"held\xff")
    days(repo, 30)
    assert oracle.collectable(repo, repo.clock()) == {lost}
    report = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1]
    assert report.swept.removed == 1
    assert set(oracle.stored(repo)) == {held, *odd.values()}
    assert check(repo).sound


# ---- lifecycle


def test_rules_go_by_the_bytes_that_a_path_begins_with(repo, odd):
    days(repo, 11)
    wanted, report = expire(repo, TEN_DAYS)
    assert wanted == {odd[path] for path in odd if path != GOOD}
    shown = {r"tmp/bad\xffutf8", r"tmp/\xfe/x", r"tmp/a\x00b", "tmp/plain"}
    details = {row["detail"] for row in files(repo, report, "plan")}
    assert details == {f"tmp\0{path}" for path in shown}
    assert {path for row in files(repo, report, "addresses") for path in row["paths"]} == shown
    assert {"tmp", r"tmp/\xfe"} == set(report.prefixes)
    assert r"tmp/bad\xffutf8" in page(repo, report)
    assert repo.count_gone("main") == 4
    assert listed(repo, "main") == sorted(odd)


def test_on_spark_the_same_goes(spark, repo, odd):
    days(repo, 11)
    assert expire(repo, TEN_DAYS, executor=OnSpark(spark))[0] == {odd[path] for path in odd if path != GOOD}


@pytest.mark.parametrize(
    ("keep", "stay"),
    [
        ({"glob": "*utf8"}, {BAD}),
        ({"glob": "tmp/bad?utf8"}, {BAD}),
        ({"glob": "tmp/?/*"}, {FE}),
        ({"glob": "*"}, {BAD, FE, NUL, b"tmp/plain"}),
        ({"prefix": "tmp/bad"}, {BAD}),
        ({"prefix": "tmp/a"}, {NUL}),
    ],
    ids=str,
)
def test_what_a_policy_keeps_stays(repo, odd, keep, stay):
    days(repo, 11)
    wanted, _ = expire(repo, {"rules": TEN_DAYS, "keep": [keep]})
    assert wanted == {odd[path] for path in odd.keys() - stay - {GOOD}}


def test_a_hold_on_a_prefix_keeps_them_and_one_made_after_the_plan_too(repo, odd):
    holds.hold(repo, HoldKind.PREFIX, "tmp/a", reason="audit")
    days(repo, 11)
    report = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse(TEN_DAYS)))
    holds.hold(repo, HoldKind.PREFIX, "tmp/bad", reason="another audit")
    sweep(repo, HERE, report.run, SURE)
    assert set(oracle.stored(repo)) == {odd[path] for path in (BAD, NUL, GOOD)}


def test_a_hold_on_a_prefix_is_text(repo):
    with pytest.raises(BadRequest, match="UTF-8"):
        holds.hold(repo, HoldKind.PREFIX, text(b"tmp/\xff"), reason="audit")


def test_one_object_under_two_paths_goes_when_both_let_it(repo, odd):
    repo.copy("main", text(BAD), "main", "elsewhere")
    repo.commit("main", "a copy")
    days(repo, 11)
    assert odd[BAD] not in expire(repo, TEN_DAYS)[0]
    assert odd[BAD] in expire(repo, {**TEN_DAYS, "else": {"prefix": "else", "days": 1}})[0]


@pytest.mark.usefixtures("odd")
def test_what_went_comes_back(repo):
    days(repo, 11)
    expire(repo, TEN_DAYS, action=Action.TRASH)
    trash.bring_back(repo, HERE, "last")
    assert b"".join(repo.get("main", text(BAD))) == b"x"


@pytest.mark.usefixtures("odd")
def test_a_path_that_rules_name_is_found(repo):
    assert paths.has_path(repo.source(HERE), "tmp/bad")
    assert paths.has_path(repo.source(HERE), text(b"tmp/bad\xff"))
    assert paths.has_glob(repo.source(HERE), "tmp/bad?utf8")
    assert not paths.has_glob(repo.source(HERE), "tmp/bad?utf9")
    repo.remove("main", text(BAD))
    repo.commit("main", "gone from the head")
    assert paths.has_glob(repo.source(HERE), "tmp/bad?utf8")


@pytest.mark.usefixtures("odd")
def test_a_policy_is_replayed_over_them(repo):
    days(repo, 12)
    found = simulate(repo, HERE, Simulated(parse(TEN_DAYS), None, START, None, DAY))
    assert {step.at.day: step.removed.objects for step in found.sides[0].steps if step.removed.objects} == {12: 4}
    wanted, _ = expire(repo, TEN_DAYS)
    assert len(wanted) == 4


# ---- history


def test_old_commits_go_with_what_only_they_had(repo, odd):
    for number in range(3):
        days(repo, 3)
        commit_odd(repo, "main", BAD, FE, text=b"%d" % number)
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(repo.clock() - 4 * DAY)), SURE)
    days(repo, 2)
    assert {odd[BAD], odd[FE]} <= collect(repo)
    assert listed(repo, "main") == sorted(odd)


def collect(repo):
    """A collection; the oracle has the last word on what goes."""
    limit = oracle.old(repo, repo.clock())
    before, wanted = set(oracle.stored(repo)), oracle.collectable_objects(repo, limit)
    dead = oracle.collectable_commits(repo, limit)
    run(collection.job, repo, HERE, collecting(), SURE)
    assert before - set(oracle.stored(repo)) == wanted
    assert not dead & set(oracle.history(repo))
    assert check(repo).sound
    return wanted


def test_what_only_a_deleted_branch_had_is_collected(repo, odd):
    repo.create_branch("dev", "main")
    mine = commit_odd(repo, "dev", b"dev/\xff", BAD, text=b"dev")
    repo.delete_branch("dev")
    days(repo, 30)
    assert collect(repo) == set(mine)
    assert listed(repo, "main") == sorted(odd)


@pytest.mark.usefixtures("odd")
def test_a_held_prefix_keeps_what_only_a_deleted_branch_had(repo):
    lone = {}
    for branch in ("dev", "qa"):
        repo.create_branch(branch, "main")
        (lone[branch],) = commit_odd(repo, branch, branch.encode() + b"/\xff")
        repo.delete_branch(branch)
    holds.hold(repo, HoldKind.PREFIX, "dev/", reason="audit")
    days(repo, 30)
    assert collect(repo) == {lone["qa"]}


# ---- what is told


@pytest.mark.usefixtures("odd")
def test_pins_tell_what_keeps_them(repo):
    repo.create_tag("v1", "main")
    repo.remove("main", text(BAD))
    repo.commit("main", "without")
    stage_odd(repo, "main", b"staged\xff")
    holds.hold(repo, HoldKind.PREFIX, "tmp/bad", reason="audit")
    found = pins(repo, HERE)
    told = {frozenset([pin.name]): pin.alone for pin in found.pins}
    told |= {frozenset(group.pins): group.amount for group in found.groups}
    assert {names: (amount.objects, amount.bytes) for names, amount in told.items() if amount.objects} == {
        names: amount for names, amount in pinned.kept(repo).items() if names
    }


def test_an_object_is_explained_by_its_path_and_by_its_address(repo, odd):
    holds.hold(repo, HoldKind.PREFIX, "tmp/bad", reason="audit")
    for one in (*explain(repo, text(BAD)), *explain(repo, odd[BAD]), *explain(repo, text(BAD), ref="main")):
        assert (one.address, one.paths, one.verdict) == (odd[BAD], (text(BAD),), "committed")
        assert [hold.reason for hold in one.orders] == ["audit"]
    repo.remove("main", text(BAD))
    repo.commit("main", "gone from the head")
    (one,) = explain(repo, text(BAD))
    assert (one.address, one.places) == (odd[BAD], ("history",))
    stage_odd(repo, "main", BAD, b"new")
    (one,) = explain(repo, text(BAD))
    assert [area.path for area in one.staged] == [text(BAD)]


def test_a_range_cache_of_an_older_desilt_is_made_again(repo, odd):
    explain(repo, odd[BAD])
    folder = repo.prefix + range_cache.FOLDER
    keys = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist()]
    (word,) = (key for key in keys if key.endswith(".json"))
    said = json.loads(repo.store.get(word))
    assert said["version"] == VERSION
    repo.store.put(word, [sealed({**said, "version": 2})])
    repo.store.put(word.replace(".json", ".parquet"), [b"x" * said["bytes"]])  # whatever was in it
    (one,) = explain(repo, text(BAD))
    assert one.paths == (text(BAD),)
    assert json.loads(repo.store.get(word))["version"] == VERSION
    table = pq.read_table(ObjectFile(repo.store, word.replace(".json", ".parquet")))
    assert table.schema.field("path").type == pa.binary()


# ---- on the command line


@pytest.mark.usefixtures("odd")
def test_commands_show_them_escaped(cli, uri):
    assert r"tmp/bad\xffutf8" in cli("lake", "ls", uri, "main", "-r")[1]
    rows = [json.loads(line) for line in cli("lake", "ls", uri, "main", "-r", "--json")[1].splitlines()]
    assert [row["path"] for row in rows] == [
        r"keep/\xffgood",
        "tmp/a\0b",
        r"tmp/bad\xffutf8",
        "tmp/plain",
        r"tmp/\xfe/x",
    ]
    assert [
        json.loads(line)["prefix"] for line in cli("lake", "ls", uri, "main", "tmp/", "--json")[1].splitlines()[-1:]
    ]
    assert r"+ tmp/bad\xffutf8" in cli("lake", "diff", uri, "main~1", "main")[1]
    changes = [json.loads(line) for line in cli("lake", "diff", uri, "main~1", "main", "--json")[1].splitlines()]
    assert {"kind": "added", "path": r"tmp/\xfe/x"} in changes


@pytest.mark.usefixtures("odd")
def test_commands_take_them_as_a_shell_gives_them(cli, repo, uri):
    path = text(BAD)
    assert r"tmp/bad\xffutf8" in cli("lake", "stat", uri, "main", path)[1]
    assert cli("lake", "get", uri, "main", path)[1] == "x"
    for answer in (cli("explain", uri, path), cli("explain", uri, path, "--json")):
        assert answer[0] == 0
        assert r"tmp/bad\xffutf8" in answer[1].replace(r"\\", "\\")
    assert cli("lake", "put", uri, "main", path, __file__)[0] == 2
    assert r"path 'tmp/bad\xffutf8' is not valid UTF-8" in cli("lake", "put", uri, "main", path, __file__)[2]
    assert cli("lake", "rm", uri, "main", path)[1] == "Removed tmp/bad\\xffutf8\n"
    stage_odd(repo, "main", BAD)
    assert r"staged on main as 'tmp/bad\xffutf8'" in cli("explain", uri, repo.stat("main", path).address)[1]
    assert cli("lake", "reset", uri, "main", "--path", path)[0] == 0
    assert r"no staged change at 'tmp/bad\xffutf8'" in cli("lake", "reset", uri, "main", "--path", path)[2]


def test_a_usage_error_tells_odd_bytes_too(cli, uri):
    assert r"'\xff' is not FIRST-LAST" in cli("lake", "get", uri, "main", "a", "--range", text(b"\xff"))[2]


@pytest.mark.usefixtures("odd")
def test_a_shell_gives_them_as_bytes(uri):
    command = [sys.executable, "-m", "desilt", "lake", "get", uri, "main"]
    done = subprocess.run([*map(str.encode, command), BAD], capture_output=True, check=True)
    assert done.stdout == b"x"


def test_a_check_tells_of_them(cli, repo, uri, odd):
    repo.store.delete_many([repo.prefix + odd[BAD]])
    code, out, _ = cli("fsck", uri)
    assert (code, r"tmp/bad\xffutf8" in out) == (1, True)
    code, out, _ = cli("fsck", uri, "--json")
    (found,) = (one for one in json.loads(out)["findings"] if one["kind"] == "missing-object")
    assert found["about"]["path"] == r"tmp/bad\xffutf8"
