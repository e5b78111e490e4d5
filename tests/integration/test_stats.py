"""A repository in figures, beside sets of addresses."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import desilt
from desilt.columns import kernel
from desilt.domain.entry import decode_path
from desilt.executors.executor import HERE
from desilt.executors.processes import Processes
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import run
from desilt.jobs.stats.stats import stats
from desilt.runs.report import Amount
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import days, stage

START = datetime(2026, 1, 20, tzinfo=UTC)
ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)


@pytest.fixture
def full(repo):
    """Three months; a deleted branch, something staged, and something in the trash."""
    for number in range(9):
        repo.put("main", f"data/{number}/file", b"d" * number)
        repo.put("main", "models/deep/er/m.bin", bytes(100 + number))
    repo.put("main", "top", b"t")
    repo.commit("main", "first")
    repo.copy("main", "top", "main", "data/copy")
    repo.commit("main", "a copy")
    days(repo, 30)
    repo.create_branch("dev", "main")
    repo.put("dev", "data/dev", b"dev" * 100)
    repo.commit("dev", "on dev")
    repo.create_branch("gone", "main")
    repo.put("gone", "data/gone", b"gone" * 50)
    repo.commit("gone", "on a branch that goes")
    repo.delete_branch("gone")
    days(repo, 40)
    repo.put("main", "staged/a", b"s" * 7)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(action=Action.TRASH), ALL)
    return repo


def every_object(repo):
    """What is stored and some commit has: its size, the month of its first entry, and its folder, by address."""
    there, found = oracle.stored(repo), {}
    commits = sorted(oracle.history(repo).values(), key=lambda one: one.created_at)
    entries = oracle.contents(repo, {one.metarange for one in commits})
    for commit in commits:
        for one in entries[commit.metarange]:
            if one.address in there:
                paths = found.setdefault(one.address, (one.size, set()))[1]
                paths.add(one.path)
    return found


def test_every_object_of_a_commit_counts_once(full):
    found, wanted = stats(full, HERE), every_object(full)
    whole = Amount(len(wanted), sum(size for size, _ in wanted.values()))
    assert found.committed == whole
    assert sum(found.ages.values(), Amount()) == sum(found.folders.values(), Amount()) == whole
    assert sum((one.added for one in found.months), Amount()) == whole
    sizes = Counter()
    for size, paths in wanted.values():
        sizes[frozenset(path.partition("/")[0] + "/" if "/" in path else "(no folder)" for path in paths)] += size
    assert found.folders["models/"].bytes == sizes[frozenset(["models/"])]


def test_what_waits_what_is_staged_and_what_is_in_the_trash_is_told(full):
    found = stats(full, HERE)
    assert found.waiting == Amount(1, 200)
    assert found.staged == Amount(1, 7)
    assert found.trash.objects == 8  # models that were overwritten before they were committed
    assert [one.month for one in found.months] == ["2026-01", "2026-02", "2026-03"]
    assert [one.added.objects > 0 for one in found.months] == [True, True, False]
    assert found.months[-1].removed.objects == 8


def test_branches_tell_what_they_reach_and_keep_alone(full):
    found = {one.branch: one for one in stats(full, HERE).branches}
    assert found.keys() == {"main", "dev"}
    assert found["dev"].reaches == found["main"].reaches + Amount(1, 300)
    assert found["dev"].alone == Amount(1, 300)
    assert found["main"].staged == Amount(1, 7)


def test_folders_are_cut_where_somebody_wants(full):
    assert "models/deep/" in stats(full, HERE, depth=2).folders
    assert "models/deep/er/" in stats(full, HERE, depth=9).folders
    assert set(stats(full, HERE).folders) == {"data/", "models/"}
    one = stats(full, HERE, folders=1)
    assert (len(one.folders), one.more_folders) == (1, 1)


def test_it_is_the_same_wherever_it_is_worked_out(full, monkeypatch):
    here = stats(full, HERE)
    monkeypatch.setattr(kernel, "ROWS_AT_ONCE", 4)
    two = Processes(2)
    assert stats(full, two) == stats(full, HERE) == here
    two.close()


def test_odd_paths_are_in_their_folders(repo):
    entry = repo.put("main", "a", b"1")
    stage(repo, "main", replace(entry, path=decode_path(b"odd\xff/\xfe")), replace(entry, path="new\nline/x"))
    repo.commit("main", "odd")
    assert set(stats(repo, HERE).folders) <= {decode_path(b"odd\xff/"), "new\nline/", "(no folder)"}
    assert stats(repo, HERE).committed == Amount(1, 1)


def test_an_empty_repository_has_nothing(repo):
    found = stats(repo, HERE)
    assert (found.committed, found.ages, found.folders, found.months) == (Amount(), {}, {}, ())


def test_from_the_shell_and_from_python(full, uri, cli):
    code, out, err = cli("stats", uri)
    assert (code, err) == (0, "")
    for words in ("By branch", "By folder", "By age", "By month", "waiting for collection", "in the trash", "2026-02"):
        assert words in out
    code, out, _ = cli("stats", uri, "--json")
    told = json.loads(out)
    assert (code, len(out.splitlines())) == (0, 1)
    assert told["waiting"] == {"objects": 1, "bytes": 200}
    with desilt.open(uri) as repo:
        assert repo.stats().committed == stats(full, HERE).committed
        with pytest.raises(desilt.DesiltError, match="depth"):
            repo.stats(depth=0)
    assert [run.job for run in desilt.open(uri).runs()] == ["gc"]  # none was made
    assert cli("stats", uri, "--depth", "0")[0] == 2
