"""Histories of many writers at once: what each of them did and was told, and what must be true of the lake then.

Every path is written once, with a text of its own; a commit's message is used
once. So the judge needs no model of branches: it knows who wrote what, when, and
which operations could have taken it away again.
"""

import itertools
import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import inf

from desilt.errors import BadRequest, Conflict, Gone, NotFound
from desilt.lake import commits, fsck, refs, repositories, staging, tickets
from desilt.records import removals as tombstones
from desilt.records.removals import Tombstone
from desilt.sstable.values import decode_entry
from desilt.testing import oracle

REFUSALS = (Conflict, NotFound, Gone, BadRequest)  # all that a writer may meet; StorageFailed is a failure
WRITES = ("put", "link", "copy", "move", "copy_across")
REMOVES = ("remove", "move")
COMMITS = ("commit", "merge", "revert")
BRANCHES = ("main", "dev", "qa")


@dataclass
class Record:
    """One operation, as its writer saw it. Unknown: the writer died, or is not done yet."""

    writer: str
    kind: str
    branch: str
    path: str = ""  # written
    text: str = ""  # what is at ``path``
    source: str = ""  # the path that was copied, moved, removed or reset; the commit that was reverted
    message: str = ""
    began: float = 0
    ended: float = inf
    outcome: str = "unknown"  # acknowledged, refused
    result: str = ""  # a commit, an address, an error
    condemned: list = field(default_factory=list)

    @property
    def happened(self):
        """Surely or maybe."""
        return self.outcome != "refused"

    @property
    def acknowledged(self):
        return self.outcome == "acknowledged"


class Writer:
    """One writer: performs operations on paths of its own, and records them."""

    def __init__(self, name, repo, log, now):
        self.name, self.repo, self._log, self._now = name, repo, log, now
        self._numbers = itertools.count()
        self._own = []  # (branch, path, text): written by me, acknowledged, still there as far as I know

    def do(self, kind, branch, other, pick):
        """Perform ``kind``; ``pick`` chooses among what there is to choose from."""
        getattr(self, kind)(branch, other, pick)

    def put(self, branch, _other, _pick):
        with self._writing("put", branch) as record:
            record.result = self.repo.put(branch, record.path, record.text.encode()).address

    def link(self, branch, _other, _pick):
        with self._writing("link", branch) as record:
            handed = self.repo.physical_address(branch, record.path)
            self.repo.store.put(self.repo.prefix + handed.ticket.address, [record.text.encode()])
            record.result = self.repo.link(branch, record.path, handed.token).address

    def copy(self, _branch, _other, pick):
        self._copy("copy", pick)

    def move(self, _branch, _other, pick):
        self._copy("move", pick)

    def copy_across(self, branch, _other, pick):
        own = self._any_own(pick)
        if own is not None and own[0] != branch:
            with self._writing("copy_across", branch, text=own[2], source=own[1]) as record:
                record.result = self.repo.copy(own[0], own[1], branch, record.path).address

    def remove(self, _branch, _other, pick):
        own = self._any_own(pick)
        if own is not None:
            with self._recorded("remove", own[0], source=own[1]):
                self.repo.remove(own[0], own[1])
                self._own.remove(own)

    def reset_path(self, _branch, _other, pick):
        own = self._any_own(pick)
        if own is not None:
            with self._recorded("reset_path", own[0], source=own[1]):
                self.repo.reset(own[0], path=own[1])
                self._own.remove(own)

    def reset(self, branch, _other, _pick):
        with self._recorded("reset", branch):
            self.repo.reset(branch)

    def commit(self, branch, _other, _pick):
        with self._recorded("commit", branch) as record:
            record.result = self.repo.commit(branch, record.message).id

    def merge(self, branch, other, _pick):
        with self._recorded("merge", branch) as record:
            made = self.repo.merge(other, branch, message=record.message)
            record.result = made.id if made else ""

    def revert(self, branch, _other, pick):
        with self._recorded("revert", branch) as record:
            record.source = self.repo.resolve(f"{branch}~{pick % 3}").commit.id
            self._log(record)
            record.result = self.repo.revert(branch, record.source, parent=1, message=record.message).id

    def branch_off(self, branch, other, _pick):
        with self._recorded("branch_off", branch) as record:
            record.result = self.repo.create_branch(branch, other).uid

    def delete(self, branch, _other, _pick):
        with self._recorded("delete", branch):
            self.repo.delete_branch(branch, force=True)

    def tag(self, branch, _other, _pick):
        with self._recorded("tag", branch) as record:
            record.path = record.message.replace("/", "-")
            record.result = self.repo.create_tag(record.path, branch).target

    def collect(self, _branch, _other, pick):
        """Condemn whatever nothing holds, however young; now and then by a clock that says all tickets have expired."""
        with self._recorded("collect", "") as record:
            stored = sorted(oracle.stored(self.repo))
            record.condemned = condemn(self.repo, "gc", stored, oracle.committed, tickets_hold=pick % 3 > 0)

    def expire(self, _branch, _other, pick):
        """Condemn one address, though commits may hold it."""
        with self._recorded("expire", "") as record:
            stored = sorted(oracle.stored(self.repo))
            record.condemned = condemn(self.repo, "lifecycle", stored[pick % 7 :: 7][:1], lambda _: set())

    def _copy(self, kind, pick):
        own = self._any_own(pick)
        if own is not None:
            with self._writing(kind, own[0], text=own[2], source=own[1]) as record:
                act = self.repo.move if kind == "move" else lambda on, a, b: self.repo.copy(on, a, on, b)
                record.result = act(own[0], own[1], record.path).address
                if kind == "move":
                    self._own.remove(own)

    def _any_own(self, pick):
        return self._own[pick % len(self._own)] if self._own else None

    @contextmanager
    def _writing(self, kind, branch, *, text="", source=""):
        path = f"{self.name}/{next(self._numbers)}"
        with self._recorded(kind, branch, path=path, text=text or f"the text of {path}", source=source) as record:
            yield record
        if record.acknowledged:
            self._own.append((branch, path, record.text))

    @contextmanager
    def _recorded(self, kind, branch, **facts):
        message = f"{self.name}/{kind}/{next(self._numbers)}"
        record = Record(self.name, kind, branch, message=message, began=self._now(), **facts)
        self._log(record)
        try:
            yield record
            record.outcome = "acknowledged"
        except REFUSALS as error:
            record.outcome, record.result = "refused", f"{type(error).__name__}: {error}"
        finally:
            record.ended = self._now()
            if record.outcome != "unknown":
                self._log(record)


