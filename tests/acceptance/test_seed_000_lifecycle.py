"""Seed 000, the lifecycle job: its five parts in its order, with its tables, on real lakes with a clock set by hand.

The seed's dates for b2 are wrong wherever they appear: 8 days before 20/01/1998 is
12/01, not 18/01, and before 19/01 it is 11/01, not 17/01. They are corrected here;
all else stands as it was written.
"""

import csv
import io
import json
import tempfile
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from desilt.domain.cutoffs import Cutoff, current_rule, minimum_per_branch, resolve
from desilt.domain.policy import parse
from desilt.domain.potential import after, potential
from desilt.errors import FirstRun, Gone
from desilt.executors.executor import HERE
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import watermark as lasting
from desilt.jobs.runner import plan, run
from desilt.lake import Lake
from desilt.lake.fsck import check
from desilt.lake.lake import locate
from desilt.objects.file import ObjectFile
from desilt.objects.store import Outcome, Result
from desilt.records import watermarks
from desilt.sweep import delete as removing
from desilt.sweep.limits import Limits
from desilt.testing import oracle

SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
POLICY = json.loads("""
{
   "rule1" : {
   "prefix": "foo/bar",
   "days": 10,
   "enabled": true,
   "branch_days": {
   "b1": 5,
   "b2": 8
    }
   },
   "rule2" : {
   "prefix": "foo/zoo",
   "enabled": true,
   "branch_days": {
      "b1": 5
   }
   }
}
""")


# ---- words


def table(text):
    """The rows of a table as the seed writes them: dates are dates, an empty cell is None."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.strip().splitlines()]
    return [dict(zip(lines[0], map(value, line), strict=True)) for line in lines[2:]]


def value(cell):
    return date(cell) if cell.count("/") == 2 and cell[0].isdigit() else cell or None


def date(text):
    return datetime.strptime(text, "%d/%m/%Y").replace(tzinfo=UTC)


def only(document, *rules):
    return parse({rule: document[rule] for rule in rules})


def rule(prefix, days=10):
    return {"prefix": prefix, "days": days}


def on(repo, day):
    """The clock moves on to that day's midnight."""
    repo.set_clock(date(day) if isinstance(day, str) else day)


def job(repo, policy, limits=SURE):
    return run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy), limits)[-1]


def dry(repo, policy):
    return plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy))


def committed_on(repo, branches, path):
    """A commit that exactly ``branches`` can reach, with ``path`` in it, and its address."""
    first = [commit.id for commit in repo.log(repo.default_branch)][-1]
    repo.create_branch("aside", first)
    address = repo.put("aside", path, path.encode()).address
    made = repo.commit("aside", path)
    for branch in branches:
        repo.merge("aside", branch)
    repo.delete_branch("aside")
    return made.id, address


def files(repo, folder):
    """The keys below ``_lakefs/retention/lc/``, the newest run's first."""
    below = f"{repo.prefix}_lakefs/retention/lc/{folder}"
    return sorted(key for batch in repo.store.list(below) for key in batch["key"].to_pylist())


def rows_of(repo, folder):
    return [row for key in files(repo, folder) for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()]


def addresses(repo, day, names):
    """The table of that day, in some order: (run_id, address by its name, paths, matched_rules)."""
    rows = rows_of(repo, f"addresses/{date(day):%Y-%m-%d}/")
    return sorted(
        (row["run_id"], names[row["address"]], sorted(row["paths"]), sorted(row["matched_rules"])) for row in rows
    )


def stats(repo, day):
    data = repo.store.get(f"{repo.prefix}_lakefs/retention/lc/stats/{date(day):%Y-%m-%d}.csv")
    return list(csv.DictReader(io.StringIO(data.decode())))


def watermark(repo):
    with repo.database.read() as tx:
        return watermarks.find(tx, repo.uid, lifecycle.JOB)


def reads(repo, ref, path):
    return b"".join(repo.get(ref, path)).decode()


def is_gone(repo, ref, path):
    try:
        repo.stat(ref, path)
    except Gone:
        return True
    return False


