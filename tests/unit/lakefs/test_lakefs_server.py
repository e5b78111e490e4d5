"""What reading asks of a server, on the answers of a real one; and every way in which an answer is none."""

import json
import re
from datetime import timedelta

import pytest

from desilt.errors import MissingRight, MissingTable, NotFound, ServerFailed, ServerTooOld, WrongKeys
from desilt.lakefs.branches import Served
from desilt.lakefs.calls import ATTEMPTS
from desilt.lakefs.server import Described, DumpedRefs, GcRules, Prepared, Server
from desilt.lakefs.settings import Settings
from lakefs_replay import KEY, REPOSITORY, SECRET
from lakefs_server import ROOT

DUMPED = DumpedRefs(**json.loads((ROOT / "namespace/_lakefs/refs_manifest.json").read_text(), object_hook=lambda told: {
    name.split("_")[0]: value for name, value in told.items()
}))  # fmt: skip
METARANGE = "29d723647ab41e79d9886dd2d2dfdc90f214c0cfcb2821e5612c36874302bc85"
PREPARE = f"{REPOSITORY}/gc/prepare_uncommited"
LS = f"{REPOSITORY}/refs/main/objects/ls"
STAT = f"{REPOSITORY}/refs/main/objects/stat"
RULES = f"{REPOSITORY}/settings/gc_rules"

READS = {
    "grace": (lambda server: server.grace_period(), "GET", "/config/garbage-collection"),
    "blockstore": (lambda server: server.blockstore(), "GET", "/config"),
    "repository": (lambda server: server.repository(), "GET", REPOSITORY),
    "dump": (lambda server: server.dump(), "POST", f"{REPOSITORY}/dump"),
    "its state": (lambda server: server.dump(), "GET", f"{REPOSITORY}/dump"),
    "uncommitted": (lambda server: server.uncommitted(), "POST", PREPARE),
    "rules": (lambda server: server.rules(), "GET", RULES),
    "table": (
        lambda server: server.table("meta_range", METARANGE),
        "GET",
        f"{REPOSITORY}/metadata/object/meta_range/{METARANGE}",
    ),
    "listing": (lambda server: list(server.listing("main", page=25)), "GET", LS),
    "places": (lambda server: list(server.places("main", page=25)), "GET", LS),
    "served": (lambda server: server.served("main", "data/day=1/f05"), "GET", STAT),
}
every_read = pytest.mark.parametrize("read", READS.values(), ids=READS)


@pytest.fixture(autouse=True)
def at_a_path(replay):
    """What the server told of one path, before its object was taken away."""
    [line] = [line for line in (ROOT / "transcript.jsonl").read_text().splitlines() if '"stat of it"' in line]
    replay.tell("GET", STAT, json.loads(line)["body"].encode(), query={"path": "data/day=1/f05"})


def one_line(error):
    text = str(error)
    assert "\n" not in text
    assert SECRET not in text
    assert len(text) < 400
    return text


def test_answers_of_a_real_server_are_read(server):
    assert server.grace_period() == timedelta(days=1)
    assert server.blockstore() == "s3"
    assert server.repository() == Described("capture", "s3://lake/capture", "main", False, "")
    assert server.uncommitted() == Prepared("fta71shksdu910j5ra40", 1, 1)


def test_a_dump_is_waited_for(server, pauses):
    assert server.dump() == DUMPED
    assert len(pauses) == 1


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (400, b"no matching operation was found"),
        (404, b"404 page not found\n"),
        (405, b""),
        (500, {"message": "invalid API endpoint"}),
        (501, {"message": "Not implemented"}),
    ],
)
def test_an_old_server_dumps_by_the_old_call(server, replay, status, answer):
    replay.misbehave("POST", f"{REPOSITORY}/dump", status=status, answer=answer)
    assert server.dump() == DUMPED
    assert replay.asked[-1][:2] == ("PUT", f"{REPOSITORY}/refs/dump")


