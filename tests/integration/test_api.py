"""`import desilt`: opened, planned, looked at, swept, explained."""

import pickle
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import desilt
from desilt.errors import BadRequest, Conflict, FirstRun, InvalidUri, NotFound, StalePlan
from desilt.executors.on_spark import OnSpark
from desilt.lake import Lake
from desilt.objects import open_store
from desilt.runs.report import Amount
from words import contents

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = {"logs": {"prefix": "logs/", "days": 7}}
AS_YAML = "logs:\n  prefix: logs/\n  days: 7\n"


@pytest.fixture
def lake(tmp_path):
    made = Lake.create(tmp_path / "lake")
    yield made
    made.close()


@pytest.fixture
def mine(lake):
    """A repository of two committed objects and one that nothing holds."""
    made = lake.create_repository("mine", clock_at=START)
    made.put("main", "logs/a", b"aa")
    made.put("main", "kept", b"x")
    made.commit("main", "one")
    made.lost = made.put("main", "lost", b"lost").address
    made.reset("main")
    made.set_clock(START + timedelta(days=30))
    return made


@pytest.fixture
def uri(mine, tmp_path):
    return f"{tmp_path}/lake#{mine.name}"


@pytest.fixture
def repo(uri):
    with desilt.open(uri) as opened:
        yield opened


def test_a_plan_is_made_looked_at_and_swept(mine, repo):
    plan = repo.gc.plan()
    assert plan.report.removed == Amount(1, 4)
    assert (plan.job, plan.safety, repo.safety) == ("gc", "atomic", "atomic")
    table = plan.removals()
    assert isinstance(table, pa.Table)
    assert table.select(["address", "path", "branch", "size", "reason"]).to_pylist() == [
        {"address": mine.lost, "path": None, "branch": "main", "size": 4, "reason": "unreferenced"}
    ]
    assert isinstance(plan.refusal(), FirstRun)
    with pytest.raises(desilt.DesiltError) as refused:
        plan.sweep()
    assert refused.value.code == FirstRun.code
    result = plan.sweep(confirm=True, max_share="100%")
    assert (result.swept.removed, result.swept.bytes) == (1, 4)
    assert plan.sweep() == result  # told again
    assert contents(mine, "main") == {"logs/a": "aa", "kept": "x"}
    assert [(run.id, run.state) for run in repo.runs()] == [(plan.run, "swept")]
    assert repo.report() == result
    assert repo.explain(mine.lost)[0].removal.run == plan.run


def test_another_process_sweeps_by_the_id_of_a_run(mine, uri):
    with desilt.open(uri) as one:
        run = one.gc.plan(action="trash").run
    with desilt.open(uri) as other:
        assert other.planned(run).sweep(confirm=True, max_share=1.0).swept.removed == 1
        assert other.restore(run).restored == 1
    assert mine.store.get(mine.prefix + mine.lost) == b"lost"


def test_a_run_is_both_and_the_trash_is_emptied(repo, mine):
    assert repo.gc.run(action="trash", confirm=True, max_share="100%").swept.removed == 1
    assert repo.purge(older_than="7d").objects == 0
    mine.set_clock(mine.clock() + timedelta(days=8))
    assert repo.purge(older_than=timedelta(days=7)).objects == 1


@pytest.mark.parametrize("form", ["mapping", "text", "path", "policy"])
def test_lifecycle_takes_a_policy_in_any_form(repo, tmp_path, form):
    (tmp_path / "policy.yaml").write_text(AS_YAML)
    given = {"mapping": POLICY, "text": AS_YAML, "path": tmp_path / "policy.yaml"}.get(form)
    if form == "policy":
        repo.lifecycle.set(POLICY)
        given = repo.lifecycle.get()
    plan = repo.lifecycle.plan(policy=given)
    assert plan.removals().select(["path", "paths", "rule"]).to_pylist() == [
        {"path": "logs/a", "paths": ["logs/a"], "rule": "logs"}
    ]
    assert plan.sweep(confirm=True, max_share=1.0).swept.removed == 1
    assert repo.explain("logs/a")[0].removal.rule == "logs"
    assert repo.lifecycle.plan(policy=given, now="2026-01-05").report.removed.objects == 0


def test_a_policy_is_simulated(repo):
    found = repo.simulate(AS_YAML, first="2026-01-02", every="7d")
    assert found.sides[0].removed.objects == 1


