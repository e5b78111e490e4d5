"""The model of a lakeFS server, read by our own read side: it holds, shows and leaves out what a real one does."""

import csv
import json
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest
from lakefs_sdk import ApiClient, Configuration, ObjectsApi

import lakefs_collecting as collecting
import naive_sstable
from desilt.domain.identity import commit_hash
from desilt.domain.times import seconds
from desilt.errors import MissingTable, ServerFailed, Unreadable, WrongKeys
from desilt.lakefs import dump, settings, staged
from desilt.lakefs.active import active, meant
from desilt.lakefs.layout import LAYOUT, partition_seconds
from desilt.lakefs.namespace import Namespace
from desilt.lakefs.server import GcRules, Prepared, Server
from desilt.objects.memory import MemoryStore
from desilt.sstable.columns import entry_columns, whole
from desilt.sstable.table import Table
from desilt.sstable.values import read_metarange
from lakefs_http import API, KEY, SECRET
from lakefs_model import START, LakefsModel
from lakefs_subject import LakefsSubject, of_model

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DEMO = "/repositories/demo"


@pytest.fixture(params=["local", "s3"])
def model(request, tmp_path):
    """With its objects in a directory; or spelled as in a bucket, and in memory."""
    with LakefsModel("s3", opened=MemoryStore) if request.param == "s3" else LakefsModel(tmp_path) as found:
        yield found


@pytest.fixture
def local(tmp_path):
    with LakefsModel(tmp_path) as found:
        found.create("demo")
        yield found


@pytest.fixture
def repo(model):
    return model.create("demo")


@pytest.fixture
def server(model, repo):
    return Server(model.settings(repo.name), pause=lambda _: None)


@pytest.fixture
def ask(model, repo):
    """Requests to the repository, of somebody else."""
    access, at = of_model(model), f"/repositories/{repo.name}"
    return lambda method, where, *body, **query: access.answer(method, at + where, *body, **query)


def put(ask, branch, path, body):
    """Uploads; the whole address."""
    status, told = ask("POST", f"/branches/{branch}/objects", body, path=path)
    assert status == 201
    return told["physical_address"]


def commit(ask, branch, message="work", **more):
    status, told = ask("POST", f"/branches/{branch}/commits", {"message": message, **more})
    assert status == 201
    return told["id"]


def inside(repo, *uris):
    place = Namespace(repo.place.namespace, (repo.place.shown,))
    return set(place.inside(pa.array(uris, pa.string())).to_pylist())


def prepared(server, repo):
    """What prepare_uncommited lists."""
    return set(staged.addresses(repo.place.store, "", server.uncommitted()).to_pylist())


def shown(server, repo, branch):
    return inside(repo, *(one.address for one in server.listing(branch, page=3)))


def told(server):
    return dump.read(server.table, server.dump(), default_branch="main")


def held(server, repo, metarange):
    """The addresses of a commit that are in the namespace, as our reader finds them."""
    found = set()
    for listed in read_metarange(Table.from_bytes(server.table("meta_range", metarange), metarange)):
        entries = entry_columns(Table.from_bytes(server.table("range", listed.id), listed.id).read(), listed.id)
        for address, full in zip(entries["address"].to_pylist(), whole(entries).to_pylist(), strict=True):
            found |= inside(repo, address) if full else {address}
    return found


# refs


def test_commits_branches_and_tags_are_dumped_and_commits_of_deleted_branches_too(server, ask):
    put(ask, "main", "a", b"1")
    first = commit(ask, "main", metadata={"who": "ana", "also": "é"})
    ask("POST", "/branches", {"name": "dev", "source": "main"})
    put(ask, "dev", "b", b"2")
    second = commit(ask, "dev")
    ask("POST", "/tags", {"id": "v1", "ref": second})
    ask("POST", "/branches", {"name": "gone", "source": "dev"})
    put(ask, "gone", "c", b"3")
    third = commit(ask, "gone")
    assert ask("DELETE", "/branches/gone")[0] == 204
    seen = told(server).snapshot
    assert {branch.name: branch.head for branch in seen.branches} == {"main": first, "dev": second}
    assert {tag.name: tag.target for tag in seen.tags} == {"v1": second}
    assert seen.commits[third].parents == (second,)
    assert [seen.commits[name].generation for name in (first, second, third)] == [2, 3, 4]
    for one in seen.commits.values():
        facts = {"parents": one.parents, "metarange": one.metarange, "committer": one.committer}
        rest = {"message": one.message, "metadata": one.metadata, "seconds": seconds(one.created_at)}
        assert commit_hash(**facts, **rest) == one.id