def test_a_dump_that_fails_or_never_ends_is_no_dump(replay, server):
    state = f"{REPOSITORY}/dump"
    replay.misbehave("GET", state, answer={"done": True, "id": "x", "error": {"message": "out of disk"}})
    with pytest.raises(ServerFailed, match="out of disk"):
        server.dump()
    replay.misbehave("GET", state, answer={"done": True, "id": "x"})
    with pytest.raises(ServerFailed, match="left refs out"):
        server.dump()
    hours = iter(range(0, 36000, 1000))
    slow = Server(Settings(replay.endpoint, "capture", KEY, SECRET), pause=lambda _: None, clock=lambda: next(hours))
    replay.misbehave("GET", state, answer={"done": False, "id": "x"}, times=10)
    with pytest.raises(ServerFailed, match="within 1:00:00"):
        slow.dump()


def test_rules_may_be_set_or_not(server):
    assert server.rules() is None  # as the transcript has it: then somebody sets them
    assert server.rules() == GcRules(7, {"dev": 1})


def test_a_repository_that_is_gone_has_no_rules_is_never_said(server, replay):
    replay.misbehave("GET", RULES, status=404, answer={"message": "not found"})
    replay.misbehave("GET", REPOSITORY, status=404, answer={"message": "repository not found"})
    with pytest.raises(NotFound, match="no repository 'capture'"):
        server.rules()


def test_a_table_is_its_bytes_and_a_missing_one_is_missing(server):
    assert server.table("meta_range", METARANGE) == (ROOT / "namespace/_lakefs" / METARANGE).read_bytes()
    with pytest.raises(MissingTable, match="0000 is corrupt: its file is missing"):
        server.table("range", "0" * 64)


def test_a_listing_has_every_page(server):
    found = list(server.listing("main", page=25))
    assert len(found) == 48
    assert [one.path.encode() for one in found] == sorted({one.path.encode() for one in found})
    assert all(one.address.startswith("s3://lake/capture/data/") for one in found)


def test_what_a_branch_has_at_a_path(server):
    address = "s3://lake/capture/data/fta72g1ksdu910j5r8ng/dbt9431ksdu910j5r90g"
    assert server.served("main", "data/day=1/f05") == Served(
        "data/day=1/f05", address, 3, "12426c956d1bc5017082b12a969b0b7c", 1794806284
    )


def test_a_path_that_is_no_utf8_is_asked_for_by_its_bytes(server, replay):
    told = {"path": "bad\ufffdutf8", "path_type": "object", "physical_address": "s3://lake/x", "checksum": "c"}
    replay.tell("GET", STAT, told, query={"path": "bad\udcffutf8"})
    assert server.served("main", "bad\udcffutf8").address == "s3://lake/x"


def test_nothing_at_a_path_is_told_from_no_branch_and_no_tag(server, replay):
    log = f"{REPOSITORY}/refs/main/commits"
    replay.misbehave("GET", STAT, status=404, answer={"message": "path not found"}, times=3)
    replay.tell("GET", f"{REPOSITORY}/branches/main", {"id": "main", "commit_id": "x"})
    assert server.served("main", "none") is None
    replay.misbehave("GET", f"{REPOSITORY}/branches/main", status=404, answer={"message": "branch not found"}, times=2)
    replay.tell("GET", log, {"results": [{"id": "x"}]}, query={"amount": "1"})  # a tag, then
    assert server.served("main", "none") is None
    replay.misbehave("GET", log, status=404, answer={"message": "not found"})
    with pytest.raises(NotFound, match="no ref 'main'"):
        server.served("main", "none")


def test_a_path_that_cannot_be_looked_up_is_not_one_that_is_free(server, replay):
    replay.misbehave("GET", STAT, status=410, answer={"message": "No data"})
    with pytest.raises(ServerFailed, match="a table may be lost"):
        server.served("main", "data/day=1/f05")


@every_read
def test_wrong_keys_are_told(replay, read):
    call, _, _ = read
    wrong = Server(Settings(replay.endpoint, "capture", KEY, "wrong"), pause=lambda _: None)
    with pytest.raises(WrongKeys, match="see `lakectl config`") as caught:
        call(wrong)
    assert KEY in one_line(caught.value)


@every_read
def test_the_right_that_is_missing_is_named(server, replay, read):
    call, method, path = read
    replay.misbehave(method, path, status=403, answer={"message": "insufficient permissions"}, times=9)
    with pytest.raises(MissingRight, match=r"it needs (fs|retention):\w+") as caught:
        call(server)
    one_line(caught.value)


