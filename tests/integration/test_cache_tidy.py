"""Cache files that grew together: the old ones go with a collection, and only when nobody can be reading them."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desilt.cache import growth, known, metaranges, ranges
from desilt.cache.known import sealed, sound
from desilt.cache.ranges import FOLDER
from desilt.columns import classes
from desilt.executors.executor import HERE
from desilt.jobs.collect.tidy import unused_metaranges, unused_ranges

NOW = datetime.now(UTC)
BEFORE = NOW - timedelta(days=1)


@pytest.fixture
def source(repo, monkeypatch):
    """Three commits, each seen by a run of its own; a fourth run has merged what those kept."""
    monkeypatch.setattr(classes, "FEW", 3)
    source = repo.source(HERE)
    for number in range(3):
        repo.put("main", f"{number}", b"x")
        repo.commit("main", "more")
        source.entries(tables(source, repo))
    source.entries(tables(source, repo))
    aged(repo, *files(repo), days=9)
    return source


def tables(source, repo):
    return list(source.lists(source.snapshot(repo.clock()).commits.values()).ranges.values())


def files(repo):
    return {
        key.removeprefix(repo.prefix)
        for batch in repo.store.list(repo.prefix + FOLDER)
        for key in batch["key"].to_pylist()
    }


def aged(repo, *names, days):
    at = (NOW - timedelta(days=days)).timestamp()
    for name in names:
        os.utime(Path(repo.store.uri.removeprefix("file://")) / repo.prefix / name, (at, at))


def of(repo):
    """The merged file, and its two names."""
    (cached,) = (one for one in sound(repo.store, repo.prefix + FOLDER, {}) if one.replaces)
    name = cached.file.key.removeprefix(repo.prefix)
    return cached, {name, name.replace(".parquet", ".json")}


def live(source, repo):
    return {one.id for one in tables(source, repo)}


def test_what_was_replaced_goes_and_nothing_else(repo, source):
    _, names = of(repo)
    assert len(files(repo)) == 8
    assert unused_ranges(repo, live(source, repo), BEFORE).keys() == files(repo) - names
    repo.store.delete_many([repo.prefix + name for name in files(repo) - names])
    (one,) = source.entries(tables(source, repo))
    assert set(one.ranges.values()) == live(source, repo)
    assert unused_ranges(repo, live(source, repo), BEFORE) == {}


@pytest.mark.parametrize("which", ["", ".parquet"], ids=["both", "the file"])
def test_what_was_replaced_a_moment_ago_stays_for_those_who_read_it(repo, source, which):
    aged(repo, *(name for name in of(repo)[1] if name.endswith(which)), days=0)
    assert unused_ranges(repo, live(source, repo), BEFORE) == {}


def test_what_a_damaged_file_replaced_stays_and_only_the_damaged_one_goes(repo, source):
    cached, names = of(repo)
    repo.store.put(cached.file.key, [repo.store.get(cached.file.key)[:-1]])
    aged(repo, *names, days=9)
    assert unused_ranges(repo, live(source, repo), BEFORE).keys() == names


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_a_damaged_file_of_which_half_was_written_just_now_stays(repo, source, ending):
    """Somebody is making it again."""
    cached, names = of(repo)
    repo.store.put(cached.file.key, [repo.store.get(cached.file.key)[:-1]])
    aged(repo, *names, days=9)
    aged(repo, *(name for name in names if name.endswith(ending)), days=0)
    gone = unused_ranges(repo, live(source, repo), BEFORE).keys()
    assert gone <= {name for name in names if ending == ".json" and name.endswith(".parquet")}


def test_files_of_another_version_go_once_all_they_have_was_made_again(repo, source, monkeypatch):
    before = files(repo)
    for version in (ranges.VERSION + 1, ranges.VERSION + 2):
        for module in (known, ranges, growth):
            monkeypatch.setattr(module, "VERSION", version)
        assert {one for file in source.entries(tables(source, repo)) for one in file.ranges.values()} == live(
            source, repo
        )
        new = files(repo) - before
        assert new
        assert unused_ranges(repo, live(source, repo), BEFORE).keys() == before
        repo.store.delete_many([repo.prefix + name for name in before])
        aged(repo, *new, days=9)
        assert unused_ranges(repo, live(source, repo), BEFORE) == {}
        before = new


def test_lists_of_another_version_go_too(repo, source, monkeypatch):
    monkeypatch.setattr(metaranges, "TO_A_FILE", 1)
    source.lists(source.snapshot(repo.clock()).commits.values())
    snapshot = source.snapshot(repo.clock())
    held = {commit.metarange for commit in snapshot.commits.values()}
    folder = f"{repo.prefix}{metaranges.FOLDER}"
    names = {key.removeprefix(repo.prefix) for batch in repo.store.list(folder) for key in batch["key"].to_pylist()}
    aged(repo, *names, days=9)
    assert names
    assert unused_metaranges(repo, held, BEFORE) == {}
    monkeypatch.setattr(metaranges, "VERSION", metaranges.VERSION + 1)
    assert unused_metaranges(repo, held, BEFORE).keys() == names


def test_a_digit_of_a_word_that_was_flipped_is_found_whichever_it_is(repo, source):
    """It would be read as well: ranges, rows and owners are numbers."""
    assert source
    cached, _ = of(repo)
    word = cached.file.key.replace(".parquet", ".json")
    text, folder = repo.store.get(word).decode(), repo.prefix + FOLDER
    for match in re.finditer(r"[0-9]", text):
        flipped = text[: match.start()] + str((int(match[0]) + 1) % 10) + text[match.end() :]
        repo.store.put(word, [flipped.encode()])
        assert cached.file.key not in {one.file.key for one in sound(repo.store, folder, {})}, flipped


def test_what_a_file_replaced_stays_while_it_lacks_something_of_theirs(repo, source):
    cached, names = of(repo)
    word = cached.file.key.replace(".parquet", ".json")
    said = json.loads(repo.store.get(word))
    (name, _), *said["ranges"] = said["ranges"]
    said |= {"dropped": [name], "rows": said["rows"] - said["owned"].pop(0)}
    repo.store.put(word, [sealed(said)])
    aged(repo, *names, days=9)
    assert unused_ranges(repo, live(source, repo), BEFORE) == {}
    assert unused_ranges(repo, live(source, repo) - {name}, BEFORE).keys() == files(repo) - names


def test_only_files_of_the_cache_can_be_replaced(repo, source):
    cached, names = of(repo)
    repo.store.put(f"{repo.prefix}{FOLDER}notes.json", [b"{}"])
    word = cached.file.key.replace(".parquet", ".json")
    said = json.loads(repo.store.get(word))
    said["replaces"] += [
        f"{repo.prefix}branches/x",
        "branches/x",
        f"{repo.prefix}{FOLDER}notes.parquet",
        cached.file.key,
    ]
    repo.store.put(word, [sealed(said)])
    aged(repo, *files(repo), days=9)
    found = unused_ranges(repo, live(source, repo), BEFORE).keys()
    assert found == files(repo) - names - {f"{FOLDER}notes.json"}