@pytest.fixture(scope="module")
def new_repo():
    """A function that makes a repository whose clock stands at 01/01/1998."""
    with tempfile.TemporaryDirectory() as directory:
        lake = Lake.create(locate(directory))

        def make(*branches):
            repo = lake.create_repository(f"seed-{len(lake.repositories())}", clock_at=date("01/01/1998"))
            for branch in branches:
                repo.create_branch(branch, "main")
            return repo

        yield make
        lake.close()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


# The lake of parts 1 to 3: `goes` is the day whose run removes an object; empty, it stays after both.
# Of a day's midnight: what was created at a cutoff is not before it.
LAKE = """
| path           | branches | created    | goes       |
|----------------|----------|------------|------------|
| foo/bar/main-1 | main     | 08/01/1998 | 19/01/1998 |
| foo/bar/main-2 | main     | 09/01/1998 | 20/01/1998 |
| foo/bar/main-3 | main     | 10/01/1998 |            |
| foo/bar/b1-1   | b1       | 13/01/1998 | 19/01/1998 |
| foo/bar/b1-2   | b1       | 14/01/1998 | 20/01/1998 |
| foo/bar/b1-3   | b1       | 15/01/1998 |            |
| foo/bar/b2-1   | b2       | 10/01/1998 | 19/01/1998 |
| foo/bar/b2-2   | b2       | 11/01/1998 | 20/01/1998 |
| foo/bar/b2-3   | b2       | 12/01/1998 |            |
| foo/bar/both-1 | b1 b2    | 10/01/1998 | 19/01/1998 |
| foo/bar/both-2 | b1 b2    | 11/01/1998 | 20/01/1998 |
| foo/bar/both-3 | b1 b2    | 13/01/1998 |            |
| foo/bar/all-1  | b1 main  | 09/01/1998 | 20/01/1998 |
| foo/bar/all-2  | b1 main  | 12/01/1998 |            |
| foo/bard       | main     | 08/01/1998 | 19/01/1998 |
| foo/zoo/b1-1   | b1       | 02/01/1998 | 20/01/1998 |
| foo/zoo/b1-2   | b1       | 14/01/1998 | 20/01/1998 |
| foo/zoo/b1-3   | b1       | 15/01/1998 |            |
| foo/zoo/both   | b1 b2    | 02/01/1998 |            |
| foo/zoo/main   | main     | 02/01/1998 |            |
| foo/other      | b1       | 02/01/1998 |            |
"""


@pytest.fixture(scope="module")
def story(new_repo):
    """The lake above after the run of 19/01 with rule1, and the run of 20/01 with both: it, their ids, its names."""
    repo, names = new_repo("b1", "b2"), {}
    for row in sorted(table(LAKE), key=lambda row: row["created"]):
        on(repo, row["created"])
        _, address = committed_on(repo, row["branches"].split(), row["path"])
        names[address] = row["path"]
    on(repo, "19/01/1998")
    first = job(repo, only(POLICY, "rule1"))
    on(repo, "20/01/1998")
    second = job(repo, parse(POLICY))
    return repo, {"1": first.run, "2": second.run}, names


# ---- 1. Prepare data using rules


def test_the_policy_today_is_20_01_1998():
    expected = table("""
        | rule_id | prefix   | branch | date_to_be_deleted   |
        |---------|----------|--------|----------------------|
        | rule1   | foo/bar  |        |    10/01/1998        |
        | rule1   | foo/bar  |   b1   |    15/01/1998        |
        | rule1   | foo/bar  |   b2   |    12/01/1998        |
        | rule2   | foo/zoo  |   b1   |    15/01/1998        |
    """)
    rows = resolve(parse(POLICY), [], date("20/01/1998")).table
    assert [Cutoff(*row.values()) for row in expected] == list(rows)