@every_read
def test_a_repository_that_is_gone_is_told(server, replay, read):
    call, method, path = read
    replay.misbehave(method, path, status=404, answer={"message": "repository not found"}, times=9)
    with pytest.raises(NotFound, match="there is no repository 'capture'"):
        call(server)


@every_read
def test_a_server_that_does_not_know_the_question_is_too_old(server, replay, read):
    call, method, path = read
    replay.misbehave(method, path, status=400, answer=b"no matching operation was found", times=9)
    replay.misbehave("PUT", f"{REPOSITORY}/refs/dump", status=404, answer=b"404 page not found", times=9)
    with pytest.raises(ServerTooOld, match="upgrade it") as caught:
        call(server)
    one_line(caught.value)


@every_read
def test_a_read_only_repository_is_told(server, replay, read):
    call, method, path = read
    replay.misbehave(method, path, status=403, answer={"message": "read-only repository"}, times=9)
    with pytest.raises(ServerFailed, match="is read-only"):
        call(server)


@every_read
def test_a_server_that_fails_for_a_while_is_asked_again(server, replay, pauses, read):
    call, method, path = read
    replay.misbehave(method, path, status=503, answer=b"<html>", times=ATTEMPTS - 1)
    call(server)
    waits = [wait for wait in pauses if wait >= 0.1]
    assert len(waits) >= ATTEMPTS - 1
    assert len(set(waits)) == len(waits)  # by chance: those who failed together do not come back together


@every_read
def test_a_server_that_goes_on_failing_is_given_up(server, replay, read):
    call, method, path = read
    replay.misbehave(method, path, status=500, answer={"message": "boom\nand more"}, times=ATTEMPTS)
    with pytest.raises(ServerFailed, match=r"failed, 6 times \(500: boom and more\)") as caught:
        call(server)
    one_line(caught.value)


@every_read
def test_an_answer_that_is_cut_off_is_asked_for_again_and_never_taken(server, replay, read):
    call, method, path = read
    replay.misbehave(method, path, answer=b'{"results": []}' * 9, cut=40, times=ATTEMPTS)
    with pytest.raises(ServerFailed, match="did not answer"):
        call(server)


@every_read
@pytest.mark.parametrize("page", [b"<html>a login page</html>", b"[]", b"null", b"{", b"{}"])
def test_an_answer_of_somebody_else_is_none(server, replay, read, page):
    call, method, path = read
    replay.misbehave(method, path, answer=page, times=9)
    if "metadata/object" in path:  # any bytes: whoever opens the table judges them
        assert call(server) == page
    else:
        with pytest.raises(ServerFailed) as caught:
            call(server)
        one_line(caught.value)


def test_a_redirect_is_not_followed(server, replay):
    replay.misbehave("GET", REPOSITORY, status=302)
    with pytest.raises(ServerFailed, match="302"):
        server.repository()
    assert [key[1] for key in replay.asked] == [REPOSITORY]


def test_a_server_that_is_not_there(pauses):
    server = Server(Settings("http://127.0.0.1:9", "capture", KEY, SECRET), pause=pauses.append)
    with pytest.raises(ServerFailed, match="did not answer, 6 times") as caught:
        server.repository()
    one_line(caught.value)


def test_every_page_of_what_is_uncommitted_is_asked_for(server, replay):
    pages = [("a", "s3://x/1/"), ("b", ""), ("", "s3://x/1/")]
    for token, where in pages:
        answer = {"run_id": "r", "gc_uncommitted_location": where}
        replay.misbehave("POST", PREPARE, status=201, answer=answer | ({"continuation_token": token} if token else {}))
    assert server.uncommitted() == Prepared("r", 3, 2)
    assert [json.loads(key[3]) for key in replay.asked] == [
        {},
        {"continuation_token": "a"},
        {"continuation_token": "b"},
    ]


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        ({"run_id": "r", "gc_uncommitted_location": "", "continuation_token": "a"}, "twice"),
        ({"run_id": "other", "gc_uncommitted_location": ""}, "in the middle of"),
        ({"run_id": "", "gc_uncommitted_location": ""}, "in the middle of"),
        ({"run_id": "r"}, "left gc_uncommitted_location out"),
        ({"run_id": "r", "gc_uncommitted_location": "", "continuation_token": 3}, "twice"),
    ],
)
def test_pages_of_what_is_uncommitted_that_repeat_or_belong_elsewhere_are_refused(server, replay, second, fault):
    first = {"run_id": "r", "gc_uncommitted_location": "", "continuation_token": "a"}
    for answer in (first, second):
        replay.misbehave("POST", PREPARE, status=201, answer=answer)
    with pytest.raises(ServerFailed, match=fault):
        server.uncommitted()


