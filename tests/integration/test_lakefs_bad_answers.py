"""A lakeFS server that answers badly, or not at all, as somebody at the command line meets it.

Whatever it does: one line on stderr that says what to do and holds no secret, and nothing is removed. Once the server
behaves again, the same command goes through.
"""

import pickle
import re
import socket
import sys
from datetime import UTC, datetime, timedelta

import pytest

import lakefs_collecting as collecting
from desilt.cli.main import desilt
from desilt.errors import StorageFailed
from desilt.lakefs import branches, calls
from desilt.lakefs.calls import ATTEMPTS
from desilt.repository.opening import repository_at
from lakefs_http import KEY, SECRET
from lakefs_model import LakefsModel
from lakefs_subject import of_model

URI = "lakefs://demo"
R = "/repositories/demo"
SURE = ("--confirm", "--max-share", "100%")
COLLECT = ("gc", "run", URI, *SURE)
RULES = ("gc", "run", URI, "--rules", "server", *SURE)
ALWAYS = 10**6
POLICY = "rules: {logs: {prefix: old, days: 5}}\n"
UPKEEP = "gc: {}\n"


class Bad:
    """A model with one repository, in which some objects are garbage, and the command line."""

    def __init__(self, model, cli, directory):
        self.model, self.cli, self.directory = model, cli, directory
        self.ask = of_model(model).ask
        self.ask("POST", "/repositories", {"name": "demo", "storage_namespace": "local://demo"})
        for number in range(9):
            self.upload(f"old{number}", b"x" * (number + 1))
        self.ask("POST", f"{R}/branches/main/commits", {"message": "kept"})
        self.upload("lost", b"lost")
        self.ask("PUT", f"{R}/branches/main", {"type": "reset"})
        self.all = self.stored()

    def upload(self, path, body):
        self.ask("POST", f"{R}/branches/main/objects", body, path=path)

    def stored(self):
        return {str(path.relative_to(self.model.root)) for path in self.model.root.glob("demo/data/*/*")}

    def fails(self, *words, code=1, says):
        """One line, nothing on stdout, no secret, nothing removed; the line."""
        found, out, err = self.cli(*words)
        assert (found, out) == (code, ""), (found, out, err)
        assert re.fullmatch(r"error: [^\n]*\n", err), err
        assert says in err
        assert SECRET not in err
        assert "Error)" not in err  # the name of some class is no reason
        assert self.stored() == self.all
        return err

    def recovers(self, *words):
        """The server is well again, and so is whoever asks it."""
        self.model.behave()
        assert self.cli(*(words or COLLECT))[0] == 0
        assert len(self.all - self.stored()) == 1


