"""The model of a lakeFS server, given what the real one was given: it answers the same, but for names and times."""

import base64
import json

import pytest

from desilt.lakefs import dump
from desilt.lakefs.server import DumpedRefs
from desilt.objects.memory import MemoryStore
from desilt.sstable.table import RAW, Table
from desilt.sstable.values import decode_entry, read_metarange
from desilt.sstable.writer import write_table
from lakefs_files import entitled
from lakefs_model import LakefsModel
from lakefs_server import FOLDERS, ROOT, answers
from lakefs_subject import of_model

NAMED = {  # what a name or a moment is found under: it differs, and comes again in later requests
    "commit_id",
    "creation_date",
    "gc_addresses_location",
    "gc_commits_location",
    "gc_commits_presigned_url",
    "gc_uncommitted_location",
    "id",
    "location",
    "meta_range_id",
    "branches_meta_range_id",
    "commits_meta_range_id",
    "tags_meta_range_id",
    "mtime",
    "parents",
    "physical_address",
    "run_id",
    "task_id",
    "update_time",
}
ELSEWHERE = {47}  # what is signed for a store
LINES = [json.loads(line) for line in (ROOT / "transcript.jsonl").read_text().splitlines()]
UNHELD = "s3://lake/capture/data/fta72g1ksdu910j5r8ng/dbt9439ksdu910j5ra30"
MERGED, DEV, DROPPED = ("15725eb83ff3", "605ec01e7234", "82584c055d4f")


def dumped(entity):
    for folder in FOLDERS:
        for path in sorted(folder.iterdir()):
            if len(path.name) == 64 and (table := Table.from_bytes(path.read_bytes(), path.name)).properties.get(
                "entity"
            ) == (entity.encode()):
                yield path, table


@pytest.mark.parametrize("entity", ["commit", "branch", "tag"])
def test_tables_of_a_dump_are_the_servers_byte_for_byte(entity):
    found = list(dumped(entity))
    assert {table.kind for _, table in found} == {"ranges", "metaranges"}
    for path, table in found:
        assert table.read().schema == RAW
        made = entitled(write_table(table.read(), kind=table.kind), table.kind, entity)
        assert (made.id, made.data) == (path.name, path.read_bytes())


class Captured:
    """What the real server had: commits, and what each holds."""

    def __init__(self):
        told = answers("dump refs (synchronous)")[0]
        refs = DumpedRefs(*(told[f"{kind}_meta_range_id"] for kind in ("commits", "branches", "tags")))
        self.commits = dump.read(lambda _, name: table(name), refs, default_branch="main").snapshot.commits

    def named(self, start):
        [found] = [commit for name, commit in self.commits.items() if name.startswith(start)]
        return found

    def entries(self, commit):
        found = {}
        for listed in read_metarange(Table.from_bytes(table(commit.metarange), "")) if commit.metarange else ():
            records = Table.from_bytes(table(listed.id), listed.id).read()
            for path, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True):
                found[path] = decode_entry(path, value)
        return found


def table(name):
    return (ROOT / "namespace" / "_lakefs" / name).read_bytes()


def body(entry):
    return (ROOT / "namespace" / entry.address).read_bytes()


def work(repository, branch, captured, commit):
    """What led to ``commit``."""
    was, now = captured.entries(captured.commits[commit.parents[0]]), captured.entries(commit)
    for path, entry in now.items():
        if was.get(path) != entry:
            repository.upload(branch, path, body(entry), content_type=entry.content_type, metadata=entry.metadata)
    for path in was.keys() - now.keys():
        repository.delete(branch, path)
    return repository.make_commit(branch, commit.message, metadata=commit.metadata)