def entry(path):
    return {"path": path, "path_type": "object", "physical_address": f"s3://lake/{len(path)}", "checksum": "c"}


def page(*paths, more=False, next_offset=None, counted=None):
    offset = (paths[-1] if paths else "") if next_offset is None else next_offset
    pagination = {"has_more": more, "next_offset": offset if more else "", "max_per_page": 1000}
    return {
        "pagination": pagination | {"results": len(paths) if counted is None else counted},
        "results": [*map(entry, paths)],
    }


def places(server, **sized):
    """What a listing by column has, as rows."""
    for some in server.places("main", **sized):
        yield from zip(some.paths.to_pylist(), some.addresses.to_pylist(), strict=True)


def listed(server, **sized):
    return ((one.path, one.address) for one in server.listing("main", **sized))


either_way = pytest.mark.parametrize("way", [listed, places], ids=["by row", "by column"])


@either_way
@pytest.mark.parametrize(
    ("pages", "fault"),
    [
        ([page("a", "b", more=True), page("a", "b", more=True)], "nothing to go on from"),
        ([page("a", "b", more=True), page("a", more=True)], "nothing to go on from"),
        ([page(more=True)], "nothing to go on from"),
        ([page("a", "b", more=True, next_offset="z")], "goes on elsewhere"),
        ([page("a", counted=2)], "counted another number"),
        ([{"results": []}], "left pagination out"),
        ([{"results": [], "pagination": {"results": 0}}], "left has_more out"),
        ([page("a") | {"results": [{"path": "a", "path_type": "common_prefix"}]}], "in no way that is known"),
        ([page("a") | {"results": [entry("a") | {"physical_address": ""}]}], "left physical_address out"),
        ([page("\ufffd", more=True)], "nothing to go on from"),
    ],
)
def test_pages_of_a_listing_that_repeat_or_end_early_are_refused(server, replay, pages, fault, way):
    for answer in pages:
        replay.misbehave("GET", LS, answer=answer)
    with pytest.raises(ServerFailed, match=fault):
        list(way(server))


@either_way
def test_after_a_path_that_is_no_utf8_a_listing_goes_on_from_the_last_that_is(server, replay, way):
    for answer in (page("a", "bad\ufffd", more=True), page("bad\ufffd", "c")):
        replay.misbehave("GET", LS, answer=answer)
    assert [path for path, _ in way(server)] == ["a", "bad\ufffd", "bad\ufffd", "c"]
    assert [dict(key[2])["after"] for key in replay.asked] == ["", "a"]


def test_a_page_that_cannot_be_read_by_column_is_read_by_row_and_the_next_by_column(server, replay):
    odd = page("a", "b", more=True)
    del odd["results"][1]["path_type"]
    for answer in (odd, page("c", "d")):
        replay.misbehave("GET", LS, answer=answer)
    assert [path for path, _ in places(server)] == ["a", "b", "c", "d"]


def test_answers_of_a_real_server_are_plain_and_the_same_either_way(server, monkeypatch):
    monkeypatch.setattr(Server, "_by_row", None)
    rows = list(listed(server, page=25))
    assert len(rows) > 25
    assert list(places(server, page=25)) == rows


def test_nothing_but_dumps_and_lists_is_ever_asked_to_be_written(server, replay):
    for call, _, _ in READS.values():
        call(server)
    writes = {re.sub(r".*/", "", key[1]) for key in replay.asked if key[0] != "GET"}
    assert writes == {"dump", "prepare_uncommited"}


def test_a_server_of_several_stores_tells_which(server, replay):
    several = [{"blockstore_id": "one", "blockstore_type": "s3"}, {"blockstore_id": "two", "blockstore_type": "gs"}]
    replay.misbehave("GET", "/config", answer={"storage_config": {}, "storage_config_list": several}, times=2)
    assert server.blockstore("two") == "gs"
    with pytest.raises(ServerFailed, match="the storage 'three'"):
        server.blockstore("three")
