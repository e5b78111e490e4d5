"""A model of a lakeFS server: its answers over HTTP, and in its namespaces the files that a real one would write.

    with LakefsModel(directory) as model:            # blockstore `local`, namespaces local://NAME
    with LakefsModel("s3") as model:                 # namespaces s3://BUCKET/PREFIX; `opened` may open others instead
        model.create("demo")                         # or POST /repositories
        model.wait(timedelta(days=1))                # its clock stands still otherwise
        model.ways.uncommitted_page = 2              # see lakefs_state.Ways
        model.misbehave("GET", ".*/objects/ls", status=503, times=2)
        model.before("POST", ".*/gc/prepare_uncommited", lambda ask: ...)

Answers and errors are those of ``fixtures/lakefs-server``; see ``lakefs_state`` for what is done, ``lakefs_files`` for
what is written, ``lakefs_http`` for what a server can do wrong.
"""

import itertools
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import lakefs_collecting as collecting
import lakefs_files as files
from desilt.clock import ManualClock
from desilt.domain.entry import decode_path, encode_prefix
from desilt.lakefs.settings import Settings
from desilt.objects import open_store
from desilt.objects.local import LocalStore
from lakefs_answers import committed, described, facts, listed, page, ref, stat, told
from lakefs_http import KEY, SECRET, Answer, HttpServer, error, route
from lakefs_state import Refused, Repository, Ways

START = datetime(2026, 1, 1, tzinfo=UTC)
GRACE = 86400  # seconds
R = "/repositories/{repository}"
B, REF = R + "/branches/{branch}", R + "/refs/{ref}"