def prepared(model):
    """The repository as it was when requests were recorded; what a few things are called that nothing lists."""
    repository, captured = model.repositories["capture"], Captured()
    merged = captured.named(MERGED)
    first = captured.commits[captured.named(DEV).parents[0]]
    work(repository, "main", captured, first)
    repository.create_tag("v1", "main")
    repository.create_branch("dev", "main")
    work(repository, "dev", captured, captured.named(DEV))
    model.wait(model.clock.now.resolution)
    work(repository, "main", captured, captured.commits[merged.parents[0]])
    repository.merge("dev", "main", merged.message, {})
    repository.create_branch("gone", "main")
    dropped = work(repository, "gone", captured, captured.named(DROPPED))
    repository.delete_branch("gone")
    [listing] = [one["results"] for one in answers("list, staged over committed") if "é" in str(one["results"][-1])][:1]
    for row in listing:
        if row["path"].startswith("staged/"):
            source = ROOT / "namespace" / row["physical_address"].removeprefix("s3://lake/capture/")
            repository.upload("main", row["path"].encode(), source.read_bytes())
    [again] = [path for path in repository.view("main") if path == b"data/day=1/f01"]
    repository.upload("main", again, repository.get(repository.view("main")[again]))
    lost = repository.upload("main", b"lost", b"revived")
    repository.delete("main", b"lost")
    return {UNHELD: repository.shown(lost), captured.named(DROPPED).id: dropped.id}


class Told:
    """Compares answers, and learns what the model calls things."""

    def __init__(self):
        self.names = {}

    def same(self, real, ours, where=""):
        key = where.rpartition(".")[2]
        if isinstance(real, dict) and isinstance(ours, dict):
            assert real.keys() == ours.keys(), where
            for name in real:
                self.same(real[name], ours[name], f"{where}.{name}")
        elif isinstance(real, list) and isinstance(ours, list):
            assert len(real) == len(ours), where
            for one, other in zip(real, ours, strict=True):
                self.same(one, other, where)
        elif key in NAMED:
            assert type(real) is type(ours), where
            self.names[real] = ours
        else:
            assert real == ours, where

    def translated(self, request):
        if isinstance(request, dict):
            return {name: self.translated(one) for name, one in request.items()}
        return self.names.get(request, request) if isinstance(request, str) else request


def test_the_captures_requests_have_the_captures_answers():
    store = MemoryStore()
    with LakefsModel("s3", opened=lambda _: store) as model:
        model.ways.polls = 1
        access, told, checked = of_model(model), Told(), set()
        for line in LINES:
            if line["n"] in ELSEWHERE or line["note"] == "wrong credentials":
                continue
            if line["n"] == 44:
                [entry] = [
                    one for path, one in model.repositories["capture"].view("main").items() if b"day=1/f05" in path
                ]
                store.delete_many([entry.address])
            path = "/".join(told.translated(part) for part in line["path"].split("/"))
            query = told.translated(line["query"])
            status, answer = access.answer(line["method"], path, told.translated(line["request"]), **query)
            assert status == line["status"], (line["note"], answer)
            if line["n"] == 1:
                told.names |= prepared(model)
            if line["method"] != "HEAD" and "body" in line and line["content_type"] == "application/json":
                told.same(json.loads(line["body"]), answer, line["note"])
                checked.add(line["note"])
            elif "body_base64" in line:
                ours, real = (
                    Table.from_bytes(answer, "ours"),
                    Table.from_bytes(base64.b64decode(line["body_base64"]), ""),
                )
                assert (ours.kind, ours.count) == (real.kind, real.count)
        assert len(checked) > 25
        assert model.unknown == []


def test_what_the_model_makes_of_the_captures_work_has_the_captures_tables_but_for_addresses_and_times():
    captured = Captured()
    with LakefsModel("s3", opened=lambda _: MemoryStore()) as model:
        repository = model.create("capture")
        prepared(model)
        ours = {one.message: one for one in repository.commits.values()}
        for real in captured.commits.values():
            held = repository.entries(ours[real.message].id)
            assert held.keys() == captured.entries(real).keys()
            for path, entry in captured.entries(real).items():
                same = (held[path].size, held[path].checksum, held[path].content_type, held[path].address_type)
                assert same == (entry.size, entry.checksum, entry.content_type, entry.address_type)
            assert ours[real.message].generation == real.generation