@pytest.fixture
def bad(tmp_path, monkeypatch, cli):
    monkeypatch.setattr(calls, "FIRST_PAUSE", 0.0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DESILT_DB", f"sqlite://{tmp_path}/records.db")
    with LakefsModel(tmp_path / "blocks", start=datetime.now(UTC) - timedelta(days=30)) as model:
        for name, value in of_model(model).environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("LAKEFS_BLOCKSTORE_LOCAL_PATH", str(model.root))
        yield Bad(model, cli, tmp_path)


# ---- what a run asks for, and each of that answered badly

REFS = "fs:ListBranches, fs:ListTags and fs:ListCommits"
ASKED = {  # by a run of gc: how often, what is being done, and the right that it takes
    ("GET", R): (1, "describe the repository", "fs:ReadRepository"),
    ("GET", "/config"): (1, "tell how it is set up", "fs:ReadConfig"),
    ("GET", "/config/garbage-collection"): (1, "tell how it is set up", "fs:ReadConfig"),
    ("POST", f"{R}/gc/prepare_uncommited"): (
        3,
        "list uncommitted objects",
        "retention:PrepareGarbageCollectionUncommitted",
    ),
    ("POST", f"{R}/dump"): (3, "dump refs", REFS),
    ("GET", f"{R}/dump"): (3, "dump refs", REFS),
    ("GET", f"{R}/refs/main/objects/ls"): (2, "list objects of a branch", "fs:ListObjects"),
}
EACH = pytest.mark.parametrize("asked", ASKED, ids=" ".join)
PREPARE = ("POST", f"{R}/gc/prepare_uncommited")
PAGE = "<html>\n<body>Please log in</body>\n</html>"
KINDS = {
    "keys that are taken away": ({"status": 401}, "does not know the key"),
    "a repository that is gone": ({"status": 404, "answer": {"message": "repository not found"}}, "lakectl repo list"),
    "a repository made read-only": ({"status": 403, "answer": {"message": "read-only repository"}}, "is read-only"),
    "a route that is not there": (
        {"status": 404, "answer": "404 page not found"},
        "upgrade it, or see whether its URL",
    ),
    "a call that is not implemented": ({"status": 501, "answer": {"message": "Not implemented"}}, "upgrade it"),
    "an endpoint it does not know": ({"status": 500, "answer": {"message": "invalid API endpoint"}}, "upgrade it"),
    "failures": ({"status": 500}, "failed, 6 times (500: misbehaving); see its log"),
    "a proxy that has no server": ({"status": 502, "answer": PAGE}, "failed, 6 times (502); see its log"),
    "too many requests": ({"status": 429}, "failed, 6 times (429: misbehaving)"),
    "a page of a proxy": ({"status": 200, "answer": PAGE}, "is no JSON object; see whether its URL is right"),
    "an answer that is cut off": ({"status": 200, "answer": PAGE, "cut": 9}, "(its answer was cut off)"),
    "an answer with nothing in it": ({"status": 200, "answer": {}}, "out of its answer; upgrade it, or see whether"),
    "a way elsewhere": ({"status": 307, "location": f"http://h/?{SECRET}"}, "(307), where we do not go; name the"),
}


def test_a_run_asks_for_what_is_answered_badly_below(bad):
    bad.model.asked.clear()
    assert bad.cli(*COLLECT)[0] == 0
    shown = {(method, path.format(repository="demo", ref="main")): n for (method, path), n in bad.model.asked.items()}
    assert shown == {asked: times for asked, (times, *_) in ASKED.items()}


@EACH
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_the_right_that_is_missing_is_named(bad, asked, last):
    times, doing, right = ASKED[asked]
    bad.model.misbehave(*asked, status=403, times=ALWAYS, passing=last * (times - 1))
    line = bad.fails(*COLLECT, says=f"does not let the key '{KEY}' {doing}; it needs {right}")
    assert line.endswith(f"it needs {right}\n")
    bad.recovers()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passing", [0, 2], ids=["in the mark", "in the sweep"])
def test_nothing_goes_where_what_is_staged_is_answered_with(bad, kind, passing):
    told, says = KINDS[kind]
    bad.model.misbehave(*PREPARE, times=ALWAYS, passing=passing, **told)
    bad.fails(*COLLECT, says=says)
    bad.recovers()


@EACH
@pytest.mark.parametrize("kind", ["a repository that is gone", "failures", "a page of a proxy"])
def test_nothing_goes_where_the_last_answer_of_a_kind_is(bad, asked, kind):
    told, says = KINDS[kind]
    bad.model.misbehave(*asked, times=ALWAYS, passing=ASKED[asked][0] - 1, **told)
    bad.fails(*COLLECT, says=says)
    bad.recovers()


@EACH
def test_a_server_that_fails_for_a_while_is_waited_for(bad, asked):
    for status in (503, 500, 429, 502):
        bad.model.misbehave(*asked, status=status, answer=PAGE)
    bad.model.misbehave(*asked, status=200, answer=PAGE, cut=5)
    assert bad.cli(*COLLECT)[0] == 0
    assert len(bad.all - bad.stored()) == 1


def test_a_server_without_the_new_way_to_dump_is_asked_in_the_old_one(bad):
    bad.model.misbehave("POST", f"{R}/dump", status=404, answer="404 page not found", times=ALWAYS)
    assert bad.cli(*COLLECT)[0] == 0
    assert bad.model.asked["PUT", "/repositories/{repository}/refs/dump"]


# ---- other commands

COMMANDS = {
    "rules": (RULES, ("GET", f"{R}/settings/gc_rules"), "retention:GetGarbageCollectionRules"),
    "lifecycle": (("lifecycle", "run", URI, "--policy", "policy", *SURE), PREPARE, "retention:Prepare"),
    "explain": (("explain", URI, "old1"), ("GET", f"{R}/refs/main/objects/stat"), "fs:ReadObject"),
    "pins": (("pins", URI), ("GET", f"{R}/branches/main/diff"), "fs:ListObjects"),
    "stats": (("stats", URI), ("GET", f"{R}/branches/main/diff"), "fs:ListObjects"),
    "fsck": (("fsck", URI), ("GET", f"{R}/refs/main/objects/ls"), "fs:ListObjects"),
    "hold": (("hold", "add", URI, "--ref", "main", "--reason", "r"), ("POST", f"{R}/dump"), "fs:ListCommits"),
    "purge": (("purge", URI), ("POST", f"{R}/dump"), "fs:ListCommits"),
    "adopt": (("lakefs", "adopt", URI), ("POST", f"{R}/dump"), "fs:ListCommits"),
    "import": (("lakefs", "import", URI, "./copy#demo"), ("POST", f"{R}/dump"), "fs:ListCommits"),
}


@pytest.fixture
def told(bad, monkeypatch):
    """With a policy, rules, and a database of records that is not a lake's."""
    (bad.directory / "policy").write_text(POLICY)
    collecting.set_rules(bad.model.repositories["demo"], 5, {})

    def prepared(name):
        words, asked, right = COMMANDS[name]
        if name == "import":
            monkeypatch.delenv("DESILT_DB")
        return words, asked, right

    return prepared


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_which_right_it_lacks(bad, told, name):
    words, asked, right = told(name)
    bad.model.misbehave(*asked, status=403, times=ALWAYS)
    bad.fails(*words, says=right)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_that_the_server_fails(bad, told, name):
    words, asked, _ = told(name)
    bad.model.misbehave(*asked, status=500, times=ALWAYS)
    bad.fails(*words, says="failed, 6 times")


def test_committed_data_stays_where_the_rules_are_answered_badly(bad, told):
    told("rules")
    for number in range(9):
        bad.upload(f"old{number}", b"new" * (number + 1))
    bad.ask("POST", f"{R}/branches/main/commits", {"message": "replaced"})
    bad.model.wait(timedelta(days=10))
    bad.all = bad.stored()
    for kind in ("a page of a proxy", "an answer with nothing in it", "an answer that is cut off"):
        bad.model.misbehave("GET", f"{R}/settings/gc_rules", times=ALWAYS, **KINDS[kind][0])
        bad.fails(*RULES, says=KINDS[kind][1])
        bad.model.behave()
    bad.model.misbehave("GET", f"{R}/settings/gc_rules", status=404, answer={"message": "not found"}, times=ALWAYS)
    bad.fails(*RULES, code=2, says="has no rules of garbage collection; set some with `lakectl gc set-config`")
    bad.model.behave()
    bad.ask("DELETE", R)
    bad.fails(*RULES, says="there is no repository 'demo'")


def test_no_command_asks_for_lists_of_active_commits_or_for_signed_urls(bad, told):
    """Which a local blockstore answers with an error, and others may refuse to sign: desilt works them out."""
    for name in ("rules", "lifecycle", "fsck"):
        bad.cli(*told(name)[0])
    assert not [path for _, path in bad.model.asked if "prepare_commits" in path]
    assert bad.model.unknown == []


# ---- between plan and sweep


def planned(bad):
    assert bad.cli("gc", "plan", URI)[0] == 0
    return ("sweep", URI, "last", *SURE)


def test_a_repository_that_is_deleted_after_the_plan_loses_nothing_more(bad):
    sweep = planned(bad)
    bad.ask("DELETE", R)
    bad.fails(*sweep, says="there is no repository 'demo'; see `lakectl repo list`")


@pytest.mark.parametrize("passing", [0, 1, 2])
def test_a_repository_that_is_deleted_in_the_middle_of_a_run_loses_nothing_more(bad, passing):
    seen = []

    def delete(_):
        seen.append(1)
        if len(seen) == passing + 1:
            del bad.model.repositories["demo"]

    bad.model.before("POST", f"{R}/dump", delete)
    bad.fails(*COLLECT, says="there is no repository 'demo'")


def test_another_repository_of_the_same_name_is_not_swept_by_an_old_plan(bad):
    sweep = planned(bad)
    bad.ask("DELETE", R)
    bad.ask("POST", "/repositories", {"name": "demo", "storage_namespace": "local://elsewhere"})
    bad.fails(*sweep, says="there is no run 'last'")


def test_a_read_only_repository_is_left_alone(bad):
    bad.model.repositories["demo"].read_only = True
    bad.fails(*COLLECT, says="is read-only; ask its owner to lift that")


# ---- pages


def page(rows, **pagination):
    return {"results": rows, "pagination": {"has_more": True, "max_per_page": 1000, "results": len(rows), **pagination}}


def listed(bad, count):
    return bad.ask("GET", f"{R}/refs/main/objects/ls", amount=count)["results"]


@pytest.mark.parametrize(
    ("some", "pagination", "says"),
    [
        (3, {"next_offset": "old2"}, "and gave nothing to go on from"),
        (3, {"next_offset": "old1"}, "goes on elsewhere than after 'old2', the last it gave"),
        (3, {"results": 9, "has_more": False}, "and counted another number"),
        (0, {"next_offset": "old5"}, "and gave nothing to go on from"),
    ],
    ids=["twice the same", "back", "fewer than counted", "nothing, and more"],
)
def test_pages_that_repeat_or_lack_something_stop_a_run(bad, some, pagination, says):
    answer = page(listed(bad, some) if some else [], **pagination)
    bad.model.misbehave("GET", f"{R}/refs/main/objects/ls", status=200, answer=answer, times=ALWAYS)
    bad.fails(*COLLECT, says=says)
    bad.recovers()


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"continuation_token": "t"}, "gave page 2 twice"),
        ({"continuation_token": 7}, "gave page 1 twice"),
        ({"run_id": ""}, "went on with run '' in the middle of ''"),
        ({"gc_uncommitted_location": "local:///there"}, "wrote 1 files of uncommitted objects"),
    ],
    ids=["twice the same", "no text", "no run", "a file that is not there"],
)
def test_lists_of_what_is_staged_that_repeat_or_lack_something_stop_a_run(bad, told, says):
    answer = {"run_id": "r", "gc_uncommitted_location": "", **told}
    bad.model.misbehave(*PREPARE, status=201, answer=answer, times=ALWAYS)
    bad.fails(*COLLECT, says=says)
    bad.recovers()