def condemn(repo, run, candidates, committed, *, tickets_hold=True):
    """Tombstones, by one transaction, for those ``candidates`` that nothing staged, no ticket and no commit holds."""
    for _ in range(5):
        generation, held = repo.generation(), committed(repo)
        now = repo.clock()
        with repo.database.write() as tx:
            if repositories.condemning(tx, repo.uid) != generation:
                continue
            held = held | staged_addresses(tx)
            if tickets_hold:
                held |= {ticket.address for ticket in tickets.open_at(tx, repo.uid, now)}
            free = [address for address in candidates if address not in held]
            tombstones.condemn(tx, repo.uid, [Tombstone(address, run, "a rule", now) for address in free])
            return free
    return []


def staged_addresses(tx):
    rows = tx.rows("SELECT path, value FROM staging WHERE value IS NOT NULL")
    return {decode_entry(bytes(path), bytes(value)).address for path, value in rows}


def to_line(record):
    return json.dumps(asdict(record)) + "\n"


def from_lines(lines):
    """Records from a log in which a later line of the same message replaces the earlier one."""
    found = {}
    for line in lines:
        if line.endswith("\n"):  # a writer may die in the middle of one
            record = Record(**json.loads(line))
            found[record.message] = record
    return list(found.values())


class Judge:
    """Looks at a repository through a face of its own, and says what is wrong with it."""

    def __init__(self, repo):
        self.repo = repo
        self._files = {}  # metarange -> {path: entry}
        self._read = {}  # address -> text
        self._taken_back = {}  # commit -> paths
        self._seen = None
        self._generation = 0
        self._missed = {}  # (branch, path) that was written and not there -> since when

    # ---- while it happens

    def glance(self, records):
        """What must hold between any two steps."""
        with self.repo.database.read() as tx:
            generation = repositories.generation(tx, self.repo.uid)
            branches, tags = refs.branches(tx, self.repo.uid), list(refs.tags(tx, self.repo.uid))
            gone = set(tombstones.every(tx, self.repo.uid).to_pylist())
            staged = [pair for one in branches for token in one.tokens for pair in staging.scan(tx, [token])]
            held = staged_addresses(tx)
        assert generation >= self._generation, "the generation went back"
        pointed = {(one.name, one.uid, one.head) for one in branches} | {(tag.name, tag.target) for tag in tags}
        seen = (pointed, [one.tokens for one in branches], staged)
        if self._seen is not None and seen != self._seen:
            if pointed != self._seen[0]:
                assert generation > self._generation, "refs moved, and their generation did not"
            visible = self.shown()
            self.nothing_acknowledged_is_missing(records, visible)
            self.nothing_comes_back(records, visible)
        self._seen, self._generation = seen, generation
        assert not held & gone, "what is staged is condemned"

    def nothing_comes_back(self, records, visible):
        """What a reset took stays away, whatever commit was under way."""
        now = max(record.began for record in records)
        for record in records:
            if record.kind in WRITES and record.acknowledged:
                there, place = record.path in visible.get(record.branch, {}), (record.branch, record.path)
                if there and place in self._missed:
                    assert self.may_be_shown_again(record, records, self._missed[place]), f"back again: {record}"
                if not there:
                    self._missed.setdefault(place, now)

    # ---- at the end

    def judge(self, records):
        with self.repo.database.read() as tx:
            every = {commit.id: commit for commit in commits.every(tx, self.repo.uid)}
            stones = tx.rows("SELECT address, run FROM tombstones WHERE repository = ?", self.repo.uid)
            known = {token for one in refs.branches(tx, self.repo.uid) for token in one.tokens}
            orphans = {token for (token,) in tx.rows("SELECT DISTINCT token FROM staging")} - known
        assert not orphans, "staging areas that no branch knows"
        visible = self.shown()
        self.nothing_acknowledged_is_missing(records, visible)
        self.all_was_attempted_and_reads_right(records, every, visible, {address for address, _ in stones})
        self.history_is_sound(every)
        self.acknowledged_commits_are_in_history(records, every)
        self.program_order_is_kept(records, every)
        self.refs_are_what_was_acknowledged(records)
        self.what_is_condemned_is_held_by_nobody({address for address, run in stones if run == "gc"}, every)

    def nothing_acknowledged_is_missing(self, records, visible):
        for record in records:
            if record.kind in WRITES and record.acknowledged and not self.excused(record, records):
                assert record.path in visible.get(record.branch, {}), f"lost: {record}"
            if record.kind in REMOVES and record.acknowledged and not self.may_be_back(record, records):
                assert record.source not in visible.get(record.branch, {}), f"back again: {record}"

    def all_was_attempted_and_reads_right(self, records, every, visible, gone):
        texts = {record.path: record.text for record in records if record.kind in WRITES and record.happened}
        for files in [*map(self.files, every.values()), *visible.values()]:
            for path, entry in files.items():
                assert path in texts, f"{path} came from nowhere, or from a write that was refused"
                if entry.address not in gone:
                    assert self.text(entry.address) == texts[path]
                    assert entry.size == len(texts[path])

    def history_is_sound(self, every):
        for commit in every.values():
            for parent in commit.parents:
                assert every[parent].created_at < commit.created_at
                assert every[parent].generation < commit.generation
        for one in (*self.repo.branches(), *self.repo.tags()):
            ids = [commit.id for commit in self.repo.log(one.name)]
            assert len(ids) == len(set(ids))

    def acknowledged_commits_are_in_history(self, records, every):
        made = [commit.message for commit in every.values()]
        history = {one.name: {commit.id for commit in self.repo.log(one.name)} for one in self.repo.branches()}
        for record in records:
            if record.kind not in COMMITS:
                continue
            times = made.count(record.message)
            assert times <= (1 if record.happened else 0), f"made {times} times: {record}"
            deleted = any(
                other.kind == "delete" and other.happened and other.branch == record.branch
                for other in records
                if other.ended >= record.began
            )
            if record.acknowledged and record.result and not deleted:
                assert record.result in history[record.branch], f"not in history: {record}"

    def program_order_is_kept(self, records, every):
        writes = [one for one in records if one.kind in WRITES and one.happened]
        for _, group in itertools.groupby(sorted(writes, key=by_writer), key=by_writer):
            mine = sorted(group, key=lambda one: one.began)
            for earlier, later in itertools.combinations(mine, 2):
                if earlier.acknowledged and not self.excused(earlier, records):
                    for commit in every.values():
                        files = self.files(commit)
                        assert later.path not in files or earlier.path in files, f"{later} without {earlier}"
        for commit in (one for one in records if one.kind == "commit" and one.acknowledged):
            files = self.files(every[commit.result])
            for write in writes:
                mine = write.acknowledged and by_writer(write) == by_writer(commit) and write.ended <= commit.began
                assert not mine or write.path in files or self.excused(write, records), f"{commit} without {write}"

    def refs_are_what_was_acknowledged(self, records):
        tags = {tag.name: tag.target for tag in self.repo.tags()}
        names = {one.name for one in self.repo.branches()}
        for record in records:
            if record.kind == "tag" and record.acknowledged:
                assert tags[record.path] == record.result
            deleted = any(
                other.kind == "delete" and other.happened and other.branch == record.branch
                for other in records
                if other.ended >= record.began
            )
            if record.kind == "branch_off" and record.acknowledged and not deleted:
                assert record.branch in names

    def what_is_condemned_is_held_by_nobody(self, gone, every):
        with self.repo.database.read() as tx:
            assert not gone & staged_addresses(tx)
        for commit in every.values():
            assert not gone & {entry.address for entry in self.files(commit).values()}

    # ---- what the judge knows

    def excused(self, write, records):
        """Whether something may have taken ``write`` away from its branch again."""
        return any(
            (other.kind in ("remove", "move", "reset_path") and other.source == write.path)
            or (other.kind in ("reset", "delete") and other.branch == write.branch and other.ended >= write.began)
            or (other.kind == "revert" and other.source and write.path in self.taken_back(other.source))
            for other in records
            if other.happened
        )

    def may_be_back(self, removal, records):
        """Whether something may have brought back what was removed from a branch."""
        return any(
            (other.kind in ("reset", "delete", "merge", "revert") and other.branch == removal.branch)
            or (other.kind == "reset_path" and other.source == removal.source)
            for other in records
            if other.happened and other.ended >= removal.began
        )

    def may_be_shown_again(self, write, records, since):
        """Whether something may have brought back what was missed ``since`` then."""
        return any(
            (other.kind in ("merge", "revert", "branch_off", "delete") and other.branch == write.branch)
            or (other.kind in REMOVES and other.source == write.path)
            for other in records
            if other.happened and (other.ended >= since or other.kind in REMOVES)
        )

    def taken_back(self, commit_id):
        """The paths that a revert of this commit may touch."""
        if commit_id in self._taken_back:
            return self._taken_back[commit_id]
        with self.repo.database.read() as tx:
            fetch = commits.fetching(tx, self.repo.uid)
            commit = fetch(commit_id)
            before = [fetch(parent) for parent in commit.parents[:1]]
        old, new = self.files(before[0]) if before else {}, self.files(commit)
        touched = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        return self._taken_back.setdefault(commit_id, touched)

    def files(self, commit):
        if commit.metarange not in self._files:
            self._files[commit.metarange] = {entry.path: entry for entry in self.repo.list(commit.id)}
        return self._files[commit.metarange]

    def shown(self):
        """What every branch shows."""
        return {one.name: {entry.path: entry for entry in self.repo.list(one.name)} for one in self.repo.branches()}

    def text(self, address):
        if address not in self._read:
            self._read[address] = self.repo.store.get(self.repo.prefix + address).decode()
        return self._read[address]


def by_writer(record):
    return record.writer, record.branch


def still_works(repo, name="afterwards"):
    """An ordinary day on a sound repository: put, commit, merge."""
    assert fsck.check(repo).sound
    repo.create_branch(name, "main")
    repo.put(name, f"{name}/file", b"as ever")
    made = repo.commit(name, "as ever")
    repo.reset("main")
    merged = repo.merge(name, "main")
    assert merged is not None
    assert made.id in {commit.id for commit in repo.log("main")}
    assert b"".join(repo.get("main", f"{name}/file")) == b"as ever"


def some_schedule(random):
    """Who goes on, and for how many steps."""
    longest = random.choice((1, 3, 9, 30))
    return [(random.randrange(4), random.randint(1, longest)) for _ in range(300 // longest)]