def test_history_expires_and_is_collected(mine, repo):
    mine.put("main", "more", b"y")
    mine.commit("main", "two")
    mine.set_clock(mine.clock() + timedelta(days=3))
    mine.put("main", "and more", b"y")
    mine.commit("main", "three")
    assert repo.expire.plan(older_than="1d", keep="daily=7").report.history["abandoned"] == 0
    assert repo.expire.plan(before="2026-01-01").report.history["abandoned"] == 0
    assert repo.expire.plan(older_than="1d", keep_last=2).report.history["abandoned"] == 1
    report = repo.expire.run(older_than=timedelta(days=1), confirm=True, max_share=1.0)
    assert report.history["abandoned"] == 2
    assert repo.collect.plan().report.history["commits collected"] == 0  # released a moment ago
    mine.set_clock(mine.clock() + timedelta(days=2))
    assert repo.collect.run(confirm=True, max_share=1.0).history["commits collected"] == 2


def test_holds_are_made_told_and_lifted(mine, repo):
    made = repo.holds.add(prefix="logs/", reason="an audit", until="30d")
    assert [hold.id for hold in repo.holds] == [made.id]
    assert made.until == mine.clock() + timedelta(days=30)
    assert repo.lifecycle.plan(policy=POLICY).report.removed.objects == 0
    repo.holds.lift(made)
    assert len(repo.holds) == 0
    assert repo.lifecycle.plan(policy=POLICY).report.removed.objects == 1
    repo.holds.add(address=mine.lost, reason="evidence")
    repo.holds.add(ref="main", reason="a release")
    assert repo.gc.plan().report.removed.objects == 0


def test_what_keeps_the_bytes_is_told(repo):
    assert {pin.name for pin in repo.pins().pins} == {"branch main"}


@pytest.mark.parametrize(
    ("misuse", "told"),
    [
        (lambda repo: repo.gc.plan(brnach="main"), "has no option 'brnach'"),
        (lambda repo: repo.gc.plan(confirm=True), "has no option 'confirm'"),
        (lambda repo: repo.gc.plan(branch=3), "give a text"),
        (lambda repo: repo.gc.plan(full="yes"), "give True or False"),
        (lambda repo: repo.gc.plan(action="burn"), "write one of delete, trash, purge-versions"),
        (lambda repo: repo.gc.plan(now=datetime(2026, 1, 1)), "with a time zone"),  # noqa: DTZ001
        (lambda repo: repo.gc.plan(dropped_for=timedelta(days=-1)), "less than no time"),
        (lambda repo: repo.gc.run(max_share=30), "from 0 to 1"),
        (lambda repo: repo.gc.run(max_shrae=0.3), "has no option 'max_shrae'"),
        (lambda repo: repo.gc.run(max_objects=True), "give a whole number"),
        (lambda repo: repo.expire.plan(), "give 'older_than' or 'before'"),
        (lambda repo: repo.expire.plan(older_than="1d", before="2026-01-01"), "once"),
        (lambda repo: repo.expire.plan(older_than="soon"), "neither a date nor a length"),
        (lambda repo: repo.expire.plan(older_than="1d", keep={"minutely": 3}), "not a rule of what to keep"),
        (lambda repo: repo.expire.plan(older_than="1d", keep={"daily": 0}), "keep nothing"),
        (lambda repo: repo.lifecycle.plan(policy=3), "not int"),
        (lambda repo: repo.lifecycle.plan(policy="logs:\n  prefx: a\n"), "prefx"),
        (lambda repo: repo.holds.add(reason="x"), "names one thing"),
        (lambda repo: repo.holds.add(prefix="a", ref="main", reason="x"), "names one thing"),
        (lambda repo: repo.holds.add(prefix="a", reason=" "), "needs a reason"),
        (lambda repo: repo.purge(older_than=7), "length of time"),
        (lambda repo: repo.explain(7), "give a text"),
        (lambda repo: repo.job(7), "give a text"),
        (lambda repo: repo.gc.plan("main"), r"plan\(…\): too many positional"),
        (lambda repo: repo.pins(limits=3), r"pins\(…\): got an unexpected keyword argument 'limits'"),
        (lambda repo: repo.pins(limit=-1), "how many groups"),
        (lambda repo: repo.restore(), r"restore\(…\): missing a required argument: 'run'"),
        (lambda repo: repo.holds.add(prefix="a/"), "needs a reason"),
        (lambda repo: repo.collect.plan(action="trash"), "has no use for the trash"),
        (lambda _: desilt.open(), r"open_repository\(…\): missing"),
        (lambda _: Lake.open(3), "not by int"),
    ],
)
def test_misuse_is_told_with_the_way_out_and_nothing_is_written(repo, misuse, told):
    with pytest.raises(BadRequest, match=told) as raised:
        misuse(repo)
    assert raised.value.code == "bad-request"
    assert repo.runs() == []


