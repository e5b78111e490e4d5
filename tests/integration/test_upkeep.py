"""One file and one command: what is due, in the right order, each step with its own guards."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import desilt
from desilt.domain.policy import parse
from desilt.domain.run import UPKEEP
from desilt.errors import BadRequest, NotFound, Refused, StorageFailed, WentBack
from desilt.executors.executor import HERE
from desilt.jobs import runner
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.packages import others
from desilt.lake.gate import LakeGate
from desilt.objects.local import LocalStore
from desilt.objects.store import Outcome, Result
from desilt.records import ledger, locks
from desilt.records.holds import Hold, HoldKind
from desilt.records.ledger import RunState
from desilt.runs.report import Amount
from desilt.runs.upkeep import StepState
from desilt.sweep import batches
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from desilt.upkeep import kept
from desilt.upkeep.chain import Chain
from desilt.upkeep.document import parse_upkeep
from words import add_hold, contents, days, later, put

START = datetime(2026, 1, 1, tzinfo=UTC)
DOCUMENT = {
    "lifecycle": {"policy": {"rules": {"tmp": {"prefix": "tmp/", "days": 20}}}, "max_share": "100%"},
    "expire": {"older_than": "30d", "max_share": "100%"},
    "collect": {"unreached_for": "1h", "max_share": "100%"},
    "gc": {"max_share": "100%"},
}
NAMES = ["lifecycle", "expire", "collect", "gc"]


@pytest.fixture
def full(repo):
    """Two months, a commit every three days; something for every step to do, and something that stays."""
    for number in range(20):
        put(repo, "main", "data", f"{number}" * 100)
        put(repo, "main", f"tmp/{number}", "t" * number)
        put(repo, "main", "lost", f"lost {number}")
        repo.reset("main", path="lost")
        if number >= 3:
            repo.remove("main", f"tmp/{number - 3}")
        repo.commit("main", f"commit {number}")
        days(repo, 3)
    return repo


def chain(repo, document=None, *, sweeps=True, **more):
    return Chain(repo, HERE, parse_upkeep(DOCUMENT if document is None else document), sweeps, given=True, **more)


def states(found):
    return {one.step: one.state for one in found.steps}


def names(repo, path):
    """The steps whose runs are on record, the first first."""
    with repo.database.read() as tx:
        return [row.job for row in reversed(ledger.every(tx, repo.uid)) if path in ("", row.state)]


def test_every_step_is_done_in_order_and_is_on_record(full):
    before = contents(full, "main")
    found = chain(full, confirm=["all"])()
    assert states(found) == dict.fromkeys(NAMES, StepState.DONE) | {"collect": StepState.NOTHING}
    assert [one.step for one in found.steps] == NAMES
    assert sorted(names(full, RunState.SWEPT)) == sorted(NAMES)
    assert found.exit_code == 0
    assert contents(full, "main") == before  # what is there is young
    assert oracle.garbage(full) == {}
    later(full, hours=2)
    again = chain(full, confirm=["all"])()
    assert states(again)["collect"] is StepState.DONE  # an hour after history was expired
    assert states(chain(full)()) == dict.fromkeys(NAMES, StepState.NOTHING)


def test_a_dry_run_removes_nothing_and_tells_the_bytes_at_the_end_of_it(full):
    before = oracle.stored(full)
    found = chain(full, sweeps=False)()
    assert oracle.stored(full) == before
    assert names(full, "") == []
    assert found.stored == Amount(len(before), sum(before.values()))
    assert found.freed_later.objects > 0
    assert found.goes.objects > 0
    chain(full, confirm=["all"])()
    days(full, 1)
    chain(full, confirm=["all"])()
    now = oracle.stored(full)
    assert found.left == Amount(len(now), sum(now.values()))


def test_what_two_steps_would_take_counts_once(full):
    """Old files below tmp/ go by a rule, and by the history that has them."""
    alone = chain(full, {"expire": DOCUMENT["expire"]}, sweeps=False)().freed_later
    both = chain(full, {name: DOCUMENT[name] for name in ("lifecycle", "expire")}, sweeps=False)()
    assert both.goes.objects > 0
    assert both.freed_later.objects < alone.objects


def test_each_first_run_is_refused_by_itself_and_can_be_confirmed_by_itself(full):
    found = chain(full)()
    assert states(found) == {
        "lifecycle": StepState.REFUSED,
        "expire": StepState.REFUSED,
        "collect": StepState.WAITS,
        "gc": StepState.REFUSED,
    }
    assert found.exit_code == 10
    assert found.steps[0].code == "first-run"
    again = chain(full, confirm=["gc", "expire"])()
    assert states(again)["gc"] is StepState.DONE
    assert states(again)["lifecycle"] is StepState.REFUSED
    assert states(again)["collect"] is StepState.NOTHING
    assert again.exit_code == 10


def test_what_is_offered_is_let_pass(full, uri, cli):
    found = chain(full)()
    for step in found.steps:
        if step.state is StepState.REFUSED:
            assert cli("sweep", uri, step.run, *step.passes.split())[0] == 0


def test_a_dry_run_offers_no_yes_that_would_not_be_enough(full, uri, cli):
    """Lifecycle takes 14 of 60 objects and gc 20: one by one that is less than half, together it is more."""
    document = {"lifecycle": {**DOCUMENT["lifecycle"], "max_share": "50%"}, "gc": {"max_share": "50%"}}
    would = chain(full, document, sweeps=False)()
    lifecycle, gc = would.steps
    assert [one.code for one in lifecycle.objections] == ["first-run"]
    assert [one.code for one in gc.objections] == ["first-run", "too-much"]
    found = chain(full, document, confirm=["all"])()
    assert states(found) == {"lifecycle": StepState.DONE, "gc": StepState.REFUSED}
    assert found.steps[1].planned == gc.planned
    assert found.stored == would.stored
    assert found.left == found.stored - found.steps[0].removed
    assert would.yes == "--confirm lifecycle --confirm gc"
    assert (lifecycle.settings, gc.settings) == ("", "max_share: 57%")
    document["gc"]["max_share"] = "57%"
    assert chain(full, document, sweeps=False, confirm=["gc"])().steps[1].objections == ()
    assert cli("sweep", uri, gc.run, *gc.passes.split())[0] == 0


def test_what_is_moved_to_the_trash_is_still_told(full):
    document = {"gc": {"to": "trash", "max_share": "100%"}, "trash": {"older_than": "1h"}}
    would = chain(full, document, sweeps=False)()
    assert would.trash_left == would.goes == would.steps[0].planned
    found = chain(full, document, confirm=["all"])()
    assert (found.trash, found.trash_left) == (Amount(), would.trash_left)
    days(full, 1)
    again = chain(full, document)()
    assert again.stored == found.left
    assert again.steps[1].removed == found.trash_left == again.trash
    assert again.trash_left == Amount()


def test_a_dry_run_knows_what_people_ordered_to_stay_in_the_trash(full):
    chain(full, {"lifecycle": {**DOCUMENT["lifecycle"], "to": "trash"}}, confirm=["all"])()
    add_hold(full, Hold("a-hold", HoldKind.PREFIX, "tmp/", "wait", full.clock(), None))
    days(full, 8)
    would, found = (chain(full, {"trash": {}}, sweeps=sweeps)() for sweeps in (False, True))
    assert states(would) == states(found) == {"trash": StepState.NOTHING}
    assert would.steps[0].why == found.steps[0].why == "14 are held by people's orders"
    assert would.trash_left == found.trash_left == would.trash


@pytest.mark.parametrize("names", [("lifecycle",), ("expire", "collect"), ("lifecycle", "gc")])
def test_what_is_told_to_be_stored_is(full, names):
    document = {name: DOCUMENT[name] for name in names}
    held = oracle.stored(full) if "gc" in names else kept_by_something(full)
    found = chain(full, document, confirm=["all"])()
    assert found.stored == Amount(len(held), sum(held.values()))
    now = oracle.stored(full) if "gc" in names else kept_by_something(full)
    assert found.stored - found.goes == Amount(len(now), sum(now.values()))


def kept_by_something(repo):
    there = oracle.stored(repo)
    return {address: there[address] for address in held_addresses(repo) if address in there}


def held_addresses(repo):
    """What any commit or staging area has."""
    metaranges = {one.metarange for one in oracle.history(repo).values()}
    committed = {one.address for some in oracle.contents(repo, metaranges).values() for one in some}
    return committed | oracle.staged(repo)


def test_what_a_branch_alone_has_is_not_all_that_is_stored(full):
    full.create_branch("dev", "main")
    found = chain(full, {"gc": {"branch": "dev"}}, sweeps=False)()
    assert found.stored.objects == len(kept_by_something(full))


def test_a_share_that_is_always_allowed_counts_over_a_month(repo):
    """Whoever set it has not seen how small the lake became: many steps together are still held to it."""
    for wave in range(6):
        for number in range(2 ** (5 - wave)):
            put(repo, "main", f"logs/{wave}/{number}", "x")
        repo.commit("main", f"wave {wave}")
        days(repo, 2)
    days(repo, 60)
    document = {"lifecycle": {"policy": {"rules": {"l": {"prefix": "logs/", "days": 100}}}, "max_share": "60%"}}
    told, confirm = [], ["lifecycle"]
    while StepState.REFUSED not in told:
        (step,) = chain(repo, document, confirm=confirm)().steps
        if step.state is not StepState.NOTHING:
            told, confirm = [*told, step.state], []
        days(repo, 2)
    assert told == [StepState.DONE, StepState.DONE, StepState.REFUSED]  # the first was looked at
    assert step.code == "shrinks"


def test_sweeps_that_are_offered_after_a_refusal_are_let_pass_one_after_the_other(full, uri, cli):
    found = chain(full, {"lifecycle": {"policy": DOCUMENT["lifecycle"]["policy"]}, "gc": {}})()
    assert states(found) == dict.fromkeys(["lifecycle", "gc"], StepState.REFUSED)
    for step in found.steps:
        assert cli("sweep", uri, step.run, *step.passes.split())[0] == 0


def test_a_step_that_is_not_due_waits_for_its_day(full):
    document = {"gc": {"every": "1d", "max_share": "100%"}}
    assert states(chain(full, document, confirm=["gc"])()) == {"gc": StepState.DONE}
    later(full, hours=20)
    found = chain(full, document)()
    assert states(found) == {"gc": StepState.NOT_DUE}
    assert found.steps[0].due == (full.clock() + timedelta(hours=3)).isoformat()  # a little early is no harm
    later(full, hours=3)
    assert states(chain(full, document)()) == {"gc": StepState.NOTHING}


def test_a_run_of_one_branch_does_not_count_for_all(full):
    document = {"gc": {"every": "7d", "max_share": "100%"}}
    runner.run(uncommitted.job, full, HERE, uncommitted.job.ask(branch="main"), Limits(confirm=True, max_share=1.0))
    assert states(chain(full, document, sweeps=False)())["gc"] is not StepState.NOT_DUE
    chain(full, document, confirm=["all"])()
    assert states(chain(full, document, sweeps=False)())["gc"] is StepState.NOT_DUE


def test_a_run_by_hand_counts_and_one_that_was_refused_does_not(full):
    document = {"gc": {"every": "1d", "max_share": "100%"}}
    chain(full, document)()
    assert states(chain(full, document)()) == {"gc": StepState.REFUSED}
    runner.run(uncommitted.job, full, HERE, None, Limits(confirm=True, max_share=1.0))
    assert states(chain(full, document)()) == {"gc": StepState.NOT_DUE}


# ---- what stops everything, and what does not


def test_a_damaged_history_stops_everything(full):
    with full.database.write() as tx:
        tx.execute("DELETE FROM branches")
    found = chain(full, confirm=["all"])()
    assert states(found) == {"lifecycle": StepState.FAILED} | dict.fromkeys(NAMES[1:], StepState.NOT_TRIED)
    assert (found.exit_code, found.steps[0].code) == (1, "unreadable")
    assert names(full, "") == []


def test_a_database_that_went_back_stops_everything(full, monkeypatch):
    def restored(_):
        raise WentBack("the database knows less than the store")

    monkeypatch.setattr(LakeGate, "check", restored)
    found = chain(full, confirm=["all"])()
    assert states(found)["lifecycle"] is StepState.FAILED
    assert set(list(states(found).values())[1:]) == {StepState.NOT_TRIED}
    assert found.exit_code == 10


def test_a_store_that_fails_stops_everything(full, monkeypatch):
    monkeypatch.setattr(LocalStore, "delete_many", lambda *_, **__: (_ for _ in ()).throw(StorageFailed("no disk")))
    found = chain(full, confirm=["all"])()
    assert states(found)["lifecycle"] is StepState.FAILED
    assert found.exit_code == 1


def test_another_run_at_work_stops_everything(full):
    with locks.held(full.database, full.uid, run="another"):
        found = chain(full, confirm=["all"])()
    assert found.exit_code == 11
    assert states(found) == {"lifecycle": StepState.FAILED} | dict.fromkeys(NAMES[1:], StepState.NOT_TRIED)


def test_a_limit_stops_its_own_step_and_what_needs_it(full):
    document = DOCUMENT | {"expire": {"older_than": "30d", "max_share": "1%"}}
    found = chain(full, document, confirm=["all"])()
    assert states(found) == {
        "lifecycle": StepState.DONE,
        "expire": StepState.REFUSED,
        "collect": StepState.WAITS,
        "gc": StepState.DONE,
    }
    assert "expire was refused" in found.steps[2].why


def test_objects_that_cannot_be_removed_are_3_and_the_rest_goes_on(full, monkeypatch):
    real = batches.delete

    def failing(store, keys, **more):
        found = real(store, keys[1:], **more) if len(keys) > 1 else []
        return [Outcome(keys[0], Result.FAILED, "no"), *found]

    monkeypatch.setattr(batches, "delete", failing)
    found = chain(full, confirm=["all"])()
    assert states(found)["lifecycle"] is StepState.PARTLY
    assert states(found)["gc"] is StepState.PARTLY
    assert found.exit_code == 3


def test_a_job_that_is_refused_for_what_it_is_told_stops_alone(full):
    document = {"lifecycle": {}, "gc": {"max_share": "100%"}}  # and no policy is set
    found = chain(full, document, confirm=["all"])()
    assert states(found) == {"lifecycle": StepState.REFUSED, "gc": StepState.DONE}
    assert "has no lifecycle policy" in found.steps[0].why


def test_cut_off_in_a_step_the_next_upkeep_finishes_it(full, monkeypatch):
    def dying(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batches, "delete", dying)
        with pytest.raises(KeyboardInterrupt):
            chain(full, confirm=["all"])()
    assert names(full, RunState.SWEEPING) == ["lifecycle"]
    would = chain(full, {"expire": DOCUMENT["expire"]}, sweeps=False)()
    assert would.steps[0].why.startswith("run that was cut off, and is finished first")
    found = chain(full, {"expire": DOCUMENT["expire"]}, confirm=["all"])()
    assert found.exit_code == 0
    assert names(full, RunState.SWEEPING) == []
    assert [one.step for one in found.steps] == ["lifecycle", "expire"]
    assert found.steps[0].why.startswith("finished a run that was cut off")
    assert found.steps[0].removed == would.steps[0].planned
    assert found.steps[0].removed.objects > 0


def test_what_is_finished_in_part_is_told_in_the_exit_code(full, monkeypatch):
    def dying(*_, **__):
        raise KeyboardInterrupt

    def failing(_store, keys, **_):
        return [Outcome(key, Result.FAILED, "no") for key in keys]

    monkeypatch.setattr(batches, "delete", dying)
    with pytest.raises(KeyboardInterrupt):
        chain(full, {"gc": {"max_share": "100%"}}, confirm=["all"])()
    monkeypatch.setattr(batches, "delete", failing)
    found = chain(full, {"expire": DOCUMENT["expire"]}, confirm=["all"])()
    assert (found.exit_code, found.steps[0].state) == (3, StepState.PARTLY)


def test_the_trash_is_emptied_last(full):
    document = DOCUMENT | {"gc": {"to": "trash", "max_share": "100%"}, "trash": {"older_than": "7d"}}
    first = chain(full, document, confirm=["all"])()
    assert states(first)["trash"] is StepState.NOTHING
    trashed = first.steps[3].removed
    assert trashed.objects > 0
    days(full, 8)
    would = chain(full, document, sweeps=False)()
    assert would.steps[-1].planned == trashed
    assert would.trash == trashed
    found = chain(full, document)()
    assert found.steps[-1].removed == trashed


# ---- what is set


def test_a_policy_of_an_upkeep_becomes_that_of_the_lake(full):
    made = parse_upkeep(DOCUMENT)
    kept.keep(full, made, kept.findings(full, made))
    assert kept_policy.kept(full).policy == made.policy
    assert kept.kept(full).upkeep == made
    with full.database.read() as tx:
        assert ledger.every(tx, full.uid) == []
    assert states(Chain(full, HERE, kept.kept(full).upkeep, True, confirm=["all"])())["lifecycle"] is StepState.DONE


def test_a_policy_that_was_set_otherwise_since_stops_its_step(full):
    made = parse_upkeep(DOCUMENT)
    kept.keep(full, made, [])
    kept_policy.keep(full, parse({"other": {"prefix": "other/", "days": 1}}))
    found = Chain(full, HERE, kept.kept(full).upkeep, True, confirm=["all"])()
    assert states(found)["lifecycle"] is StepState.REFUSED
    assert "was set otherwise on" in found.steps[0].why
    assert states(found)["gc"] is StepState.DONE


def test_lint_tells_what_may_be_forgotten(full):
    def told(document):
        return {(one.rule, one.fact) for one in kept.findings(full, parse_upkeep(document))}

    assert told({"gc": {}, "expire": {"older_than": "3d"}}) == {
        ("expire", "history is expired, and nothing collects what that releases")
    }
    assert {rule for rule, _ in told({"gc": {"to": "trash"}})} == {"gc"}
    assert {rule for rule, _ in told({"gc": {}, "trash": {}})} == {"trash"}
    dated = {"expire": {"older_than": "2026-01-05"}, "collect": {}}
    assert told(dated) == {("expire", "it goes by a date that never moves")}
    narrower = {"a": {"prefix": "tmp/", "days": 1}, "b": {"prefix": "tmp/x", "days": 9}}
    with pytest.raises(BadRequest):
        kept.agree(kept.findings(full, parse_upkeep({"lifecycle": {"policy": {"rules": narrower}}})), confirm=True)


def test_a_job_of_another_package_is_a_step(full, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "oversized_jobs-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: oversized-jobs\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[desilt.jobs]\noversized = oversized:job\n")
    shutil.copy(Path(__file__).parents[1] / "fixtures" / "plugged" / "oversized.py", tmp_path)
    others.cache_clear()
    found = chain(full, {"oversized": {"at_least": 5, "max_share": "100%"}, "gc": {}}, confirm=["oversized"])()
    assert states(found)["oversized"] is StepState.DONE
    made = parse_upkeep({"oversized": {"at_least": 5}})
    kept.keep(full, made, [])
    monkeypatch.undo()
    others.cache_clear()
    with pytest.raises(Refused, match="cannot be read here: upkeep: there is no step 'oversized'"):
        kept.kept(full)


# ---- from the shell, and from Python


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "upkeep.yaml"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_from_the_shell(full, uri, cli, file):
    code, _, err = cli("upkeep", "plan", uri)
    assert (code, "set one with `desilt upkeep set`" in err) == (1, True)
    code, out, err = cli("upkeep", "lint", uri, file)
    assert (code, err) == (0, "")
    code, out, err = cli("upkeep", "set", uri, file)
    assert (code, err) == (0, "")
    assert f"desilt upkeep plan {uri}" in out
    assert parse_upkeep(json.loads(cli("upkeep", "get", uri, "--json")[1])["upkeep"]) == parse_upkeep(DOCUMENT)
    assert cli("upkeep", "get", uri)[1].startswith("# The upkeep of demo, set 2026-03-02")
    code, out, _ = cli("upkeep", "plan", uri)
    assert code == 0
    assert "To agree to" in out
    code, out, err = cli("upkeep", "run", uri)
    assert code == 10
    agree = out.rpartition("To agree to all of it: desilt ")[2].split()
    assert agree == ["upkeep", "run", uri, "--confirm", "lifecycle", "--confirm", "expire", "--confirm", "gc"]
    assert [line.split(":")[:2] for line in err.splitlines()] == [
        ["error", f" {name}"] for name in ("lifecycle", "expire", "gc")
    ]
    code, out, err = cli("-q", "upkeep", "run", uri, "--json")
    assert (code, len(err.splitlines())) == (10, 3)  # what a scheduler mails
    assert [one["objections"][0]["code"] for one in json.loads(out)["steps"] if one["objections"]] == ["first-run"] * 3
    code, out, _ = cli("upkeep", "run", uri, "--confirm", "gc,lifecycle", "--confirm", "expire", "--json")
    told = json.loads(out)
    assert (code, len(out.splitlines())) == (0, 1)
    assert [one["state"] for one in told["steps"]] == ["done", "done", "nothing to do", "done"]
    page = full.store.get(f"{full.prefix}_desilt/runs/{UPKEEP}/{told['run']}/upkeep.html").decode()
    for words in ("Step by step", "Stored before and at the end", "its report"):
        assert words in page
    code, _, err = cli("upkeep", "run", uri, "--confirm", "gcc")
    assert (code, "there are lifecycle, expire, collect, gc, all" in err) == (2, True)
    file.write_text("gc: {every: never}")
    assert cli("upkeep", "set", uri, file)[0] == 2
    assert cli("upkeep", "plan", uri, "--file", file)[0] == 2
    assert UPKEEP not in {line.split("\t")[1] for line in cli("runs", uri)[1].splitlines()}


def test_a_file_that_was_given_is_given_again_in_what_is_offered(full, uri, cli, file):
    words = cli("upkeep", "plan", uri, "--file", file)[1].rpartition("To agree to all of it: desilt ")[2].split()
    assert words[2:5] == [uri, "--file", str(file)]
    assert cli(*words)[0] == 0
    assert states(chain(full)()) == dict.fromkeys(NAMES, StepState.NOTHING)


def test_from_python(full, uri):
    assert full
    with desilt.open(uri) as repo:
        with pytest.raises(NotFound):
            repo.upkeep.plan()
        repo.upkeep.set(DOCUMENT)
        assert repo.upkeep.get().document == DOCUMENT
        assert repo.upkeep.plan().goes.objects > 0
        assert repo.upkeep.run(confirm=["all"]).exit_code == 0
        assert repo.upkeep.plan({"gc": {}}).steps[0].state is StepState.NOTHING
        with pytest.raises(BadRequest, match="give the names of steps"):
            repo.upkeep.run(confirm="all")
        with pytest.raises(BadRequest, match="no step 'gcc'"):
            repo.upkeep.set({"gcc": {}})


def test_what_was_done_in_part_is_due_again(full, monkeypatch):
    document = {"gc": {"every": "1d", "max_share": "100%"}}
    with monkeypatch.context() as patch:
        patch.setattr(batches, "delete", lambda _, keys, **__: [Outcome(key, Result.FAILED, "no") for key in keys])
        assert states(chain(full, document, confirm=["gc"])()) == {"gc": StepState.PARTLY}
    assert states(chain(full, document)()) == {"gc": StepState.DONE}