def test_a_diff_that_goes_in_circles_stops(bad, monkeypatch):
    monkeypatch.setattr(branches, "PAGE", 1)
    row = {"path": "a", "path_type": "object", "type": "added", "size_bytes": 1}
    bad.model.misbehave("GET", f"{R}/branches/main/diff", status=200, answer=page([row], next_offset="a"), times=ALWAYS)
    bad.fails("pins", URI, says="and goes on from before that")


# ---- no server


def closed_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_a_server_that_is_not_there(bad):
    says = "did not answer, 6 times (connection refused); see whether it is up and its URL is right"
    bad.fails("gc", "run", f"lakefs+http://127.0.0.1:{closed_port()}/demo", *SURE, says=says)


def test_a_host_that_nobody_knows(bad):
    bad.fails("gc", "run", "lakefs+http://nowhere.invalid/demo", *SURE, says=f"did not answer, {ATTEMPTS} times (")


def test_tls_where_there_is_none(bad):
    host = bad.model.endpoint.removeprefix("http://")
    line = bad.fails("gc", "run", f"lakefs+https://{host}/demo", *SURE, says="6 times (TLS: ")
    assert "see whether it is up and its URL is right" in line


def test_another_server_at_that_url(bad, monkeypatch):
    monkeypatch.setenv("LAKECTL_SERVER_ENDPOINT_URL", f"{bad.model.endpoint}/not/lakefs")
    bad.fails(*COLLECT, says="has no way to describe the repository; upgrade it, or see whether its URL is right")