def test_equal_refs_are_dumped_as_equal_tables(server, ask):
    before = server.dump()
    assert server.dump() == before
    put(ask, "main", "a", b"1")
    assert server.dump() == before  # what is staged is in no dump
    commit(ask, "main")
    assert server.dump() != before


def test_hidden_branches_are_dumped_and_what_is_staged_there_is_listed(server, repo, ask):
    repo.create_branch("secret", "main", hidden=True)
    address = put(ask, "secret", "a", b"1")
    assert [one["id"] for one in ask("GET", "/branches")[1]["results"]] == ["main"]
    assert told(server).hidden == {"secret"}
    assert prepared(server, repo) == inside(repo, address)


def test_a_commit_has_the_date_that_it_is_given(server, ask):
    put(ask, "main", "a", b"1")
    date = datetime(2024, 5, 1, 12, tzinfo=UTC)
    made = commit(ask, "main", date=seconds(date))
    assert told(server).snapshot.commits[made].created_at == date


def test_a_dump_goes_into_a_bare_repository(model, repo, ask):
    put(ask, "main", "a", b"1")
    commit(ask, "main")
    ask("POST", "/tags", {"id": "v1", "ref": "main"})
    _, refs = ask("PUT", "/refs/dump")
    copy = model.create("copy", repo.place.namespace, bare=True)
    copy.place = repo.place
    access = of_model(model)
    assert access.answer("PUT", "/repositories/copy/refs/restore", refs)[0] == 200
    assert (copy.commits, copy.tags) == (repo.commits, repo.tags)
    assert {one.path for one in Server(model.settings("copy")).listing("main")} == {"a"}
    assert access.answer("PUT", "/repositories/copy/refs/restore", refs)[0] == 400


def test_a_merge_takes_both_sides_and_refuses_what_they_disagree_on(server, ask):
    put(ask, "main", "a", b"1")
    commit(ask, "main")
    ask("POST", "/branches", {"name": "dev", "source": "main"})
    put(ask, "dev", "b", b"2")
    ask("DELETE", "/branches/dev/objects", path="a")
    other = commit(ask, "dev")
    put(ask, "main", "c", b"3")
    ours = commit(ask, "main")
    status, merged = ask("POST", "/refs/dev/merge/main", {"message": "both"})
    assert status == 200
    assert told(server).snapshot.commits[merged["reference"]].parents == (ours, other)
    assert [one.path for one in server.listing("main")] == ["b", "c"]
    assert ask("POST", "/refs/dev/merge/main", {})[0] == 400
    put(ask, "dev", "c", b"4")
    commit(ask, "dev")
    assert ask("POST", "/refs/dev/merge/main", {})[0] == 409


def test_a_revert_brings_an_address_back(server, repo, ask):
    address = put(ask, "main", "a", b"1")
    commit(ask, "main")
    ask("DELETE", "/branches/main/objects", path="a")
    gone = commit(ask, "main")
    assert shown(server, repo, "main") == set()
    assert ask("POST", "/branches/main/revert", {"ref": gone, "parent_number": 0})[0] == 204
    assert shown(server, repo, "main") == inside(repo, address)


# what is staged


