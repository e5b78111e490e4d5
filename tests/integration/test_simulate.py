"""A policy replayed over the past: what each day would have removed, and that nothing is."""

import io
import json
import random
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from desilt.cache.metaranges import Lists
from desilt.cache.ranges import Placed
from desilt.columns.files import HeldFile
from desilt.domain.history import Commit
from desilt.domain.policy import parse
from desilt.errors import Conflict, NothingToCommit
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs import trash
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import simulate as simulating
from desilt.jobs.lifecycle.replay import Ground, reaching
from desilt.jobs.lifecycle.simulate import Rehearsal, simulate
from desilt.jobs.runner import plan, run
from desilt.records import locks, watermarks
from desilt.records.holds import Hold, HoldKind
from desilt.render.plots import ticks
from desilt.render.simulation import render
from desilt.runs.folder import runs_of
from desilt.runs.report import Amount
from desilt.runs.simulation import Side, Simulation, Step
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import add_hold, days

START = datetime(1998, 1, 1, 12, tzinfo=UTC)  # noon, so that days have no edges in a story
DAY = timedelta(days=1)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
TWO_DAYS = {"tmp": {"prefix": "tmp/", "days": 2}}


def commit(repo, branch, *paths):
    found = [repo.put(branch, path, path.encode()).address for path in paths]
    repo.commit(branch, " ".join(paths))
    return found


def at(day, hour=0):
    """The beginning of a day of January 1998."""
    return datetime(1998, 1, day, hour, tzinfo=UTC)


def ask(new, old=None, first=START, last=None, every=DAY):
    return Rehearsal(parse(new), parse(old) if old else None, first, last, every)


def by_day(found, side=0):
    return {step.at.day: step.removed.objects for step in found.sides[side].steps}


def listed(repo, folder):
    """The addresses in all plan files below a folder."""
    keys = [key for batch in repo.store.list(repo.prefix + folder) for key in batch["key"].to_pylist()]
    plans = [key for key in keys if "/plan/" in key]
    return [row for key in plans for row in pq.read_table(io.BytesIO(repo.store.get(key)))["address"].to_pylist()]


def story(repo):
    """A commit at noon on each of the first three days, with one file of ours each, and one of others'."""
    commit(repo, "main", "tmp/a", "data/a")
    days(repo, 1)
    commit(repo, "main", "tmp/bb", "data/b")
    days(repo, 1)
    commit(repo, "main", "tmp/ccc", "data/c")
    days(repo, 5)


def test_what_is_two_days_old_goes_on_the_day_after(repo):
    story(repo)
    found = simulate(repo, HERE, ask(TWO_DAYS, first=at(1), last=at(7)))
    assert by_day(found) == {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 0}
    assert [amount.bytes for amount in found.sides[0].so_far()] == [0, 0, 0, 5, 11, 18, 18]
    assert found.sides[0].by_rule == {"tmp": {"main": Amount(3, 18)}}


def test_a_day_counts_from_the_very_moment(repo):
    story(repo)
    noon, later = START + 2 * DAY, START + 2 * DAY + timedelta(hours=1)
    found = simulate(repo, HERE, ask(TWO_DAYS, first=noon, last=later, every=timedelta(hours=1)))
    assert [step.removed.objects for step in found.sides[0].steps] == [0, 1]


def test_what_was_committed_later_was_not_there_then(repo):
    (first,) = commit(repo, "main", "tmp/a")
    days(repo, 3)
    repo.copy("main", "tmp/a", "main", "data/a")  # from here on, another path keeps it
    repo.commit("main", "copied")
    days(repo, 3)
    found = simulate(repo, HERE, ask(TWO_DAYS, first=START, last=START + 2 * DAY + DAY / 2))
    assert by_day(found) == {1: 0, 2: 0, 3: 0, 4: 1}
    assert listed(repo, f"_desilt/runs/simulate/{found.run}/new/") == [first]
    assert simulate(repo, HERE, ask(TWO_DAYS, first=START + 4 * DAY)).sides[0].removed.objects == 0


def test_a_branch_that_was_not_there_keeps_nothing(repo):
    commit(repo, "main", "tmp/a")
    days(repo, 3)
    repo.create_branch("slow", "main")
    days(repo, 3)
    rules = {"tmp": {"prefix": "tmp/", "days": 2, "branch_days": {"slow": 30}}}
    assert by_day(simulate(repo, HERE, ask(rules, first=at(3), last=at(5)))) == {3: 0, 4: 1, 5: 0}
    assert by_day(simulate(repo, HERE, ask(rules, first=at(5), last=at(6)))) == {5: 0, 6: 0}