@pytest.mark.parametrize("name", ["LAKECTL_CREDENTIALS_ACCESS_KEY_ID", "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY"])
def test_wrong_keys(bad, monkeypatch, name):
    monkeypatch.setenv(name, "wrong-and-never-shown" if "SECRET" in name else "other")
    line = bad.fails(*COLLECT, says="or its secret; see `lakectl config`")
    assert "never-shown" not in line


def test_without_keys_it_is_said_where_they_are_looked_for(bad, monkeypatch):
    for name in of_model(bad.model).environment:
        monkeypatch.delenv(name)
    bad.fails(*COLLECT, code=2, says="run `lakectl config`, or set LAKECTL_CREDENTIALS_ACCESS_KEY_ID and ")


def test_without_the_client_it_is_said_how_to_install_it(bad, monkeypatch):
    monkeypatch.setitem(sys.modules, "lakefs_sdk", None)
    for words in (COLLECT, ("runs", URI), ("fsck", URI), ("lakefs", "adopt", URI)):
        bad.fails(*words, code=2, says="pip install 'desilt[lakefs]'")


# ---- where the objects are


def test_a_local_blockstore_of_another_machine(bad, monkeypatch):
    monkeypatch.setenv("LAKEFS_BLOCKSTORE_LOCAL_PATH", str(bad.directory / "other"))
    bad.fails(*COLLECT, code=2, says="run there, and set LAKEFS_BLOCKSTORE_LOCAL_PATH to the server's")


