"""One repository of the model of a lakeFS server: its refs, what is staged, and what can be done to them.

What it does is what a real server does, where that is known; where a real one would say no, :class:`Refused` is raised
with its status and its words. Nothing here knows of HTTP.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field, replace
from datetime import timedelta

import lakefs_files as files
from desilt.domain.entry import AddressType, Entry, decode_path
from desilt.domain.history import Commit, merge_base, walk
from desilt.domain.identity import commit_hash
from desilt.domain.times import moment, nanoseconds, seconds
from desilt.errors import DesiltError, NotFound
from desilt.sstable.values import decode_entry, encode_entry, entry_identity

DUMMY = b"this is dummy data - created by lakeFS to check accessibility"
OCTETS = "application/octet-stream"
ADMIN = "admin"
SIGNING = b"what links are signed with"
FOREVER = 10**9  # entries, to a page


class Refused(Exception):
    """What a real server answers with."""

    def __init__(self, status, message):
        self.status, self.message = status, message
        super().__init__(message)


@dataclass
class Branch:
    name: str
    head: str
    hidden: bool = False
    staged: dict[bytes, Entry | None] = field(default_factory=dict)  # None: deleted, though it is committed


@dataclass
class Ways:
    """How a server does what it may do in more ways than one, or does wrong; tests may change it at any time."""

    raggedness: int = 50_000  # entries to a range, on average
    uncommitted_page: int = FOREVER  # staged entries to a page of prepare_uncommited
    page_for_each_branch: bool = False  # as if each took the server its whole time; the last page has nothing at all
    polls: int = 0  # for which a task is not done yet
    link_life: timedelta | None = None  # after which an address cannot be linked; None: whenever
    full_twice: bool = False  # whether whole local addresses are shown with the blockstore's directory twice


class Repository:
    """Its branches, tags and commits are plain dicts: tests may look, and may do what no request can."""

    def __init__(self, name, place, *, names, clock, ways, default_branch="main", bare=False, read_only=False):
        self.name, self.place, self.default_branch, self.read_only = name, place, default_branch, read_only
        self.created_at, self.ways = clock(), ways
        self.branches, self.tags, self.commits = {}, {}, {}
        self.rules = None  # default days, days by branch
        self.lost_commits, self.lost_branches = set(), False  # from dumps
        self.names, self.clock, self._known = names, clock, {}
        if not bare:  # of a bare one, nobody looks whether its place can be written to
            place.put("_lakefs/dummy", DUMMY)
            first = self._add([], "", "Repository created", {}, committer="")
            self.branches[default_branch] = Branch(default_branch, first.id)

    # refs

    def branch(self, name):
        return self.branches.get(name) or refuse(404, "branch not found")

    def commit(self, name):
        return self.commits.get(name) or refuse(404, "commit not found")

    def resolve(self, ref):
        """The commit that ``ref`` means, and the branch if what is staged there is meant too."""
        name, tilde, steps = ref.partition("~")
        name, committed, _ = name.partition("@")
        if name in self.branches:
            found, branch = self.branches[name].head, None if committed or tilde else self.branches[name]
        else:
            matching = [one for one in self.commits if one.startswith(name)] if len(name) >= 6 else []
            found, branch = self.tags.get(name) or (matching[0] if len(matching) == 1 else ""), None
        for _ in range(int(steps or 1) if tilde else 0):
            found = next(iter(self.commit(found).parents), "")
        return (found, branch) if found else refuse(404, "not found")

    def create_branch(self, name, source, *, hidden=False):
        head, _ = self.resolve(source)
        if name in self.branches:
            raise Refused(409, "branch already exists: not unique")
        self.branches[name] = Branch(name, head, hidden)
        return head

    def delete_branch(self, name):
        """Its commits stay, and are dumped with all others."""
        self.branch(name)
        if name == self.default_branch:
            raise Refused(403, "cannot delete repository default branch")
        del self.branches[name]

    def create_tag(self, name, ref):
        if name in self.tags:
            raise Refused(409, "tag already exists: not unique")
        self.tags[name] = self.resolve(ref)[0]

    def delete_tag(self, name):
        self.tags.pop(name, None) or refuse(404, "tag not found")

    def log(self, ref):
        return list(walk(self.commits.__getitem__, self.resolve(ref)[0]))

    # what is staged

    def view(self, ref):
        """What ``ref`` has, by path: staged over committed."""
        head, branch = self.resolve(ref)
        found = self.entries(head)
        if branch:
            found = {path: entry for path, entry in {**found, **branch.staged}.items() if entry}
        return dict(sorted(found.items()))

    def stat(self, ref, path):
        return self.view(ref).get(path) or refuse(404, "path not found: not found")

    def entries(self, commit):
        """What a commit holds; 410 where one of its tables is gone."""
        metarange = self.commit(commit).metarange
        if not metarange:
            return {}
        if metarange not in self._known:
            try:
                names, values = files.read_values(self.place, metarange)
            except NotFound:
                raise Refused(410, "No data") from None
            self._known[metarange] = names, {path: decode_entry(path, value) for path, value in values.items()}
        names, found = self._known[metarange]
        if not all(self.place.there(f"_lakefs/{name}") for name in (metarange, *names)):
            raise Refused(410, "No data")
        return dict(found)

    def upload(self, branch, path, body, *, content_type=OCTETS, metadata=None):
        where, address = self.branch(branch), self.names.address()
        self.place.put(address, body)
        entry = self._entry(path, address, len(body), hashlib.md5(body).hexdigest(), content_type, metadata)
        where.staged[path] = entry
        return entry

    def stage(self, branch, path, uri, *, size, checksum, content_type=OCTETS, metadata=None, mtime=None):
        """An entry over an object that lies somewhere: nobody looks whether it does."""
        where = self.branch(branch)
        inside = self.place.namespace.rstrip("/") + "/"
        entry = self._entry(path, uri.removeprefix(inside), size, checksum, content_type, metadata)
        if not uri.startswith(inside):
            entry = replace(entry, address_type=AddressType.FULL)
        if mtime is not None:
            entry = replace(entry, modified_ns=mtime * 10**9)
        where.staged[path] = entry
        return entry

    def link_address(self, branch, path):
        """Where somebody may put an object, to link it later."""
        self.branch(branch)
        address = self.names.address()
        return self.place.shown + f"{address},{self._signature(branch, path, address)}"

    def check_link(self, branch, path, uri):
        """Whether it was handed out for that path."""
        address, _, signature = uri.removeprefix(self.place.shown).partition(",")
        if not address.startswith("data/"):
            return
        if not hmac.compare_digest(signature, self._signature(branch, path, address)):
            raise Refused(400, "link address invalid")
        raw = base64.b32hexdecode(address.rpartition("/")[2].upper() + "====")
        age = timedelta(seconds=seconds(self.clock()) - int.from_bytes(raw[:4]))
        if self.ways.link_life is not None and age > self.ways.link_life:
            raise Refused(400, "link address expired")

    def delete(self, branch, path):
        where = self.branch(branch)
        if path in self.entries(where.head):
            where.staged[path] = None
        else:
            where.staged.pop(path, None)

    def reset(self, branch, *, prefix=b"", exact=False):
        where = self.branch(branch)
        for path in [path for path in where.staged if (path == prefix if exact else path.startswith(prefix))]:
            del where.staged[path]

    def get(self, entry):
        """An object's bytes; 410 where it is gone."""
        inside = entry.address.removeprefix(self.place.shown)
        try:
            return self.place.store.get(inside)
        except DesiltError:
            raise Refused(410, "No data") from None

    def shown(self, entry):
        """An entry's address, as answers have it."""
        if entry.address_type is AddressType.RELATIVE:
            return self.place.shown + entry.address
        root = self.place.shown.removesuffix(self.place.namespace.split("://")[1].strip("/") + "/")
        if self.ways.full_twice and entry.address.startswith(root):
            return root + entry.address.removeprefix("local:///")
        return entry.address

    def changes(self, branch):
        """What differs from the head, by identity: an upload of equal bytes does not."""
        where = self.branch(branch)
        base = self.entries(where.head)
        return {
            path: entry
            for path, entry in sorted(where.staged.items())
            if not (entry and path in base and entry_identity(entry) == entry_identity(base[path]))
        }

    # commits

    def make_commit(self, branch, message, *, metadata=None, date=None, allow_empty=False):
        where = self.branch(branch)
        changes = self.changes(branch)
        if not changes and not allow_empty:
            raise Refused(400, "commit: no changes")
        made = {path: entry for path, entry in {**self.entries(where.head), **changes}.items() if entry}
        metarange = self._metarange(made) if changes else self.commit(where.head).metarange
        commit = self._add([where.head], metarange, message, metadata or {}, date=date)
        where.head, where.staged = commit.id, {}
        return commit

    def merge(self, source, branch, message, metadata):
        where, (other, _) = self.branch(branch), self.resolve(source)
        self._clean(where)
        base = merge_base(self.commits.__getitem__, where.head, other)
        made = self._merged(self.entries(base.id), self.entries(where.head), self.entries(other))
        if made == self.entries(where.head):
            raise Refused(400, "merge: no changes")
        metadata = {".lakefs.merge.strategy": "default", **metadata}
        where.head = self._add([where.head, other], self._metarange(made), message, metadata).id
        return where.head

    def revert(self, branch, ref, parent_number=0):
        where, (name, _) = self.branch(branch), self.resolve(ref)
        self._clean(where)
        parents = self.commit(name).parents
        if len(parents) > 1 and not parent_number:
            raise Refused(409, "must specify 1-based parent number for reverting merge commit")
        before = self.entries(parents[max(parent_number, 1) - 1])
        made = self._merged(self.entries(name), self.entries(where.head), before)
        where.head = self._add([where.head], self._metarange(made), f"Revert {name}", {}).id

    # within

    def _add(self, parents, metarange, message, metadata, *, committer=ADMIN, date=None):
        above = [self.commit(parent) for parent in parents]
        made = Commit(
            id="",
            parents=tuple(parents),
            metarange=metarange,
            created_at=self.clock() if date is None else moment(date * 10**6),
            committer=committer,
            message=message,
            metadata=dict(metadata),
            generation=1 + max((parent.generation for parent in above), default=0),
        )
        made = replace(made, id=hash_of(made))
        return self.commits.setdefault(made.id, made)

    def _metarange(self, made):
        values = {path: encode_entry(entry) for path, entry in made.items()}
        return files.put_entries(self.place, values, self.ways.raggedness)

    def _merged(self, base, ours, theirs):
        """Three ways, by identity."""
        made = {}
        for path in base.keys() | ours.keys() | theirs.keys():
            was, here, there = (entry_identity(side[path]) if path in side else b"" for side in (base, ours, theirs))
            if here != was != there != here:
                raise Refused(409, "conflict found")
            if taken := ours.get(path) if there == was or here == there else theirs.get(path):
                made[path] = taken
        return made

    def _clean(self, branch):
        if self.changes(branch.name):
            raise Refused(400, "uncommitted changes (dirty branch)")

    def _entry(self, path, address, size, checksum, content_type, metadata):
        now = nanoseconds(self.clock())
        return Entry(decode_path(path), address, size, checksum, now, metadata or {}, content_type=content_type)

    def _signature(self, branch, path, address):
        facts = json.dumps([self.name, branch, decode_path(path), address]).encode()
        return base64.urlsafe_b64encode(hmac.digest(SIGNING, facts, "sha256")).decode().rstrip("=")


def hash_of(commit):
    return commit_hash(
        parents=commit.parents,
        metarange=commit.metarange,
        seconds=seconds(commit.created_at),
        committer=commit.committer,
        message=commit.message,
        metadata=commit.metadata,
    )


def refuse(status, message):
    raise Refused(status, message)