def test_a_branch_stood_where_its_line_was(repo):
    """What the head has stays by a rule for old versions; the head of then is not the one of now."""
    commit(repo, "main", "tmp/a")
    days(repo, 4)
    repo.put("main", "tmp/a", b"newer")
    repo.commit("main", "over it")
    days(repo, 1)
    rules = {"old": {"prefix": "", "days": 1, "noncurrent_only": True}}
    assert by_day(simulate(repo, HERE, ask(rules, first=at(3), last=at(6)))) == {3: 0, 4: 0, 5: 0, 6: 1}


def test_tags_and_holds_count_from_when_they_were_made(repo):
    kept, held = commit(repo, "main", "tmp/a"), commit(repo, "main", "tmp/b")
    repo.remove("main", "tmp/a")
    repo.commit("main", "gone from the head")
    days(repo, 3)
    until = repo.clock() + 2 * DAY
    add_hold(repo, Hold("h1", HoldKind.ADDRESS, held[0], "a lawsuit", repo.clock(), until))
    repo.create_tag("v1", "main~2")
    days(repo, 5)
    whole = simulate(repo, HERE, ask(TWO_DAYS, first=at(4), last=at(5)))
    assert by_day(whole) == {4: 2, 5: 0}
    since = simulate(repo, HERE, ask(TWO_DAYS, first=at(5), last=at(8)))
    assert by_day(since) == {5: 0, 6: 0, 7: 1, 8: 0}
    assert listed(repo, f"_desilt/runs/simulate/{since.run}/new/") == held
    assert kept != held


def test_an_object_on_two_branches_counts_on_both_and_once_in_all(repo):
    commit(repo, "main", "tmp/a")
    repo.create_branch("dev", "main")
    commit(repo, "dev", "tmp/bb")
    days(repo, 4)
    (step,) = simulate(repo, HERE, ask(TWO_DAYS, first=repo.clock())).sides[0].steps
    assert step.removed == Amount(2, 11)
    assert step.branches == {"dev": Amount(2, 11), "main": Amount(1, 5)}


def test_what_a_run_has_removed_is_not_counted_again(repo):
    story(repo)
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse({"r": {"prefix": "tmp/a", "days": 2}})), SURE)
    assert simulate(repo, HERE, ask(TWO_DAYS, first=at(1))).sides[0].removed.objects == 2


def test_what_came_back_from_the_trash_goes_once(repo):
    story(repo)
    asked = lifecycle.job.ask(policy=parse(TWO_DAYS), action=Action.TRASH)
    report = run(lifecycle.job, repo, HERE, asked, SURE)[-1]
    trash.bring_back(repo, HERE, report.run)
    days(repo, 3)
    assert by_day(simulate(repo, HERE, ask(TWO_DAYS, first=at(5), last=at(7)))) == {5: 2, 6: 1, 7: 0}


def test_what_is_staged_counts_on_the_last_day_only(repo):
    commit(repo, "main", "tmp/a")
    days(repo, 4)
    repo.copy("main", "tmp/a", "main", "data/a")
    assert simulate(repo, HERE, ask(TWO_DAYS, first=repo.clock())).sides[0].removed.objects == 0
    assert simulate(repo, HERE, ask(TWO_DAYS, first=at(4))).sides[0].removed.objects == 1


def test_commits_of_one_moment_are_dated_a_little_ahead_and_are_there_all_the_same(repo):
    commit(repo, "main", "tmp/a")
    days(repo, 4)
    commit(repo, "main", "data/b")
    repo.copy("main", "tmp/a", "main", "data/a")
    assert repo.commit("main", "copied").created_at > repo.clock()
    report = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse(TWO_DAYS), full=True))
    assert simulate(repo, HERE, ask(TWO_DAYS, first=repo.clock())).sides[0].removed == report.removed == Amount()


def test_a_range_is_reached_by_whoever_reaches_any_commit_that_lists_it():
    file = HeldFile("file", 3, "", {})
    base = Ground(Lists({}, {"m1": ["r1", "r2"], "m2": ["r1"]}), [Placed(file, 3, {0: "r1", 1: "r2", 2: "later"})])
    made = {name: Commit(name, (), of, START, "", "") for name, of in (("c1", "m1"), ("c2", "m2"), ("c3", "m2"))}
    found = reaching(base, made, {"c1": 1, "c2": 2, "c3": 4})
    ((_, places),) = found.files
    assert [found.sets[place] if place >= 0 else None for place in places] == [7, 1, None]


@pytest.mark.parametrize("seed", range(6))
def test_the_last_day_is_a_full_plan_of_now(repo, seed):
    wander(repo, random.Random(seed))
    for rules in POLICIES:
        report = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse(rules), full=True))
        found = simulate(repo, HERE, ask(rules, first=repo.clock()))
        planned = listed(repo, f"_desilt/runs/lifecycle/{report.run}/")
        assert sorted(listed(repo, f"_desilt/runs/simulate/{found.run}/")) == sorted(planned)
        assert set(planned) == oracle.expired(repo, parse(rules), repo.clock())
        (step,) = found.sides[0].steps
        assert step.rules == {rule: sum(some.values(), Amount()) for rule, some in report.remove.items()}