def test_the_policy_table_holds_the_policies_of_both_runs(story):
    repo, runs, _ = story
    expected = table("""
        | run_id | rule_id | prefix   | branch | date_to_be_deleted   |
        |--------|---------|----------|--------|----------------------|
        | 2      | rule1   | foo/bar  |        |    10/01/1998        |
        | 2      | rule1   | foo/bar  |   b1   |    15/01/1998        |
        | 2      | rule1   | foo/bar  |   b2   |    12/01/1998        |
        | 2      | rule2   | foo/zoo  |   b1   |    15/01/1998        |
        | 1      | rule1   | foo/bar  |        |    09/01/1998        |
        | 1      | rule1   | foo/bar  |   b1   |    14/01/1998        |
        | 1      | rule1   | foo/bar  |   b2   |    11/01/1998        |
    """)
    assert rows_of(repo, "policy/") == [{**row, "run_id": runs[row["run_id"]]} for row in expected]


def test_a_dry_run_and_a_run_that_was_refused_leave_no_policy_and_do_not_move_last_deleted(new_repo):
    repo = new_repo("b1")
    committed_on(repo, ["b1"], "foo/bar/a")
    on(repo, "19/01/1998")
    assert dry(repo, only(POLICY, "rule1")).removed.objects == 1
    with pytest.raises(FirstRun):
        job(repo, only(POLICY, "rule1"), Limits(max_share=1.0))
    assert files(repo, "") == []
    assert watermark(repo) is None
    assert lasting.read(repo, lifecycle.JOB).last is None

    first = job(repo, only(POLICY, "rule1"))
    written, last = files(repo, ""), watermark(repo)
    on(repo, "20/01/1998")
    dry(repo, parse(POLICY))
    assert files(repo, "") == written
    assert watermark(repo) == last
    applied = resolve(only(POLICY, "rule1"), [], date("19/01/1998")).table
    assert (last[0], lasting.read(repo, lifecycle.JOB).last.table) == (first.run, applied)

    second = job(repo, parse(POLICY))
    assert watermark(repo)[0] == second.run
    assert {row["run_id"] for row in rows_of(repo, "policy/")} == {first.run, second.run}


CURRENT_RULE = """
| prefix   | branch | date_to_be_deleted | last_deleted  |
|----------|--------|--------------------|---------------|
|  foo/bar |        |    10/01/1998      |   09/01/1998  |
|  foo/bar |   b1   |    15/01/1998      |   14/01/1998  |
|  foo/bar |   b2   |    12/01/1998      |   11/01/1998  |
|  foo/zoo |   b1   |    15/01/1998      |               |
"""


def told(rows):
    return [
        {name: getattr(row, name) for name in ("prefix", "branch", "date_to_be_deleted", "last_deleted")}
        for row in rows
    ]


def of_run(repo, run_id):
    """What a run applied, as others read it."""
    rows = [row for row in rows_of(repo, "policy/") if row["run_id"] == run_id]
    return [Cutoff(row["rule_id"], row["prefix"], row["branch"], row["date_to_be_deleted"]) for row in rows]


def test_current_rule_comes_from_the_policy_table(story):
    repo, runs, _ = story
    assert told(current_rule(of_run(repo, runs["2"]), of_run(repo, runs["1"]))) == table(CURRENT_RULE)


# ---- 2. Finding potential commits, and commit branches

WITH_B3 = {"b1": 5, "b2": 8, "b3": 14}  # 14 days before 19/01 is 05/01
B3 = {**POLICY, "rule1": {**POLICY["rule1"], "branch_days": WITH_B3}}


def test_the_minimum_of_last_deleted_for_each_branch(story):
    repo, runs, _ = story
    expected = table("""
        | branch | last_deleted  |
        |--------|---------------|
        |        |   09/01/1998  |
        |   b1   |               |
        |   b2   |   11/01/1998  |
    """)
    found = minimum_per_branch(current_rule(of_run(repo, runs["2"]), of_run(repo, runs["1"])))
    assert [{"branch": branch, "last_deleted": last} for branch, last in found.items()] == expected


def test_the_minimum_with_b3_added():
    expected = table("""
        | branch | last_deleted  |
        |--------|---------------|
        |        |   09/01/1998  |
        |   b1   |               |
        |   b2   |   11/01/1998  |
        |   b3   |   05/01/1998  |
    """)
    now, last = resolve(parse(B3), [], date("20/01/1998")), resolve(only(B3, "rule1"), [], date("19/01/1998"))
    found = minimum_per_branch(current_rule(now.table, last.table))
    assert found == {row["branch"]: row["last_deleted"] for row in expected}