def test_a_worker_that_does_not_see_the_directory_takes_nothing_for_an_answer(bad):
    """What a worker is sent names a directory; where that is not, there is no empty list."""
    with repository_at(URI) as repository:
        handle = pickle.loads(pickle.dumps(repository.handle))
    bad.model.root.rename(bad.directory / "hidden")
    with pytest.raises(StorageFailed, match="is not a directory; create it, or mount the disk it is on"):
        list(handle().store.list("data/"))


def test_a_blockstore_that_is_not_known_here(bad):
    bad.model.misbehave("GET", R, status=200, answer={**bad.ask("GET", R), "storage_namespace": "mem://demo"})
    bad.fails(*COLLECT, code=2, says="which is not known here; s3, gs, azure and local are")


# ---- what was written

MISSPELLED = [
    "lakefs:demo",
    "lakefs:/demo",
    "lakefs://",
    "lakefs:///demo",
    "lakeFS://demo",
    "lakefs://Demo",
    "lakefs://demo#main",
    "lakefs://demo/main/path",
    "lakefs+http://demo",
    "lakefs+https:/host/demo",
    "lakefs+ftp://host/demo",
    f"lakefs+https://{KEY}:{SECRET}@host/demo",
    f"lakefs+https:/{KEY}:{SECRET}@host/demo",
    f"lakefs+ftp://{KEY}:{SECRET}@host/demo",
]


@pytest.mark.parametrize("words", [("gc", "run"), ("lifecycle", "plan"), ("fsck",), ("lakefs", "adopt")], ids=" ".join)
def test_what_is_misspelled_is_no_repository(bad, words):
    for uri in MISSPELLED:
        bad.fails(*words, uri, code=2, says="lakefs://REPO")


def test_a_repository_that_is_not_there(bad):
    bad.fails("gc", "run", "lakefs://other", *SURE, says="there is no repository 'other'; see `lakectl repo list` for")