class LakefsModel(HttpServer):
    """One server; ``repositories`` is what it has."""

    def __init__(self, blockstore, *, start=START, clock=None, opened=open_store):
        self.root = None if blockstore == "s3" else Path(os.path.realpath(blockstore))
        self.clock, self._opened = clock or ManualClock(start), opened
        self.ways, self.names = Ways(), files.Names(self.clock)
        self.repositories, self._tasks, self._numbers = {}, {}, itertools.count(1)
        self.grace = GRACE
        super().__init__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # for tests

    def create(self, name, namespace="", **options):
        """A repository, made without a request."""
        with self.lock:
            place = self._place(namespace or (f"s3://lake/{name}" if self.root is None else f"local://{name}"))
            kept = Repository(name, place, names=self.names, clock=self.clock, ways=self.ways, **options)
            return self.repositories.setdefault(name, kept)

    def settings(self, repository):
        """What our client is given."""
        return Settings(self.endpoint, repository, KEY, SECRET)

    def wait(self, time):
        self.clock.now += time

    @contextmanager
    def lose_commit(self, repository, commit):
        """In the block, dumps lack a commit."""
        self.repositories[repository].lost_commits.add(commit)
        try:
            yield
        finally:
            self.repositories[repository].lost_commits.remove(commit)

    @contextmanager
    def lose_branches(self, repository):
        """In the block, dumps have no branches."""
        self.repositories[repository].lost_branches = True
        try:
            yield
        finally:
            self.repositories[repository].lost_branches = False

    def _place(self, namespace):
        if self.root is None:
            return files.Place(namespace, namespace.rstrip("/") + "/", self._opened(namespace))
        folder = self.root / namespace.removeprefix("local://").strip("/")
        return files.Place(namespace, f"local://{folder}/", LocalStore(folder, clock=self.clock, fsync=False))

    def answered(self, ask, authorization):
        try:
            return super().answered(ask, authorization)
        except Refused as refused:
            return error(refused.status, refused.message)

    def _of(self, ask, *, writes=False):
        found = self.repositories.get(ask.repository)
        if found is None:
            raise Refused(404, "repository not found")
        if writes and found.read_only:
            raise Refused(403, "read-only repository")
        return found

    # how it is set up

    @property
    def _storage(self):
        local = self.root is not None
        kind = "local" if local else "s3"
        return {
            "blockstore_description": "",
            "blockstore_id": "",
            "blockstore_namespace_ValidityRegex": f"^{kind}://",
            "blockstore_namespace_example": f"{kind}://example-bucket/",
            "blockstore_type": kind,
            "default_namespace_prefix": "local://" if local else "",
            "import_support": not local,
            "import_validity_regex": f"^{kind}://",
            "pre_sign_multipart_upload": not local,
            "pre_sign_support": not local,  # as a real one says, though nothing here can sign
            "pre_sign_support_ui": False,
        }

    @route("GET", "/config")
    def get_config(self, _):
        version = {"version": "dev", "version_context": "lakeFS"}
        rest = {"capabilities_config": {}, "storage_config_list": [], "ui_config": {}, "version_config": version}
        return Answer(200, {"storage_config": self._storage, **rest})

    @route("GET", "/config/version")
    def get_version(self, _):
        return Answer(200, {"version": "dev", "version_context": "lakeFS"})

    @route("GET", "/config/storage")
    def get_storage(self, _):
        return Answer(200, self._storage)

    @route("GET", "/config/garbage-collection")
    def get_grace(self, _):
        return Answer(200, {"grace_period": self.grace})

    # repositories

    @route("GET", "/repositories")
    def list_repositories(self, ask):
        return page(ask, {name: described(one) for name, one in self.repositories.items()})

    @route("POST", "/repositories")
    def create_repository(self, ask):
        body = ask.json
        kind = "s3" if self.root is None else "local"
        if not body["storage_namespace"].startswith(f"{kind}://"):
            raise Refused(400, "failed to create repository: invalid namespace")
        if body["name"] in self.repositories:
            raise Refused(409, "error creating repository: repository already exists")
        if self._place(body["storage_namespace"]).there("_lakefs/dummy") and ask.query.get("bare") != "true":
            raise Refused(400, "failed to create repository: found lakeFS objects in the storage namespace")
        options = {"bare": ask.query.get("bare") == "true", "read_only": body.get("read_only", False)}
        default = body.get("default_branch") or "main"
        made = self.create(body["name"], body["storage_namespace"], default_branch=default, **options)
        return Answer(201, described(made))

    @route("GET", R)
    def get_repository(self, ask):
        return Answer(200, described(self._of(ask)))

    @route("DELETE", R)
    def delete_repository(self, ask):
        """Its files stay, as a real server leaves them."""
        del self.repositories[self._of(ask).name]
        return Answer(204)

    @route("GET", R + "/metadata")
    def get_repository_metadata(self, ask):
        self._of(ask)
        return Answer(200, {})

    # refs

    @route("GET", R + "/branches")
    def list_branches(self, ask):
        hidden = ask.query.get("show_hidden") == "true"
        branches = self._of(ask).branches.values()
        return page(ask, {one.name: ref(one.name, one.head) for one in branches if hidden or not one.hidden})

    @route("POST", R + "/branches")
    def create_branch(self, ask):
        body = ask.json
        made = self._of(ask, writes=True).create_branch
        return Answer(201, made(body["name"], body["source"], hidden=body.get("hidden", False)))

    @route("GET", B)
    def get_branch(self, ask):
        found = self._of(ask).branch(ask.branch)
        return Answer(200, ref(found.name, found.head))

    @route("DELETE", B)
    def delete_branch(self, ask):
        self._of(ask, writes=True).delete_branch(ask.branch)
        return Answer(204)

    @route("PUT", B)
    def reset_branch(self, ask):
        body, repository = ask.json, self._of(ask, writes=True)
        prefix = encode_prefix(body.get("path", ""))
        repository.reset(ask.branch, prefix=prefix, exact=body["type"] == "object")
        return Answer(204)

    @route("PUT", B + "/hard_reset")
    def hard_reset(self, ask):
        repository = self._of(ask, writes=True)
        branch = repository.branch(ask.branch)
        branch.head, branch.staged = repository.resolve(ask.query["ref"])[0], {}
        return Answer(204)

    @route("POST", B + "/revert")
    def revert(self, ask):
        body = ask.json
        self._of(ask, writes=True).revert(ask.branch, body["ref"], body.get("parent_number", 0))
        return Answer(204)

    @route("POST", B + "/commits")
    def make_commit(self, ask):
        body = ask.json
        made = self._of(ask, writes=True).make_commit(
            ask.branch,
            body["message"],
            metadata=body.get("metadata"),
            date=body.get("date"),
            allow_empty=body.get("allow_empty", False),
        )
        return Answer(201, committed(made))

    @route("POST", REF + "/merge/{branch}")
    def merge(self, ask):
        body = ask.json
        message = body.get("message") or f"Merge '{ask.ref}' into '{ask.branch}'"
        made = self._of(ask, writes=True).merge(ask.ref, ask.branch, message, body.get("metadata") or {})
        return Answer(200, {"reference": made})

    @route("GET", R + "/tags")
    def list_tags(self, ask):
        return page(ask, {name: ref(name, target) for name, target in self._of(ask).tags.items()})

    @route("POST", R + "/tags")
    def create_tag(self, ask):
        body, repository = ask.json, self._of(ask, writes=True)
        repository.create_tag(body["id"], body["ref"])
        return Answer(201, ref(body["id"], repository.tags[body["id"]]))

    @route("GET", R + "/tags/{tag}")
    def get_tag(self, ask):
        target = self._of(ask).tags.get(ask.tag)
        return Answer(200, ref(ask.tag, target)) if target else error(404, "tag not found")

    @route("DELETE", R + "/tags/{tag}")
    def delete_tag(self, ask):
        self._of(ask, writes=True).delete_tag(ask.tag)
        return Answer(204)

    @route("GET", R + "/commits/{commit}")
    def get_commit(self, ask):
        repository = self._of(ask)
        return Answer(200, committed(repository.commit(repository.resolve(ask.commit)[0])))

    @route("GET", REF + "/commits")
    def log(self, ask):
        return page(ask, {one.id: committed(one) for one in self._of(ask).log(ask.ref)}, in_order=True)

    # objects

    @route("GET", REF + "/objects/ls")
    def list_objects(self, ask):
        repository, prefix = self._of(ask), ask.query.get("prefix", "")
        found = {decode_path(path): one for path, one in repository.view(ask.ref).items()}
        rows = {path: listed(repository, one) for path, one in found.items() if path.startswith(prefix)}
        if divider := ask.query.get("delimiter"):
            folded, start = {}, len(prefix)
            for path, row in rows.items():
                head, cut, _ = path[start:].partition(divider)
                folder = path[:start] + head + divider
                shown = {"checksum": "", "path": folder, "path_type": "common_prefix", "physical_address": ""}
                folded[folder if cut else path] = {**shown, "mtime": 0} if cut else row
            rows = folded
        return page(ask, rows)

    @route("GET", REF + "/objects/stat")
    def stat_object(self, ask):
        repository = self._of(ask)
        return Answer(200, stat(repository, repository.stat(ask.ref, ask.key)))

    @route("GET", REF + "/objects")
    def get_object(self, ask):
        repository = self._of(ask)
        return Answer(200, repository.get(repository.stat(ask.ref, ask.key)))

    @route("HEAD", REF + "/objects")
    def head_object(self, ask):
        self._of(ask).stat(ask.ref, ask.key)
        return Answer(200)

    @route("GET", B + "/diff")
    def diff_branch(self, ask):
        repository = self._of(ask)
        base = repository.entries(repository.branch(ask.branch).head)
        rows = {}
        for path, entry in repository.changes(ask.branch).items():
            kind = "removed" if entry is None else "changed" if path in base else "added"
            size = {"size_bytes": entry.size} if entry else {}
            rows[decode_path(path)] = {"path": told(decode_path(path)), "path_type": "object", "type": kind, **size}
        return page(ask, rows)

    @route("POST", B + "/objects")
    def upload_object(self, ask):
        body, kind = ask.content
        repository = self._of(ask, writes=True)
        if ask.headers.get("if-none-match") == "*" and ask.key in repository.view(ask.branch):
            raise Refused(412, "Precondition failed")
        return Answer(201, stat(repository, repository.upload(ask.branch, ask.key, body, content_type=kind)))

    @route("PUT", B + "/objects")
    def stage_object(self, ask):
        repository, body = self._of(ask, writes=True), ask.json
        made = repository.stage(ask.branch, ask.key, body["physical_address"], **facts(body, "metadata"))
        return Answer(201, listed(repository, made))

    @route("DELETE", B + "/objects")
    def delete_object(self, ask):
        self._of(ask, writes=True).delete(ask.branch, ask.key)
        return Answer(204)

    @route("POST", B + "/objects/copy")
    def copy_object(self, ask):
        repository, body = self._of(ask, writes=True), ask.json
        if body.get("shallow"):
            raise Refused(501, "Not implemented")
        source = repository.stat(body.get("src_ref") or ask.branch, encode_prefix(body["src_path"]))
        try:
            body = repository.get(source)
        except Refused:
            raise Refused(500, "copy: data not found") from None
        kind, path = source.content_type, ask.query["dest_path"].encode(errors="surrogateescape")
        made = repository.upload(ask.branch, path, body, content_type=kind, metadata=source.metadata)
        return Answer(201, stat(repository, made))

    @route("GET", B + "/staging/backing")
    def get_address(self, ask):
        address = self._of(ask, writes=True).link_address(ask.branch, ask.key)
        return Answer(200, {"physical_address": address, "presigned_url": None})

    @route("PUT", B + "/staging/backing")
    def link_address(self, ask):
        repository, body = self._of(ask, writes=True), ask.json
        address = body["staging"]["physical_address"]
        repository.check_link(ask.branch, ask.key, address)
        made = repository.stage(ask.branch, ask.key, address, **facts(body, "user_metadata"))
        return Answer(200, stat(repository, made))

    # dumps

    @route("PUT", R + "/refs/dump")
    def dump_refs(self, ask):
        return Answer(201, collecting.dump(self._of(ask)))

    @route("POST", R + "/dump")
    def begin_dump(self, ask):
        return self._begun("DR", "refs", collecting.dump, self._of(ask))

    @route("GET", R + "/dump")
    def dump_status(self, ask):
        task, done, rest = self._polled(ask.query["task_id"])
        return Answer(200, {"id": task, "done": done, "update_time": self._now(), **rest})

    @route("PUT", R + "/refs/restore")
    def restore_refs(self, ask):
        collecting.restore(self._of(ask, writes=True), ask.json)
        return Answer(200)

    # for collectors

    @route("POST", R + "/gc/prepare_uncommited")
    def prepare_uncommitted(self, ask):
        repository = self._of(ask, writes=True)
        run, has_file, token = collecting.uncommitted(repository, ask.json.get("continuation_token"))
        where = f"{repository.place.shown}_lakefs/retention/gc/uncommitted/{run}/uncommitted/"
        more = {"continuation_token": token} if token else {}
        return Answer(201, {"gc_uncommitted_location": where if has_file else "", "run_id": run, **more})

    @route("POST", R + "/gc/prepare_commits")
    def prepare_commits(self, ask):
        """A local blockstore cannot sign: the list is there, and two documents are answered."""
        made = Answer(201, self._prepared(self._of(ask, writes=True)))
        if self.root is None:
            return made
        bad = error(400, "local adapter: operation not supported")
        return Answer(400, bad.sent[0] + made.sent[0])

    @route("POST", R + "/gc/prepare_commits/async")
    def begin_commits(self, ask):
        return self._begun("GCPC", "result", self._prepared, self._of(ask, writes=True))

    @route("GET", R + "/gc/prepare_commits/status")
    def commits_status(self, ask):
        task, done, rest = self._polled(ask.query["id"])
        return Answer(200, {"task_id": task, "completed": done, "update_time": self._now(), **rest})

    @route("GET", R + "/settings/gc_rules")
    def get_rules(self, ask):
        rules = self._of(ask).rules
        if rules is None:
            raise Refused(404, "not found")
        branches = [{"branch_id": name, "retention_days": days} for name, days in sorted(rules[1].items())]
        return Answer(200, {"branches": branches, "default_retention_days": rules[0]})

    @route("PUT", R + "/settings/gc_rules")
    def set_rules(self, ask):
        body = ask.json
        days = {one["branch_id"]: one["retention_days"] for one in body["branches"]}
        collecting.set_rules(self._of(ask, writes=True), body["default_retention_days"], days)
        return Answer(204)

    @route("DELETE", R + "/settings/gc_rules")
    def delete_rules(self, ask):
        collecting.delete_rules(self._of(ask, writes=True))
        return Answer(204)

    # tables

    @route("GET", R + "/metadata/range/{table}")
    @route("GET", R + "/metadata/meta_range/{table}")
    def get_table_place(self, ask):
        """Whether there is such a table or not."""
        self._of(ask)
        where = f"_lakefs/{ask.table}"
        return Answer(200, {"location": where}, location=where)

    @route("GET", R + "/metadata/object/{kind}/{table}")
    def get_table(self, ask):
        place = self._of(ask).place
        if ask.kind not in ("range", "meta_range") or not place.there(f"_lakefs/{ask.table}"):
            raise Refused(410, "No data")
        return Answer(200, place.store.get(f"_lakefs/{ask.table}"))

    def _prepared(self, repository):
        run, key = collecting.prepare_commits(repository)
        shown = repository.place.shown
        return {
            "gc_addresses_location": f"{shown}_lakefs/retention/gc/addresses/",
            "gc_commits_location": shown + key,
            "gc_commits_presigned_url": "",
            "run_id": run,
        }

    def _begun(self, prefix, field, work, repository):
        """A task, which is done at once, though it may be said to take its time."""
        name = f"{prefix}{next(self._numbers):020d}"
        try:
            outcome = {field: work(repository)}
        except Refused as refused:
            outcome = {"error": {"message": refused.message}}
        self._tasks[name] = [self.ways.polls, outcome]
        return Answer(202, {"id": name})

    def _polled(self, name):
        if name not in self._tasks:
            raise Refused(404, "not found")
        left, outcome = self._tasks[name]
        self._tasks[name][0] -= 1
        return (name, False, {}) if left > 0 else (name, True, outcome)

    def _now(self):
        return self.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