@pytest.mark.parametrize("seed", range(4))
def test_day_by_day_takes_what_looking_at_everything_each_day_takes(repo, seed, monkeypatch):
    wander(repo, random.Random(seed))
    monkeypatch.setattr(simulating, "FILES", 2)
    rules = POLICIES[seed % len(POLICIES)]
    found = simulate(repo, HERE, ask(rules))
    monkeypatch.setattr(simulating, "potential", lambda dated, _last, _now: set(dated))
    full = simulate(repo, HERE, ask(rules))
    assert found.sides[0].steps == full.sides[0].steps
    taken = listed(repo, f"_desilt/runs/simulate/{found.run}/")
    assert len(taken) == len(set(taken)) == found.sides[0].removed.objects > 0
    plain = simulate(repo, HERE, ask(rules, first=repo.clock())).sides[0].removed
    assert found.sides[0].removed.objects >= plain.objects  # some went before anybody else came to hold them


POLICIES = (
    {"all": {"prefix": "", "days": 3}},
    {"a": {"prefix": "a", "days": 2, "branch_days": {"dev": 5}}, "b": {"prefix": "b", "days": 1}},
    {"rules": {"old": {"prefix": "", "days": 1, "noncurrent_only": True}}, "keep": [{"prefix": "c/"}]},
    {"rules": {"all": {"prefix": "", "days": 4}}, "tags": "ignore"},
)


def wander(repo, chance):
    """Three weeks of work on some branches."""
    branches = ["main"]
    for number in range(60):
        branch = chance.choice(branches)
        what = chance.choice(["put", "put", "put", "commit", "commit", "copy", "merge", "branch", "tag", "rm", "wait"])
        try:
            if what == "put":
                repo.put(branch, f"{chance.choice('abc')}/{chance.randrange(9)}", f"{number}".encode() * number)
            elif what == "commit":
                repo.commit(branch, f"{number}")
            elif what == "copy":
                repo.copy(branch, next(repo.list(branch)).path, chance.choice(branches), f"c/{number}")
            elif what == "merge":
                repo.merge(chance.choice(branches), branch)
            elif what == "branch" and len(branches) < 4:
                name = ("dev", "qa", "feature")[len(branches) - 1]
                repo.create_branch(name, branch)
                branches.append(name)
            elif what == "tag" and chance.random() < 0.3:
                repo.create_tag(f"v{number}", branch)
            elif what == "rm":
                repo.remove(branch, next(repo.list(branch)).path)
        except (Conflict, NothingToCommit, StopIteration):
            pass
        repo.set_clock(repo.clock() + chance.random() * DAY * 0.7)


def test_against_another_policy_both_are_told(repo):
    story(repo)
    old = {"tmp": {"prefix": "tmp/", "days": 4}}
    found = simulate(repo, HERE, ask(TWO_DAYS, old, first=at(1), last=at(7)))
    assert by_day(found, 0) == {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 0}
    assert by_day(found, 1) == {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1, 7: 1}


def test_nothing_is_removed_nothing_locked_and_no_watermark_moved(repo):
    story(repo)
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse({"r": {"prefix": "tmp/a", "days": 2}})), SURE)
    before, mark = keys(repo), watermark(repo)
    with locks.held(repo.database, repo.uid, run="another"):
        found = simulate(repo, HERE, ask(TWO_DAYS, first=at(1)))
    assert found.sides[0].removed.objects == 2
    assert before <= keys(repo)
    own = repo.prefix + f"_desilt/runs/simulate/{found.run}/"
    caches = tuple(repo.prefix + folder for folder in ("_desilt/ranges/", "_desilt/metaranges/", "_desilt/removed/"))
    assert all(key.startswith((own, *caches)) for key in keys(repo) - before)
    assert watermark(repo) == mark is not None
    assert "simulate" not in {job for job, _ in runs_of(repo.store, repo.prefix)}


def keys(repo):
    return {key for batch in repo.store.list("") for key in batch["key"].to_pylist()}


def watermark(repo):
    with repo.database.read() as tx:
        return watermarks.find(tx, repo.uid, lifecycle.JOB)


def test_on_spark_the_same_goes(spark, repo):
    story(repo)
    asked = ask(TWO_DAYS, first=at(3), last=at(6))
    assert simulate(repo, OnSpark(spark), asked).sides == simulate(repo, HERE, asked).sides


def test_two_moments_of_one_second_are_two_days(repo):
    story(repo)
    first = START + 2 * DAY
    last = first + timedelta(minutes=1, microseconds=1)
    found = simulate(repo, HERE, ask(TWO_DAYS, first=first, last=last, every=timedelta(minutes=1)))
    assert [step.removed.objects for step in found.sides[0].steps] == [0, 1, 0]
    assert len(listed(repo, f"_desilt/runs/simulate/{found.run}/")) == 1


