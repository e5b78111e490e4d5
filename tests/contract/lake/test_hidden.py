"""What a run has marked is not shown: not listed, and absent from differences, but still there for all who decide."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.domain.entry import Entry, encode_prefix
from desilt.errors import Gone, MergeConflict
from desilt.executors.executor import HERE
from desilt.lake import Lake, hidden, listing, views
from desilt.lake.lake import locate
from desilt.lake.listing import CommonPrefix
from desilt.records import ledger, removals
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import MARKS, State, Tombstone
from words import changes, committed, contents, put, seal, stage, write

AT = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def condemn(repo, *addresses, run="run-m", action="mark", state=State.MARKED):
    with repo.database.write() as tx:
        row = RunRow(run, "retention", "{}", action, AT, AT, RunState.SWEPT, len(addresses), 0)
        ledger.begin(tx, repo.uid, row)
        removals.condemn(tx, repo.uid, [Tombstone(one, run, "1", AT, state=state) for one in addresses])


def lift(repo, *addresses, run="run-m", state=State.RESTORED):
    with repo.database.write() as tx:
        removals.lift(tx, repo.uid, run, addresses, state, at=AT)


def address(repo, path, ref="main"):
    return repo.stat(ref, path).address


def mark(repo, *paths, ref="main"):
    condemn(repo, *(address(repo, path, ref) for path in paths))


def names(repo, ref="main", **options):
    return [found.path for found in repo.list(ref, **options)]


def sides(found):
    return {change.path: (change.before, change.after) for change in found}


# ---- listing


def test_what_a_run_marked_is_not_listed_anywhere(repo):
    committed(repo, "main", a="1", b="2", c="3")
    repo.create_branch("dev", "main")
    repo.create_tag("v1", "main")
    mark(repo, "b")
    for ref in ("main", "main@", "dev", "v1", repo.resolve("main").commit.id):
        assert names(repo, ref) == ["a", "c"]
        assert names(repo, ref, gone=True) == ["a", "b", "c"]
        with pytest.raises(Gone):
            repo.stat(ref, "b")


@pytest.mark.parametrize("state", MARKS)
def test_it_stays_hidden_whatever_became_of_its_object(repo, state):
    committed(repo, "main", a="1", b="2")
    condemn(repo, address(repo, "a"), state=state)
    assert names(repo) == ["b"]


def test_what_another_job_removed_is_listed_as_before(repo):
    committed(repo, "main", a="1", b="2", c="3")
    mark(repo, "a")
    condemn(repo, address(repo, "b"), run="run-l", action="delete", state=State.CONDEMNED)
    assert names(repo) == ["b", "c"]
    assert repo.tombstones(entry.address for entry in repo.list("main", gone=True)).keys() == {
        entry.address for entry in repo.list("main", gone=True) if entry.path != "c"
    }


def test_what_is_marked_and_then_removed_by_another_job_is_listed_again_as_gone(repo):
    committed(repo, "main", a="1")
    found = address(repo, "a")
    condemn(repo, found)
    assert names(repo) == []
    condemn(repo, found, run="run-l", action="delete", state=State.CONDEMNED)
    assert names(repo) == ["a"]


def test_what_was_brought_back_is_shown_again(repo):
    committed(repo, "main", a="1", b="2")
    found = address(repo, "a")
    condemn(repo, found)
    lift(repo, found, state=State.RESTORING)
    assert names(repo) == ["b"]
    lift(repo, found)
    assert contents(repo, "main") == {"a": "1", "b": "2"}


def test_marks_hide_in_one_repository(lake, repo):
    other = lake.create_repository("other")
    committed(repo, "main", a="1")
    condemn(other, address(repo, "a"))
    assert names(repo) == ["a"]


def test_a_folder_is_listed_for_what_can_be_seen_in_it(repo):
    committed(repo, "main", **{"a": "", "d/1": "", "d/2": "", "e/f/1": "", "e/g/1": "", "e/g/2": "", "z": ""})
    mark(repo, "d/1", "d/2", "e/f/1")
    assert names(repo, delimiter="/") == ["a", "e/", "z"]
    assert names(repo, prefix="e/", delimiter="/") == ["e/g/"]
    assert names(repo, prefix="d/") == names(repo, prefix="d/", delimiter="/") == []
    assert names(repo, delimiter="/", gone=True) == ["a", "d/", "e/", "z"]
    assert names(repo, prefix="d/", gone=True) == ["d/1", "d/2"]


def test_listing_goes_on_after_hidden_paths_and_folders(repo):
    committed(repo, "main", **{"a": "", "b": "", "d/1": "", "d/2": "", "e/1": "", "e/2": ""})
    mark(repo, "b", "d/1", "e/1")
    assert names(repo, after="a") == names(repo, after="b") == names(repo, after="d/1") == ["d/2", "e/2"]
    assert names(repo, after="d/2") == names(repo, after="e/1") == ["e/2"]
    assert names(repo, after="b", delimiter="/") == ["d/", "e/"]
    assert names(repo, after="d/", delimiter="/") == names(repo, after="d/2", delimiter="/") == ["e/"]
    assert names(repo, after="e/", delimiter="/") == []


def test_what_is_staged_is_hidden_and_nothing_below_it_shows_instead(repo):
    committed(repo, "main", over="1", under="1", kept="1")
    old = address(repo, "under")
    write(repo, "main", over="2", under="2", new="2")
    mark(repo, "over", "new")
    condemn(repo, old)
    assert names(repo) == ["kept", "under"]
    assert contents(repo, "main") == {"kept": "1", "under": "2"}
    assert names(repo, "main@") == ["kept", "over"]
    assert names(repo, gone=True) == ["kept", "new", "over", "under"]


def test_what_a_commit_that_died_had_sealed_is_hidden_too(repo):
    put(repo, "main", "a")
    put(repo, "main", "b")
    seal(repo, "main")
    put(repo, "main", "c")
    mark(repo, "a", "c")
    assert names(repo) == ["b"]


def test_commits_and_merges_carry_hidden_entries_on(repo):
    committed(repo, "main", a="1", b="2")
    put(repo, "main", "staged")
    mark(repo, "a", "staged")
    repo.commit("main", "with a hidden one")
    repo.create_branch("dev", "main")
    committed(repo, "dev", c="3")
    committed(repo, "main", d="4")
    repo.merge("dev", "main")
    assert names(repo) == ["b", "c", "d"]
    assert names(repo, gone=True) == ["a", "b", "c", "d", "staged"]
    assert repo.count_gone("main") == 2


def test_a_merge_takes_hidden_entries_for_what_they_are(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    committed(repo, "main", a="2")
    committed(repo, "dev", a="3")
    mark(repo, "a", ref="main")
    mark(repo, "a", ref="dev")
    with pytest.raises(MergeConflict):
        repo.merge("dev", "main")


def test_a_path_is_shown_again_once_it_is_written_again(repo):
    committed(repo, "main", a="1")
    mark(repo, "a")
    write(repo, "main", a="2")
    assert contents(repo, "main") == {"a": "2"}
    repo.commit("main", "again")
    assert contents(repo, "main@") == {"a": "2"}


def test_removing_below_a_prefix_takes_hidden_entries_too(repo):
    committed(repo, "main", **{"p/a": "1", "p/b": "2", "q": "3"})
    mark(repo, "p/a")
    assert list(repo.remove_below("main", "p/")) == ["p/a", "p/b"]
    assert names(repo, gone=True) == ["q"]


def test_those_who_judge_by_paths_see_hidden_ones(repo):
    committed(repo, "main", a="1")
    put(repo, "main", "staged")
    mark(repo, "a", "staged")
    assert set(repo.source(HERE).paths("")) == {"a", "staged"}


# ---- differences

CASES = {
    ("", "seen"): "+",
    ("", "hidden"): "",
    ("seen", ""): "-",
    ("hidden", ""): "",
    ("seen", "seen"): "~",
    ("seen", "hidden"): "-",
    ("hidden", "seen"): "+",
    ("hidden", "hidden"): "",
    ("other", "seen"): "~",
    ("seen", "other"): "~",
    ("other", "other"): "~",
    ("other", "hidden"): "-",
    ("hidden", "other"): "+",
}
"""What a path was and is, and what a diff says of it; ``other`` was removed by another job."""


def path_of(case):
    return f"p/{case[0] or 'none'}-{case[1] or 'none'}"


def written(repo, side):
    """All paths as they are on one side; those of the other are gone."""
    found = {"hidden": [], "other": []}
    for case in CASES:
        if case[side]:
            found.setdefault(case[side], []).append(put(repo, "main", path_of(case)))
        elif case[0]:
            repo.remove("main", path_of(case))
    return found["hidden"], found["other"]


@pytest.fixture
def two_sides(repo):
    """Both sides of every case: the older one committed, the newer one staged."""
    put(repo, "main", "p/same")
    put(repo, "main", "p/same-hidden")
    older = written(repo, 0)
    repo.commit("main", "older")
    newer = written(repo, 1)
    mark(repo, "p/same-hidden")
    condemn(repo, *older[0], *newer[0])
    condemn(repo, *older[1], *newer[1], run="run-l", action="delete", state=State.CONDEMNED)
    return repo


WANTED = {kind + path_of(case) for case, kind in CASES.items() if kind}
EVERYTHING = {("~" if all(case) else "-" if case[0] else "+") + path_of(case) for case in CASES}


def test_in_what_is_staged_a_hidden_side_is_absent(two_sides):
    assert changes(two_sides.uncommitted("main")) == WANTED
    assert changes(two_sides.uncommitted("main", prefix="p/hidden-s")) == {"+p/hidden-seen"}
    assert changes(two_sides.uncommitted("main", prefix="q")) == set()
    assert changes(two_sides.uncommitted("main", gone=True)) == EVERYTHING


@pytest.mark.parametrize("since_base", [False, True])
def test_between_commits_a_hidden_side_is_absent(two_sides, since_base):
    repo = two_sides
    repo.create_branch("dev", "main")
    repo.commit("main", "newer")
    assert changes(repo.diff("main~1", "main", since_base=since_base)) == WANTED
    assert changes(repo.diff("main~1", "main", since_base=since_base, gone=True)) == EVERYTHING
    back = {"+": "-", "-": "+", "~": "~"}
    assert changes(repo.diff("main", "main~1")) == {back[one[0]] + one[1:] for one in WANTED}


def test_the_sides_of_a_change_are_entries_or_none(two_sides):
    found = sides(two_sides.uncommitted("main"))
    everything = sides(two_sides.uncommitted("main", gone=True))
    assert None not in everything["p/seen-hidden"] + everything["p/hidden-seen"]
    assert found["p/seen-hidden"] == (everything["p/seen-hidden"][0], None)
    assert found["p/hidden-seen"] == (None, everything["p/hidden-seen"][1])


# ---- what it costs


@pytest.fixture
def asked(monkeypatch):
    """What the ledger was asked, in order: None is whether anything was ever marked, a number of how many addresses."""
    found = []
    any_hidden, among = removals.hides_any, removals.hidden_among

    def hides_any(*args):
        found.append(None)
        return any_hidden(*args)

    def hidden_among(tx, repository, addresses):
        found.append(len(addresses))
        return among(tx, repository, addresses)

    monkeypatch.setattr(removals, "hides_any", hides_any)
    monkeypatch.setattr(removals, "hidden_among", hidden_among)
    return found


LOOKS = {
    "list": lambda repo, **how: list(repo.list("main", delimiter="/", **how)),
    "diff": lambda repo, **how: list(repo.diff("main~1", "main", **how)),
    "uncommitted": lambda repo, **how: list(repo.uncommitted("main", **how)),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_lake_where_nothing_was_marked_asks_one_question(repo, asked, look):
    committed(repo, "main", a="1", b="2")
    write(repo, "main", c="3")
    condemn(repo, address(repo, "a"), run="run-l", action="delete", state=State.CONDEMNED)
    look(repo)
    assert asked == [None]
    look(repo, gone=True)
    assert asked == [None]


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_another_looks_up_many_at_a_time(repo, asked, look):
    committed(repo, "main", a="1", b="2", c="3")
    write(repo, "main", d="3", e="4")
    mark(repo, "a")
    look(repo)
    assert asked[0] is None
    assert len(asked) == 2
    del asked[:]
    look(repo, gone=True)
    assert asked == []


@pytest.mark.usefixtures("unsound")  # what is staged here has no object
def test_read_ahead_is_short_where_folders_are_skipped_and_grows_where_entries_are_taken(repo, asked):
    paths = [f"{folder:02d}/{number:02d}" for folder in range(40) for number in range(50)]
    stage(repo, "main", *(Entry(path, f"nowhere/{path}", 1, "sum", 1_000) for path in paths))
    condemn(repo, "nowhere/07/00")
    assert len(names(repo)) == 1999
    assert asked == [None, 16, 32, 64, 128, 256, 512, 992]
    del asked[:]
    assert len(names(repo, delimiter="/")) == 40
    assert asked == [None] + [16] * 40


# ---- any of it, against what is listed whole and then filtered

ALPHABET = "ab/\udcff"  # the last is a byte that is no UTF-8, and the greatest that there is
FOLDERS = st.sampled_from(["", "", "a/", "a/", "b/", "b/a/", "\udcff", "\udcff/"])
PATHS = st.builds(str.__add__, FOLDERS, st.text(ALPHABET, min_size=1, max_size=3))
FILES = st.dictionaries(PATHS, st.sampled_from(["kept", "hidden"]), max_size=25)
STAGED = st.dictionaries(PATHS, st.sampled_from(["kept", "hidden", "removed"]), max_size=10)
SIZES = st.sampled_from([(1, 1), (1, 3), (2, 5), (16, 1_000)])
TEXTS = st.text(ALPHABET, max_size=2)


def seen_of(repo, ref, unseen):
    return {one.path: one for one in repo.list(ref, gone=True) if one.address not in unseen}


def folded(found, prefix, delimiter, after):
    """Of entries in path order: those that are wanted, as they are listed."""
    prefix, delimiter, after = (encode_prefix(one) for one in (prefix, delimiter, after))
    wanted = {}
    for one in found:
        key = encode_prefix(one.path)
        cut = key.find(delimiter, len(prefix)) if delimiter else -1
        if not key.startswith(prefix) or key <= after:
            continue
        if cut < 0:
            wanted[key] = one
        elif not after.startswith(folder := key[: cut + len(delimiter)]):
            wanted[folder] = CommonPrefix(folder.decode(errors="surrogateescape"))
    return list(wanted.values())


def turned(before, after):
    return {
        path: (before.get(path), after.get(path))
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }


@pytest.mark.usefixtures("unsound")  # no entry here has an object
def test_any_look_is_what_is_left_of_everything_without_what_is_hidden(repo, monkeypatch):
    base = repo.resolve("main").commit.id
    numbers = iter(range(1_000_000))

    @settings(max_examples=60)
    @given(st.lists(FILES, min_size=1, max_size=2), STAGED, st.data())
    def look(commits, staged, data):
        branch = f"b{next(numbers)}"
        repo.create_branch(branch, base)
        unseen = set()

        def make(files):
            made = {path: Entry(path, f"nowhere/{next(numbers)}", 1, "sum", 1_000) for path in files}
            stage(repo, branch, *made.values())
            unseen.update(made[path].address for path, what in files.items() if what == "hidden")
            for path in [path for path, what in files.items() if what == "removed"]:
                repo.remove(branch, path)

        for files in commits:
            make(files)
            repo.commit(branch, "files", allow_empty=True)
        make(staged)
        condemn(repo, *unseen)
        first, most = data.draw(SIZES, label="read ahead")
        monkeypatch.setattr(hidden, "FIRST", first)
        monkeypatch.setattr(hidden, "MOST", most)
        monkeypatch.setattr(hidden, "AS_COLUMNS", data.draw(st.sampled_from([1, 100]), label="as columns from"))
        page = data.draw(st.sampled_from([1, 2, 1_000]), label="page")
        monkeypatch.setattr(listing, "PAGE", page)
        monkeypatch.setattr(views, "PAGE", page)

        shown, head = seen_of(repo, branch, unseen), seen_of(repo, f"{branch}@", unseen)
        for _ in range(4):
            where = {
                "prefix": data.draw(st.one_of(st.just(""), FOLDERS, TEXTS), label="prefix"),
                "delimiter": data.draw(st.sampled_from(["", "/", "/", "a", "b/", "\udcff"]), label="delimiter"),
                "after": data.draw(st.one_of(st.just(""), TEXTS, PATHS), label="after"),
            }
            assert list(repo.list(branch, **where)) == folded(shown.values(), **where)
        assert list(repo.list(branch)) == list(shown.values())
        assert sides(repo.uncommitted(branch)) == turned(head, shown)
        before = seen_of(repo, f"{branch}~1", unseen)
        assert sides(repo.diff(f"{branch}~1", f"{branch}@")) == turned(before, head)

    look()


def test_a_listing_taken_in_pages_shows_each_path_once(repo):
    committed(repo, "main", **{f"{folder}/{number}": "" for folder in "abcd" for number in range(3)}, c="", e="")
    mark(repo, "a/0", "b/0", "b/1", "b/2", "d/1", "e")
    for delimiter, wanted in (("/", ["a/", "c", "c/", "d/"]), ("", None)):
        found, last = [], ""
        while page := [
            one.path for one, _ in zip(repo.list("main", delimiter=delimiter, after=last), [1], strict=False)
        ]:
            found, last = found + page, page[-1]
        assert found == (wanted or ["a/1", "a/2", "c", "c/0", "c/1", "c/2", "d/0", "d/2"])


# ---- the command line


def test_commands_show_hidden_entries_when_asked(cli, place):
    lake = Lake.create(locate(f"{place}/lake"))
    repo = lake.create_repository("demo")
    uri = f"{place}/lake#demo"
    committed(repo, "main", **{"a": "1", "d/b": "2"})
    put(repo, "main", "c")
    mark(repo, "d/b", "c")
    lake.close()

    def lines(*words):
        code, out, err = cli("lake", *words)
        assert (code, err) == (0, "")
        return out.splitlines()

    def listed(*words):
        return [line.split("\t")[1:] for line in lines("ls", uri, "main", *words)]

    assert listed() == [["1 B", "a"]]
    assert listed("--gone") == [["1 B", "a"], ["gone", "c"], ["", "d/"]]
    assert listed("-r", "--gone") == [["1 B", "a"], ["gone", "c"], ["gone", "d/b"]]
    rows = [json.loads(line) for line in lines("ls", uri, "main", "-r", "--gone", "--json")]
    assert [row["path"] for row in rows if row.get("gone", {}).get("run") == "run-m"] == ["c", "d/b"]
    assert lines("diff", uri, "main") == []
    assert lines("diff", uri, "main", "--gone") == ["+ c"]
    assert lines("diff", uri, "main~1", "main") == ["+ a"]
    assert lines("diff", uri, "main~1", "main", "--gone") == ["+ a", "+ d/b"]
    assert lines("rm", uri, "main", "d/", "-r") == ["Removed 1 paths below d/"]