def test_what_is_uploaded_is_listed_until_it_is_committed_or_reset(server, repo, ask):
    ask("POST", "/branches", {"name": "dev", "source": "main"})
    here, there = put(ask, "main", "a", b"1"), put(ask, "dev", "a", b"2")
    assert prepared(server, repo) == inside(repo, here, there)
    made = commit(ask, "main")
    assert prepared(server, repo) == inside(repo, there)
    assert held(server, repo, told(server).snapshot.commits[made].metarange) == inside(repo, here)
    assert ask("PUT", "/branches/dev", {"type": "reset"})[0] == 204
    assert prepared(server, repo) == set()
    assert shown(server, repo, "dev") == set()


def test_an_upload_of_equal_bytes_is_shown_and_listed_nowhere_and_a_commit_keeps_the_old_one(server, repo, ask):
    old = put(ask, "main", "a", b"1")
    first = commit(ask, "main")
    new = put(ask, "main", "a", b"1")
    assert prepared(server, repo) == set()
    assert ask("GET", "/branches/main/diff")[1]["results"] == []
    assert shown(server, repo, "main") == inside(repo, new)
    assert ask("POST", "/branches/main/commits", {"message": "nothing"}) == (400, {"message": "commit: no changes"})
    other = put(ask, "main", "b", b"2")
    second = commit(ask, "main")
    commits = told(server).snapshot.commits
    assert held(server, repo, commits[second].metarange) == inside(repo, old, other)
    assert held(server, repo, commits[first].metarange) == inside(repo, old)


def test_what_is_staged_again_is_listed_but_on_a_local_blockstore(server, model, repo, ask):
    """There, an address in the namespace is not spelled as the namespace is: it counts as one of elsewhere."""
    address = put(ask, "main", "a", b"1")
    ask("PUT", "/branches/main", {"type": "reset"})
    body = {"physical_address": address, "checksum": "c4ca4238a0b923820dcc509a6f75849b", "size_bytes": 1}
    assert ask("PUT", "/branches/main/objects", body, path="again")[0] == 201
    assert shown(server, repo, "main") == inside(repo, address)
    assert prepared(server, repo) == (set() if model.root else inside(repo, address))
    made = commit(ask, "main")
    assert held(server, repo, told(server).snapshot.commits[made].metarange) == inside(repo, address)
    assert ask("GET", "/refs/main/objects", path="again") == (200, b"1")


def test_what_is_linked_has_a_signed_name_and_is_listed_but_on_a_local_blockstore(server, model, repo, ask):
    _, handed = ask("GET", "/branches/main/staging/backing", path="direct")
    [address] = inside(repo, handed["physical_address"])
    assert LAYOUT.is_object(address)
    assert "," in address
    repo.place.put(address, b"direct")
    body = {"staging": handed, "checksum": "00", "size_bytes": 6}
    assert ask("PUT", "/branches/main/staging/backing", body, path="elsewhere")[0] == 400
    model.wait(10 * DAY)
    assert ask("PUT", "/branches/main/staging/backing", body, path="direct")[0] == 200
    assert shown(server, repo, "main") == {address}
    assert prepared(server, repo) == (set() if model.root else {address})


def test_a_link_may_expire(model, ask):
    model.ways.link_life = DAY
    _, handed = ask("GET", "/branches/main/staging/backing", path="direct")
    model.wait(DAY + HOUR)
    body = {"staging": handed, "checksum": "00", "size_bytes": 6}
    assert ask("PUT", "/branches/main/staging/backing", body, path="direct")[0] == 400


def test_whole_addresses_of_a_local_blockstore_may_be_shown_with_its_directory_twice(local):
    access = of_model(local)
    told = access.ask("POST", f"{DEMO}/branches/main/objects", b"1", path="a")
    body = {"physical_address": told["physical_address"], "checksum": "00", "size_bytes": 1}
    access.ask("PUT", f"{DEMO}/branches/main/objects", body, path="b")
    local.ways.full_twice = True
    shown = {one.path: one.address for one in Server(local.settings("demo")).listing("main")}
    assert shown["a"] == told["physical_address"]
    assert shown["b"] == f"local://{local.root}{told['physical_address'].removeprefix('local://')}"