# "After" is "not before": what was created at that midnight was not past the last run's cutoff.
EXAMPLES = table("""
| only accessible from | all commits after |
|----------------------|-------------------|
| b1                   |                   |
| b3                   | 05/01/1998        |
| b1 b3                | 05/01/1998        |
| b1 b2 b3             | 09/01/1998        |
""")
DAYS = [date(f"{day:02}/01/1998") for day in (2, 4, 5, 8, 9, 11, 18)]
examples = pytest.mark.parametrize(
    ("branches", "since"),
    [(row["only accessible from"].split(), row["all commits after"] or DAYS[0]) for row in EXAMPLES],
    ids=[row["only accessible from"] for row in EXAMPLES],
)


@examples
def test_potential_commits_by_the_branches_that_reach_them(branches, since):
    names = ["b1", "b2", "b3", "main"]
    commits = {f"{day:%d/%m}": (day, frozenset(branches)) for day in DAYS}
    last = after(commits, None, resolve(only(B3, "rule1"), names, date("19/01/1998")))
    found = potential(commits, last, resolve(parse(B3), names, date("20/01/1998")))
    assert sorted(found) == [f"{day:%d/%m}" for day in DAYS if day >= since]


@pytest.fixture(scope="module")
def reached(new_repo):
    """A lake with a commit a day for each example, after the run of 19/01, and what is potential on 20/01."""
    repo, made = new_repo("b1", "b2", "b3"), {}
    for day in DAYS:
        on(repo, day)
        for row in EXAMPLES:
            who = row["only accessible from"]
            commit, _ = committed_on(repo, who.split(), f"foo/{who.replace(' ', '-')}/{day:%d}")
            made[who, day] = commit
    on(repo, "19/01/1998")
    job(repo, only(B3, "rule1"))
    on(repo, "20/01/1998")
    history, last = repo.source(HERE).snapshot(repo.clock()), lasting.read(repo, lifecycle.JOB).last
    found = potential(lifecycle.dates(history), last, resolve(parse(B3), history.names, repo.clock()))
    return repo, made, found


@examples
def test_potential_commits_of_a_real_lake(reached, branches, since):
    _, made, found = reached
    who = " ".join(branches)
    assert [day for day in DAYS if made[who, day] in found] == [day for day in DAYS if day >= since]


def test_a_run_looks_into_the_potential_commits_and_the_first_run_into_all(reached):
    repo, _, found = reached
    inputs = dry(repo, parse(B3)).inputs
    assert inputs["commits looked into"] == len(found) < inputs["commits"]
    full = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse(B3), full=True)).inputs
    assert full["commits looked into"] == full["commits"] == inputs["commits"]


# ---- 3. Find addresses that should be removed by lifecycle policy


@pytest.mark.parametrize(("number", "day"), [("1", "19/01/1998"), ("2", "20/01/1998")])
def test_addresses_match_on_every_branch_that_reaches_them_and_did_not_match_last_run(story, number, day):
    repo, runs, names = story
    expected = [
        (runs[number], row["path"], [row["path"]], ["rule2" if row["path"].startswith("foo/zoo") else "rule1"])
        for row in table(LAKE)
        if row["goes"] == date(day)
    ]
    assert len(expected) == {"1": 5, "2": 7}[number]
    assert addresses(repo, day, names) == sorted(expected)


def test_what_matched_is_gone_from_the_store_and_nothing_else(story):
    repo, _, names = story
    stay = {row["path"] for row in table(LAKE) if not row["goes"]}
    assert {names[address] for address in oracle.stored(repo)} == stay
    for row in table(LAKE):
        for branch in row["branches"].split():
            assert is_gone(repo, branch, row["path"]) == (row["path"] not in stay)


def test_a_branch_that_was_made_from_another_has_its_say_in_all_that_it_reaches(new_repo):
    repo = new_repo("b1")
    _, address = committed_on(repo, ["b1"], "foo/zoo/a")
    repo.create_branch("b2", "b1")  # no rule covers foo/zoo there
    on(repo, "20/01/1998")
    report = job(repo, parse(POLICY))
    assert {reason: amount.objects for reason, amount in report.keep.items()} == {"holder": 1}
    assert address in oracle.stored(repo)
    repo.delete_branch("b2")
    job(repo, parse(POLICY))
    assert address not in oracle.stored(repo)