@pytest.mark.parametrize(
    "missing",
    [
        lambda repo: repo.job("sweeping"),
        lambda repo: repo.planned("00"),
        lambda repo: repo.lifecycle.plan(policy="nowhere.yaml"),
        lambda repo: repo.lifecycle.get(),
        lambda repo: repo.explain("nowhere"),
    ],
)
def test_what_is_not_there_is_told(repo, missing):
    with pytest.raises(NotFound):
        missing(repo)


def test_a_closed_repository_is_told_of_and_closing_twice_is_closing_once(uri):
    repo = desilt.open(uri)
    plan, holds = repo.gc.plan(), repo.holds
    repo.close()
    repo.close()
    for use in (repo.runs, repo.gc.plan, plan.sweep, plan.removals, lambda: list(holds), lambda: repo.name):
        with pytest.raises(BadRequest, match=r"was closed; open it again with desilt\.open"):
            use()
    assert "closed" in repr(repo)
    assert "would go" in plan._repr_html_()


def test_notebooks_are_shown_what_goes_and_how_to_go_on(repo):
    plan = repo.gc.plan()
    evil = replace(plan.report, remove={"<script>alert(1)</script>": {"<b>": Amount(1, 4)}})
    assert "<script" not in evil._repr_html_()
    assert "&lt;script&gt;" in evil._repr_html_()
    page = plan._repr_html_()
    for words in ("would go", "stays", "Safety: <b>atomic</b>", plan.run):
        assert words in page
    offered = re.search(r"<code>plan\.sweep\((.*?)\)</code>", page)[1]
    swept = plan.sweep(**eval(f"dict({offered})"))._repr_html_()  # what is offered is let pass
    assert "Done: 1 object" in swept
    assert "Done: 1 object" in plan._repr_html_()  # of the same plan
    assert "would be refused" not in repo.planned(plan.run)._repr_html_()
    assert plan.refusal() is None


def test_on_spark_the_same_goes_and_rows_are_a_frame(spark, uri):
    with desilt.open(uri, spark=spark) as repo:
        plan = repo.lifecycle.plan(policy=POLICY)
        frame = plan.removals()
        assert [row.asDict()["path"] for row in frame.collect()] == ["logs/a"]
        assert frame.count() == 1
        assert dict(frame.dtypes)["size"] == "bigint"
        assert repo.expire.plan(older_than="1d").removals().count() == 0
        assert plan.sweep(confirm=True, max_share=1.0).swept.removed == 1


def test_an_error_of_a_task_arrives_as_it_was(spark):
    with pytest.raises(InvalidUri, match="nowhere") as raised:
        OnSpark(spark)(open_store, ["nowhere://x"])
    assert raised.value.code == "invalid-uri"
    stale = pickle.loads(pickle.dumps(StalePlan("a run", timedelta(days=2), timedelta(days=1))))
    assert (stale.code, stale.age) == ("stale-plan", timedelta(days=2))
    assert "plan again" in str(stale)


def test_what_a_task_says_by_a_name_it_was_given_is_not_taken_for_an_error_of_ours(spark):
    planted = f"desilt raised <{b64encode(pickle.dumps(Conflict('planted'))).decode()}>"
    with pytest.raises(InvalidUri, match="planted-here"):
        OnSpark(spark)(open_store, [f"planted-here://{planted}"])


def test_what_is_no_session_is_refused(uri):
    with pytest.raises(BadRequest, match="no Spark session"):
        desilt.open(uri, spark="local[2]")


def test_a_lake_is_made_and_opened_by_what_people_write(tmp_path):
    Lake.create(f"{tmp_path}/another").create_repository("one")
    lake = Lake.open(f"lake://{tmp_path}/another")
    assert lake.repositories() == ["one"]
    lake.close()
    with desilt.open(tmp_path / "another") as repo, pytest.raises(Conflict):
        repo.restore(repo.gc.run(confirm=True).run)