# ---- every command

WORDS = {  # what a command needs besides, to come as far as the repository
    "retention set": ("policy",),
    "retention lint": ("policy",),
    "lifecycle simulate": ("--policy", "policy", "--from", "2026-01-01"),
    "lifecycle set": ("policy",),
    "lifecycle lint": ("policy",),
    "upkeep set": ("upkeep",),
    "upkeep lint": ("upkeep",),
    "upkeep plan": ("--file", "upkeep"),
    "upkeep run": ("--file", "upkeep"),
    "expire plan": ("--older-than", "30d"),
    "expire run": ("--older-than", "30d"),
    "abandon": ("main", "main..main~1"),
    "hold add": ("--ref", "main", "--reason", "r"),
    "hold rm": ("x",),
    "sweep": ("last",),
    "restore": ("last",),
    "explain": ("old1",),
}


def commands(group=desilt, path=()):
    """Every command that takes a repository, by its words."""
    context = group.make_context("desilt", [], resilient_parsing=True)
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        if hasattr(one, "list_commands"):
            yield from commands(one, (*path, name))
        elif any(found.name == "repo" for found in one.params) and path != ("lakefs",):
            yield (*path, name), one


def words_for(path, one):
    """A command line on the repository, with as many arguments as it takes."""
    name = " ".join(path)
    if name in WORDS:
        return (*path, URI, *WORDS[name])
    count = sum(found.param_type_name == "argument" and found.required for found in one.params) - 1
    needed = [found for found in one.params if found.param_type_name == "option" and found.required]
    options = [word for found in needed for word in (found.opts[0], "1")]
    return (*path, URI, *("x" for _ in range(count)), *options)


def with_files(bad):
    """What commands read."""
    for name, text in (("policy", POLICY), ("upkeep", UPKEEP), ("x", "")):
        (bad.directory / name).write_text(text)


INSTEAD = {"expire": "--rules server", "abandon": "--rules server", "collect": "--rules server"}
INSTEAD |= {"retention": "desilt lifecycle", "harddelete": "desilt gc", "lake": "lakectl"}


def test_every_command_answers_or_says_in_one_line_what_to_do_instead(bad):
    with_files(bad)
    found = list(commands())
    assert len(found) > 60
    for path, one in found:
        if path == ("lake", "init"):  # which makes a repository, and not there
            bad.fails(*path, URI, code=2, says="is not a lake; write DIRECTORY#REPO")
        elif path == ("lake", "replay"):
            bad.fails(*path, "x", URI, code=2, says="is not a lake; write DIRECTORY#REPO")
        elif path[0] in INSTEAD:
            bad.fails(*words_for(path, one), code=2, says=INSTEAD[path[0]])
        else:
            code, _, err = bad.cli(*words_for(path, one))
            assert "Traceback" not in err
            assert code == 0 or re.fullmatch(r"(warning: [^\n]*\n)*error: [^\n]*\n", err), (path, code, err)
        assert bad.stored() == bad.all


def test_every_command_says_in_one_line_that_a_repository_is_not_there(bad):
    with_files(bad)
    for path, one in commands():
        if path not in (("lake", "init"), ("lake", "replay")):
            words = ["lakefs://other" if word == URI else word for word in words_for(path, one)]
            bad.fails(*words, says="there is no repository 'other'")


@pytest.mark.parametrize(("section", "instead"), [("expire: {older_than: 30d}", "gc run --rules server")])
def test_an_upkeep_with_a_step_that_cannot_be_done_is_not_set(bad, section, instead):
    (bad.directory / "upkeep").write_text(f"{section}\ngc: {{}}\n")
    for words in (("set", URI, "upkeep"), ("run", URI, "--file", "upkeep"), ("plan", URI, "--file", "upkeep")):
        bad.fails("upkeep", *words, code=2, says=instead)
    code, out, _ = bad.cli("upkeep", "lint", URI, "upkeep")
    assert (code, instead in out) == (1, True)