# ---- 4. Find deduplications

DEDUPLICATIONS = """
- `foo/bar/a 1`
- `foo/bar/b 4`
- `foo/tar/a 1`
- `foo/tar/b 2`
- `foo/other/c 2`
"""
BAR_AND_TAR = {"bar": rule("foo/bar"), "tar": rule("foo/tar")}


@pytest.fixture
def copies(new_repo):
    """A commit of 01/01 with the seed's five paths on three addresses, and the seed's numbers by address."""
    repo, first, names = new_repo(), {}, {}
    for line in DEDUPLICATIONS.strip().splitlines():
        path, number = line.strip("-` ").split()
        if number in first:
            entry = repo.copy("main", first[number], "main", path)
            assert names[entry.address] == number  # a copy inside a branch shares the address
        else:
            names[repo.put("main", path, number.encode()).address] = number
            first[number] = path
    repo.commit("main", "five paths")
    return repo, names


def left(repo, names):
    return sorted(names[address] for address in oracle.stored(repo))


def test_4_and_1_can_be_removed_and_2_cannot(copies):
    repo, names = copies
    on(repo, "11/01/1998")
    report = job(repo, parse(BAR_AND_TAR))
    assert report.removed.objects == 0  # ten days old, not older
    on(repo, "12/01/1998")
    report = job(repo, parse(BAR_AND_TAR))
    assert addresses(repo, "12/01/1998", names) == [
        (report.run, "1", ["foo/bar/a", "foo/tar/a"], ["bar", "tar"]),
        (report.run, "4", ["foo/bar/b"], ["bar"]),
    ]
    assert {reason: amount.objects for reason, amount in report.keep.items()} == {"holder": 1}
    assert left(repo, names) == ["2"]
    assert reads(repo, "main", "foo/tar/b") == reads(repo, "main", "foo/other/c") == "2"
    assert [entry.path for entry in repo.list("main") if is_gone(repo, "main", entry.path)] == [
        "foo/bar/a",
        "foo/bar/b",
        "foo/tar/a",
    ]


def test_one_of_two_paths_whose_days_are_not_over_is_a_deduplication_until_they_are(copies):
    repo, names = copies
    policy = parse({"bar": rule("foo/bar", 10), "tar": rule("foo/tar", 20)})
    on(repo, "12/01/1998")
    job(repo, policy)
    assert left(repo, names) == ["1", "2"]
    on(repo, "22/01/1998")
    job(repo, policy)
    assert left(repo, names) == ["2"]


def test_the_note_is_supported_here_once_a_rule_covers_what_held_2(copies):
    """foo/other/c was deleted, but a commit still has it: it is a deduplication until a rule lets that entry go."""
    repo, names = copies
    on(repo, "12/01/1998")
    job(repo, parse(BAR_AND_TAR))
    repo.remove("main", "foo/other/c")
    repo.commit("main", "foo/other/c was somehow deleted")
    on(repo, "30/01/1998")
    job(repo, parse(BAR_AND_TAR))
    assert left(repo, names) == ["2"]
    assert addresses(repo, "30/01/1998", names) == []
    report = job(repo, parse({**BAR_AND_TAR, "other": rule("foo/other")}))
    assert left(repo, names) == []
    assert addresses(repo, "30/01/1998", names) == [(report.run, "2", ["foo/other/c", "foo/tar/b"], ["other", "tar"])]


def test_the_note_is_supported_here_though_no_commit_is_potential(copies):
    """What a run could not remove it leaves to the next one, which need not find it in a commit again."""
    repo, names = copies
    rules = {**BAR_AND_TAR, "other": rule("foo/other")}
    on(repo, "12/01/1998")
    job(repo, parse({"rules": rules, "keep": [{"prefix": "foo/other/"}]}))
    assert left(repo, names) == ["2"]
    on(repo, "13/01/1998")
    report = job(repo, parse({"rules": rules}))
    assert (report.inputs["commits looked into"], report.inputs["deferred before"]) == (0, 1)
    assert left(repo, names) == []
    assert addresses(repo, "13/01/1998", names) == [(report.run, "2", ["foo/other/c", "foo/tar/b"], ["other", "tar"])]