def test_a_page_obeys_nothing_that_came_from_data():
    odd = "<script>alert('x')</script>\u202e"
    step = Step(START, {odd: Amount(2, 1500), "b": Amount(1, 1)}, {odd: {odd: Amount(2, 1500)}, "b": {}})
    page = render(Simulation("run", odd, DAY, (Side("new", "f", (step,)), Side("old", "f", (step,))), (odd,)))
    assert "<script" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert "3 objects (1.5 kB) would have gone" in page
    assert page.count('<path class="new"') == page.count('<path class="old"') == 6  # three plots, and their legends
    assert "http" not in page.replace("http-equiv", "")


def test_an_axis_is_counted_in_round_steps_and_holds_what_is_drawn():
    assert ticks(1) == [0, 1]
    assert ticks(17) == [0, 5, 10, 15, 20]
    assert ticks(134_300_000_000)[-1] == 150_000_000_000
    assert all(len(ticks(most)) <= 6 and ticks(most)[-1] >= most for most in range(1, 3000))


# ---- as a command


@pytest.fixture
def files(tmp_path):
    (tmp_path / "new.json").write_text(json.dumps(TWO_DAYS))
    (tmp_path / "old.yaml").write_text("tmp: {prefix: tmp/, days: 4}\n")
    return tmp_path / "new.json", tmp_path / "old.yaml"


def test_figures_for_programs(cli, repo, uri, files):
    story(repo)
    new, old = files
    words = ("--policy", new, "--against", old, "--from", "1998-01-03", "--to", "1998-01-06", "--json")
    code, out, err = cli("lifecycle", "simulate", uri, *words)
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["from"], said["to"]) == ("1998-01-03T00:00:00+00:00", "1998-01-06T00:00:00+00:00")
    assert said["every_seconds"] == 86400
    assert "judged by the branches and tags there are today" in said["notes"][0].lower()
    side = said["policies"]["new"]
    assert side["removed"] == {"objects": 3, "bytes": 18}
    assert side["rules"] == {"tmp": {"objects": 3, "bytes": 18, "branches": {"main": {"objects": 3, "bytes": 18}}}}
    assert side["days"][1] == {
        "at": "1998-01-04T00:00:00+00:00",
        "removed": {"objects": 1, "bytes": 5},
        "so_far": {"objects": 1, "bytes": 5},
        "rules": {"tmp": {"objects": 1, "bytes": 5, "branches": {"main": {"objects": 1, "bytes": 5}}}},
        "branches": {"main": {"objects": 1, "bytes": 5}},
    }
    assert [day["so_far"]["bytes"] for day in said["policies"]["old"]["days"]] == [0, 0, 0, 5]
    root = f"{repo.prefix}_desilt/runs/simulate/{said['run']}/"
    assert json.loads(repo.store.get(f"{root}simulation.json")) == said
    page = repo.store.get(f"{root}simulation.html").decode()
    assert "3 objects (18 B) would have gone" in page
    assert "By the old policy: 1 object (5 B)" in page


def test_words_for_people(cli, repo, uri, files):
    story(repo)
    code, out, _ = cli("lifecycle", "simulate", uri, "--policy", files[0], "--from", "1998-01-03")
    assert code == 0
    assert "Would have gone: 3 objects of 18 B" in out
    assert "1998-01-04" in out
    assert "removed nothing" in out
    assert "Judged by the branches and tags there are today" in out
    assert "simulation.html" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "1998-01-05", "--to", "1998-01-03"), "is after --to"),
        (("--from", "1998-01-05", "--to", "2051-01-03"), "is ahead of this clock"),
        (("--from", "2051-01-05"), "is after --to"),
        (("--from", "1998-01-35"), "is not a time"),
        (("--from", "1998-01-02T12:00:00"), "has no time zone"),
        (("--from", "1998-01-02", "--every", "0d"), "is too short"),
        (("--from", "1998-01-02", "--every", "1m"), "the limit is 1,000"),
        ((), "Missing option '--from'"),
    ],
)
def test_days_that_cannot_be_replayed_are_refused(cli, repo, uri, files, words, says):
    story(repo)
    before = keys(repo)
    code, out, err = cli("lifecycle", "simulate", uri, "--policy", files[0], *words)
    assert (code, out) == (2, "")
    assert says in err
    assert keys(repo) == before


def test_a_day_before_anything_was_there_takes_nothing(repo):
    story(repo)
    early = datetime(1990, 1, 1, tzinfo=UTC)
    found = simulate(repo, HERE, ask(TWO_DAYS, first=early, last=early + DAY))
    assert found.sides[0].removed == Amount()