def test_deleted_paths_hold_nothing_and_addresses_of_elsewhere_are_not_listed(server, repo, ask):
    put(ask, "main", "a", b"1")
    commit(ask, "main")
    ask("DELETE", "/branches/main/objects", path="a")
    put(ask, "main", "b", b"1")
    ask("DELETE", "/branches/main/objects", path="b")
    outside = {"physical_address": "s3://other/x", "checksum": "00", "size_bytes": 1}
    ask("PUT", "/branches/main/objects", outside, path="c")
    assert prepared(server, repo) == set()
    assert [(one.path, one.address) for one in server.listing("main")] == [("c", "s3://other/x")]


@pytest.mark.parametrize("page", [1, 2, 3, 5, 6, 7])
def test_pages_of_what_is_staged_have_all_of_it(server, model, repo, ask, page):
    ask("POST", "/branches", {"name": "clean", "source": "main"})
    ask("POST", "/branches", {"name": "dev", "source": "main"})
    wanted = [put(ask, branch, f"path-{n}", b"x") for branch in ("main", "dev") for n in range(3)]
    model.ways.uncommitted_page = page
    listed = server.uncommitted()
    assert (listed.pages, listed.files) == (-(-6 // page), -(-6 // page))
    assert set(staged.addresses(repo.place.store, "", listed).to_pylist()) == inside(repo, *wanted)


def test_pages_may_have_no_file_the_last_too(server, model, repo, ask):
    ask("POST", "/branches", {"name": "clean", "source": "main"})
    wanted = put(ask, "main", "a", b"1")
    model.ways.page_for_each_branch = True
    listed = server.uncommitted()
    assert (listed.pages, listed.files) == (3, 1)
    assert set(staged.addresses(repo.place.store, "", listed).to_pylist()) == inside(repo, wanted)


def test_pages_are_no_snapshot(server, model, repo, ask):
    """What is moved behind the place where the first page ended is on no page."""
    put(ask, "main", "b", b"1")
    moved = put(ask, "main", "c", b"2")
    model.ways.uncommitted_page = 1

    def rename(_):
        repo.branches["main"].staged[b"a"] = repo.branches["main"].staged.pop(b"c")

    model.after("POST", ".*/gc/prepare_uncommited", rename, times=1)
    assert inside(repo, moved).isdisjoint(prepared(server, repo))
    assert inside(repo, moved) <= shown(server, repo, "main")


def test_nothing_staged_is_a_run_without_files(server, repo):
    listed = server.uncommitted()
    assert listed == Prepared(listed.run_id, 1, 0)
    assert staged.addresses(repo.place.store, "", listed).to_pylist() == []


# objects and tables


def test_paths_may_be_any_bytes(server, repo, ask):
    for path in (b"bad\xffutf8", "é".encode(), b"a%20b", b"a+b", b"a//b", b"tab\tx", b"z"):
        status, _ = ask("POST", "/branches/main/objects", path, path=path)
        assert status == 201
    made = commit(ask, "main")
    found = list(server.listing("main", page=2))
    assert {one.path for one in found} == {"bad\ufffdutf8", "é", "a%20b", "a+b", "a//b", "tab\tx", "z"}
    assert server.served("main", "bad\udcffutf8").address in {one.address for one in found}
    assert len(held(server, repo, told(server).snapshot.commits[made].metarange)) == 7


def test_uploads_come_alone_or_as_the_official_client_sends_them(model, server, ask, tmp_path):
    client = ApiClient(Configuration(host=model.endpoint + API, username=KEY, password=SECRET))
    body = bytes(range(256)) + b"\r\n--x\r\n\r\n"
    (tmp_path / "form").write_bytes(body)
    ObjectsApi(client).upload_object("demo", "main", "form", content=str(tmp_path / "form"))
    put(ask, "main", "raw", body)
    for path in ("form", "raw"):
        assert ask("GET", "/refs/main/objects", path=path) == (200, body)
    one, two = server.listing("main")
    assert (one.size, one.checksum) == (two.size, two.checksum)


def test_a_commit_may_have_many_ranges_and_commits_share_them(server, model, repo):
    model.ways.raggedness = 4
    for n in range(60):
        repo.upload("main", b"path/%02d" % n, b"%d" % n)
    first = repo.make_commit("main", "many").metarange
    repo.upload("main", b"path/59", b"other")
    second = repo.make_commit("main", "one more").metarange
    tables = [
        {one.id for one in read_metarange(Table.from_bytes(server.table("meta_range", name), name))}
        for name in (first, second)
    ]
    assert min(map(len, tables)) > 5
    assert len(tables[0] ^ tables[1]) == 2
    assert len(held(server, repo, first)) == 60
    for n in range(20):
        repo.create_tag(f"v{n}", "main")
    refs = server.dump()
    assert len(told(server).snapshot.tags) == 20
    dumped = naive_sstable.records(server.table("meta_range", refs.tags))  # by a reader that shares nothing with ours
    ranges = [naive_sstable.records(server.table("range", value[2:66].decode())) for _, value in dumped]
    assert len(ranges) > 1
    assert [key for records in ranges for key, _ in records] == sorted(f"v{n}".encode() for n in range(20))


def test_names_and_files_have_the_models_time(local):
    repo = local.repositories["demo"]
    old = repo.upload("main", b"a", b"1").address
    same = repo.upload("main", b"b", b"1").address
    local.wait(HOUR)
    new = repo.upload("main", b"c", b"1").address
    assert [LAYOUT.named_at(one) for one in (old, same, new)] == [START, START, START + HOUR]
    folders = [one.split("/")[1] for one in (old, same, new)]
    assert folders[0] == folders[1] > folders[2]
    assert [partition_seconds(one) for one in folders] == [seconds(START), seconds(START), seconds(START + HOUR)]
    for address, at in ((old, START), (new, START + HOUR)):
        assert (local.root / "demo" / address).stat().st_mtime == at.timestamp()
    assert LAYOUT.objects(pa.array([old, same, new])).all()


def test_a_lost_object_can_be_listed_and_not_read_and_a_lost_range_neither(server, repo, ask):
    address = put(ask, "main", "a", b"1")
    made = commit(ask, "main")
    repo.place.store.delete_many(sorted(inside(repo, address)))
    assert ask("GET", "/refs/main/objects", path="a") == (410, {"message": "No data"})
    assert ask("HEAD", "/refs/main/objects", path="a")[0] == 200
    assert server.served("main", "a").size == 1
    assert ask("POST", "/branches/main/objects/copy", {"src_path": "a", "src_ref": "main"}, dest_path="b")[0] == 500
    metarange = told(server).snapshot.commits[made].metarange
    [listed] = read_metarange(Table.from_bytes(server.table("meta_range", metarange), metarange))
    repo.place.store.delete_many([f"_lakefs/{listed.id}"])
    assert ask("GET", "/refs/main/objects/ls")[0] == 410
    with pytest.raises(MissingTable):
        server.table("range", listed.id)


# rules


def test_rules_are_kept_in_the_servers_own_file(server, repo, ask):
    assert server.rules() is None
    rules = {"default_retention_days": -1, "branches": [{"branch_id": "none such", "retention_days": 3}]}
    assert ask("PUT", "/settings/gc_rules", rules)[0] == 204
    assert server.rules() == GcRules(-1, {"none such": 3})
    repo.rules = None
    capture = {"default_retention_days": 7, "branches": [{"branch_id": "dev", "retention_days": 1}]}
    ask("PUT", "/settings/gc_rules", capture)
    assert repo.place.store.get("_lakefs/retention/gc/rules/config.json") == bytes.fromhex("080712070a036465761001")
    assert ask("DELETE", "/settings/gc_rules")[0] == 204
    assert server.rules() is None


def test_active_commits_are_listed_by_both_calls(server, model, repo, ask):
    assert ask("POST", "/gc/prepare_commits")[0] == 404
    _, begun = ask("POST", "/gc/prepare_commits/async")
    assert ask("GET", "/gc/prepare_commits/status", id=begun["id"])[1]["error"] == {"message": "not found"}
    ask("PUT", "/settings/gc_rules", {"default_retention_days": 1, "branches": []})
    for n in range(3):
        put(ask, "main", "a", b"%d" % n)
        commit(ask, "main")
        model.wait(DAY)
    status, answer = ask("POST", "/gc/prepare_commits")
    if model.root:  # what a local blockstore cannot sign is an error, and the list is there all the same
        assert status == 400
        with pytest.raises(json.JSONDecodeError, match="Extra data"):
            json.loads(answer)
        answer = json.loads(answer.splitlines()[1])
    _, begun = ask("POST", "/gc/prepare_commits/async")
    _, done = ask("GET", "/gc/prepare_commits/status", id=begun["id"])
    seen = told(server).snapshot
    ours = active(seen.commits, {"main": seen.branches[0].head}, server.rules(), model.clock())
    assert 0 < len(ours) < len(seen.commits)
    for one in (answer, done["result"]):
        [key] = inside(repo, one["gc_commits_location"])
        rows = list(csv.DictReader(repo.place.store.get(key).decode().splitlines()))
        assert {row["commit_id"]: row["metarange_id"] for row in rows} == {
            name: seen.commits[name].metarange for name in ours
        }


def grown(model, noise):
    """A repository with a history of chance, over weeks; and rules of chance."""
    repo = model.create(f"grown-{len(model.repositories)}")
    for n in range(noise.randrange(4, 25)):
        model.wait(noise.randrange(0, 5) * DAY + HOUR)
        names = sorted(repo.branches)
        branch, other = noise.choice(names), noise.choice(names)
        step = noise.random()
        if step < 0.25:
            repo.create_branch(f"b{n}", noise.choice(sorted(repo.commits)))
        elif step < 0.35 and branch != "main":
            repo.delete_branch(branch)
        elif step < 0.5 and branch != other:
            repo.branches[branch].head = repo._add(
                [repo.branches[branch].head, repo.branches[other].head], "", f"m{n}", {}
            ).id
        else:
            repo.make_commit(branch, f"c{n}", allow_empty=True)
    days = {name: noise.randrange(-1, 30) for name in repo.branches if noise.random() < 0.5}
    collecting.set_rules(repo, noise.randrange(-1, 30), days)
    return repo


def test_active_commits_of_any_history_are_those_that_we_work_out():
    noise, differ, kept = random.Random(3), 0, []
    with LakefsModel("s3", opened=MemoryStore) as model:
        for _ in range(150):
            repo = grown(model, noise)
            heads = {branch.name: branch.head for branch in repo.branches.values()}
            ours = active(repo.commits, heads, GcRules(*repo.rules), model.clock())
            listed = {commit.id for commit in collecting.active(repo)}
            assert listed == ours
            differ += ours != meant(repo.commits, heads, GcRules(*repo.rules), model.clock())
            kept.append(len(ours) < len(repo.commits))
    assert sum(kept) > 30
    assert differ  # the order of ids has played its part


# misbehaviour


def test_a_status_may_be_given_so_many_times_and_requests_are_counted(server, model):
    model.misbehave("GET", f"{DEMO}/refs/main/objects/ls", status=503, times=2)
    assert list(server.listing("main")) == []
    assert model.asked["GET", "/repositories/{repository}/refs/{ref}/objects/ls"] == 3
    model.misbehave("GET", ".*/objects/ls", status=500, times=99)
    with pytest.raises(ServerFailed, match="failed, 6 times"):
        list(server.listing("main"))
    model.behave()
    assert list(server.listing("main")) == []


def test_somebody_may_do_something_in_the_middle(server, model, repo, ask):
    """A hook may ask the same server."""
    addresses = []
    model.before("POST", f"{DEMO}/dump", lambda _: addresses.append(put(ask, "main", "late", b"1")), times=1)
    model.after("POST", f"{DEMO}/dump", lambda _: commit(ask, "main"), times=1)
    assert len(told(server).snapshot.commits) == 1
    assert len(told(server).snapshot.commits) == 2
    assert shown(server, repo, "main") == inside(repo, *addresses)


def test_a_server_may_take_its_time_over_a_dump(model, repo):
    pauses = []
    model.ways.polls = 3
    Server(model.settings(repo.name), pause=pauses.append).dump()
    assert len(pauses) == 3


def test_refs_may_be_lost_from_dumps(server, model, ask):
    put(ask, "main", "a", b"1")
    made = commit(ask, "main")
    with model.lose_commit("demo", made), pytest.raises(Unreadable, match=f"commit {made} is missing"):
        told(server)
    with model.lose_branches("demo"), pytest.raises(Unreadable, match="branch 'main' is missing"):
        told(server)
    assert made in told(server).snapshot.commits


def test_a_read_only_repository_takes_nothing(server, repo, ask):
    repo.read_only = True
    assert server.repository().read_only
    assert ask("POST", "/branches/main/objects", b"1", path="a") == (403, {"message": "read-only repository"})
    with pytest.raises(ServerFailed, match="read-only"):
        server.uncommitted()


def test_wrong_keys_and_unknown_things_are_refused_as_by_a_real_server(model, ask):
    with pytest.raises(WrongKeys):
        Server(settings.Settings(model.endpoint, "demo", KEY, "wrong")).repository()
    assert ask("GET", "/branches/nope") == (404, {"message": "branch not found"})
    assert ask("GET", "/refs/nope/objects/ls")[0] == 404
    assert ask("DELETE", "/branches/main")[0] == 403
    assert ask("POST", "/branches", {"name": "main", "source": "main"})[0] == 409
    assert ask("POST", "/made/up") == (500, {"message": "invalid API endpoint"})
    assert model.unknown == [("POST", f"{DEMO}/made/up")]


# somebody who works on it


def test_a_subject_does_its_work_by_requests_alone(model):
    opened = []

    def open_repository(uri, db, clock):
        opened.append((uri, db))
        return clock

    access = of_model(model, "" if model.root else "s3://lake/tests")
    subject = LakefsSubject(access, open_repository, "a database", model=model)
    assert opened == [(subject.uri, "a database")]
    found = settings.find(subject.uri, environment={"HOME": "/nowhere", **access.environment})
    server, repo = Server(found, pause=lambda _: None), model.repositories[subject.name]
    address = subject.upload("main", "a", b"1")
    assert prepared(server, repo) == {address}
    subject.unstage("main")
    assert prepared(server, repo) == set()
    subject.stage_again("main", "again", address)
    assert shown(server, repo, "main") == {address}
    first = subject.commit("main", "first")
    subject.branch("dev", "main")
    subject.tag("v1", "main")
    assert subject.begin_upload("main", "b") is None
    subject.upload("dev", "b", b"2")
    second = subject.commit("dev", "second")
    subject.delete_branch("dev")
    seen = told(server).snapshot
    assert seen.commits[second].parents == (first,)
    assert (seen.names, [tag.name for tag in seen.tags]) == (["main"], ["v1"])
    before = subject.now()
    subject.wait(DAY)
    assert subject.now() == model.clock() == subject.repository() == before + DAY
    with subject.lose_commit(first), pytest.raises(Unreadable):
        told(server)
    with subject.lose_branches(), pytest.raises(Unreadable):
        told(server)
    subject.close()
    assert model.repositories == {}
    live = LakefsSubject(access, open_repository, "")
    with pytest.raises(pytest.skip.Exception):
        live.lose_branches()


def test_names_rise_and_fall(model):
    rising, falling = [], []
    for _ in range(5):
        rising.append(model.names.rising())
        falling.append(model.names.falling())
        model.wait(timedelta(seconds=1))
    assert all(one < other for one, other in pairwise(rising))
    assert all(one > other for one, other in pairwise(falling))