def test_an_address_in_a_commit_that_is_not_potential_is_a_deduplication(copies):
    """The first half of the seed's algorithm: foo/other/c is only in a commit that was dealt with long ago."""
    repo, names = copies
    on(repo, "14/01/1998")
    job(repo, parse(BAR_AND_TAR))
    repo.move("main", "foo/other/c", "foo/bar/moved")
    repo.remove("main", "foo/tar/b")
    repo.commit("main", "2 is foo/bar/moved now")
    on(repo, "30/01/1998")
    report = job(repo, parse(BAR_AND_TAR))
    assert report.inputs["commits looked into"] == 1
    assert report.removed.objects == 0
    assert left(repo, names) == ["2"]
    assert reads(repo, "main", "foo/bar/moved") == "2"


def test_matched_rules_are_those_that_let_it_go(new_repo):
    repo = new_repo("b1")
    _, address = committed_on(repo, ["main"], "foo/bar/a")
    on(repo, "20/01/1998")
    elsewhere, late = {"prefix": "foo", "branch_days": {"b1": 30}}, rule("foo/bar", 30)
    report = job(repo, parse({"elsewhere": elsewhere, "late": late, "bar": rule("foo/bar")}))
    assert address not in oracle.stored(repo)
    assert addresses(repo, "20/01/1998", {address: "a"}) == [(report.run, "a", ["foo/bar/a"], ["bar"])]
    assert list(report.remove) == ["bar"]


# ---- 5. Delete addresses


@pytest.fixture
def swept(copies):
    """The lake of part 4 after the run of 12/01: 1 and 4 are gone, 2 is there."""
    repo, names = copies
    on(repo, "12/01/1998")
    return repo, names, job(repo, parse(BAR_AND_TAR))


def test_what_was_deleted_reads_as_gone_with_its_run_and_date(swept):
    repo, _, report = swept
    assert (report.swept.state, report.swept.removed, report.swept.failed) == ("swept", 2, 0)
    for look in (repo.stat, reads_of(repo)):
        with pytest.raises(Gone, match=report.run) as gone:
            look("main", "foo/bar/b")
        assert (gone.value.path, gone.value.run, gone.value.at) == ("foo/bar/b", report.run, date("12/01/1998"))


def reads_of(repo):
    return lambda ref, path: reads(repo, ref, path)


@pytest.mark.parametrize(("path", "rules"), [("foo/bar/b", "bar"), ("foo/bar/a", "bar, tar")])
def test_what_was_deleted_reads_as_gone_with_its_rule(swept, path, rules):
    repo, _, _ = swept
    with pytest.raises(Gone) as gone:
        repo.stat("main", path)
    assert gone.value.rule == rules


def test_the_stats_of_a_day_have_a_line_for_each_run(swept):
    repo, _, first = swept
    second = job(repo, parse({"other": rule("foo/other"), **BAR_AND_TAR}))
    dry(repo, parse(BAR_AND_TAR))
    on(repo, "13/01/1998")
    third = job(repo, parse(BAR_AND_TAR))
    counts = ("run_id", "planned", "removed", "already_gone", "failed", "held_again", "removed_bytes")
    assert [tuple(line[name] for name in counts) for line in stats(repo, "12/01/1998")] == [
        (first.run, "2", "2", "0", "0", "0", "2"),
        (second.run, "1", "1", "0", "0", "0", "1"),
    ]
    assert [tuple(line[name] for name in counts) for line in stats(repo, "13/01/1998")] == [
        (third.run, "0", "0", "0", "0", "0", "0")
    ]
    days = [key.rpartition("/")[2] for key in files(repo, "stats/")]
    assert days == ["1998-01-12.csv", "1998-01-13.csv"]
    assert {line["swept_at"] for line in stats(repo, "12/01/1998")} == {date("12/01/1998").isoformat()}


def test_a_delete_that_failed_is_tried_again_by_the_next_run(copies, monkeypatch):
    repo, names = copies
    real = repo.store.delete_many
    stuck = {repo.prefix + address for address, number in names.items() if number == "4"}

    def delete_many(keys, **_):
        done = {one.key: one for one in real([key for key in keys if key not in stuck])}
        return [done.get(key) or Outcome(key, Result.FAILED, "not now") for key in keys]

    on(repo, "12/01/1998")
    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "delete_many", delete_many)
        first = job(repo, parse(BAR_AND_TAR))
    assert (first.swept.state, first.swept.removed, first.swept.failed) == ("swept in part", 1, 1)
    assert left(repo, names) == ["2", "4"]
    assert is_gone(repo, "main", "foo/bar/b")  # condemned is gone, whatever the store says
    assert check(repo).counts == {"removed": 2, "condemned": 1}

    on(repo, "13/01/1998")
    second = job(repo, parse(BAR_AND_TAR))
    assert second.inputs["commits looked into"] == 0
    assert (second.swept.state, second.swept.removed, second.swept.failed) == ("swept", 1, 0)
    assert left(repo, names) == ["2"]
    assert addresses(repo, "13/01/1998", names) == [(second.run, "4", ["foo/bar/b"], ["bar"])]
    lines = [stats(repo, day)[0] for day in ("12/01/1998", "13/01/1998")]
    assert [(line["planned"], line["removed"], line["failed"]) for line in lines] == [("2", "1", "1"), ("1", "1", "0")]
    third = job(repo, parse(BAR_AND_TAR))
    assert third.removed.objects == 0  # and that was the last of it


def test_branches_go_on_over_entries_that_are_gone(swept):
    repo, names, _ = swept
    gone = ["foo/bar/a", "foo/bar/b", "foo/tar/a"]
    assert repo.count_gone("main") == 3

    repo.put("main", "foo/new", b"new")
    repo.commit("main", "a commit")
    repo.create_branch("work", "main")
    repo.remove("work", "foo/bar/a")
    repo.put("work", "foo/bar/b", b"uploaded again")
    repo.commit("work", "one is dropped, one is back")
    assert [(one.kind, one.path) for one in repo.diff("main", "work")] == [
        ("removed", "foo/bar/a"),
        ("changed", "foo/bar/b"),
    ]
    assert [path for path in gone if is_gone(repo, "main", path)] == gone

    repo.merge("work", "main")
    assert [entry.path for entry in repo.list("main")] == [
        "foo/bar/b",
        "foo/new",
        "foo/other/c",
        "foo/tar/a",
        "foo/tar/b",
    ]
    assert reads(repo, "main", "foo/bar/b") == "uploaded again"
    assert is_gone(repo, "main", "foo/tar/a")
    with pytest.raises(Gone):
        repo.copy("main", "foo/tar/a", "main", "foo/elsewhere")
    assert [commit.message for commit in repo.log("main")] == [
        "Merge work into main",
        "one is dropped, one is back",
        "a commit",
        "five paths",
        "Repository created",
    ]
    repo.revert("main", "work")
    assert is_gone(repo, "main", "foo/bar/a")

    repo.set_clock(repo.clock() + timedelta(days=11))
    report = job(repo, parse(BAR_AND_TAR))
    assert (report.swept.removed, report.swept.gone) == (1, 0)  # what was uploaded again is old by now
    assert sorted(names.get(address, "new") for address in oracle.stored(repo)) == ["2", "new"]


def test_fsck_tells_removed_from_lost(swept):
    repo, names, report = swept
    found = check(repo)
    assert found.sound
    assert found.counts == {"removed": 3}
    assert {finding.about["path"] for finding in found.of("removed")} == {"foo/bar/a", "foo/bar/b", "foo/tar/a"}
    assert all(report.run in finding.fact for finding in found.findings)

    (lost,) = [address for address, number in names.items() if number == "2"]
    repo.store.delete_many([repo.prefix + lost])  # behind the lake's back
    found = check(repo)
    assert not found.sound
    assert found.counts == {"missing-object": 2, "removed": 3}
    assert {finding.about["path"] for finding in found.of("missing-object")} == {"foo/tar/b", "foo/other/c"}
