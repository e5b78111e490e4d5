"""A lake with hard delete on, and flows that take turns: where it starts, what they do, and what must be true then."""

import itertools
import os
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from desilt.domain.run import new_run
from desilt.errors import DesiltError
from desilt.jobs.harddelete import worker
from desilt.lake import Lake, journal, schema
from desilt.lake.repository import LakeRepository
from desilt.objects.memory import MemoryStore
from desilt.objects.store_clock import PROBE
from desilt.records.holds import HoldKind
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import State
from desilt.repository.hard_delete import JOB, HardDeleteSetting, WantedBack
from desilt.runs.folder import Folder
from desilt.runs.steps import Action
from desilt.sstable.ranges import Ranges
from desilt.sweep import discards
from desilt.testing import oracle
from desilt.testing.every_turn import Violation
from desilt.testing.explore.history import Harm, Line
from desilt.testing.faults import Crash, Proxy, SteppedDatabase, Steps
from desilt.testing.footprints import KEY, Tracks, watched, watched_store
from histories import condemn
from words import seal

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ON = HardDeleteSetting(timedelta(0), 1.0)
JUDGED = {"staging", "tombstones", "fresh", "commits"}
SEEN = JUDGED | {"holds", "discarded", "repositories.discard_after"}
LAST_MOVE = {"repositories.generation", "repositories.journal_from", "move_marks"}
NOTED = "address, path, wait_until"
UPLOADS = ("put", "link", "copy to")  # how flows that upload are called
ENDED = (State.REMOVED, State.GONE)


# ---- where it starts: k is committed, dev has d, qa has nothing; what is staged on main is told


def copied(repo):
    """a, and b that is a copy of it; c alone."""
    repo.put("main", "a", b"a")
    repo.copy("main", "a", "main", "b")
    repo.put("main", "c", b"c")


def sealed(repo):
    """a and c in an area that a commit sealed and was cut off; above it copies of them, at f and b, and another a."""
    repo.put("main", "a", b"a")
    repo.put("main", "c", b"c")
    seal(repo, "main")
    repo.copy("main", "a", "main", "f")
    repo.copy("main", "c", "main", "b")
    repo.put("main", "a", b"a again")


def committed(repo):
    """a is a copy of what was committed at k, c was moved over, and b is new."""
    repo.copy("main", "k", "main", "a")
    repo.put("main", "b", b"b")
    repo.put("main", "c", b"c")
    repo.move("main", "k", "c")


def discarded(repo):
    """a and b, of one object, were reset, which is due; so is what a worker claimed that was cut off; c is staged."""
    repo.put("main", "e", b"e")
    repo.remove("main", "e")
    work_begun(repo)
    repo.put("main", "a", b"a")
    repo.copy("main", "a", "main", "b")
    repo.reset("main")
    repo.put("main", "c", b"c")


STARTS = {one.__name__: one for one in (copied, sealed, committed, discarded)}


class Start:
    """A lake in a database that goes back to where it started, again and again."""

    def __init__(self, database, begin):
        self.database, self.name, self.now = database, begin.__name__, NOW
        self.store = MemoryStore(clock=self.clock)
        schema.create(database, storage="")
        repo = Lake(database, self.store, clock=self.clock, raggedness=3).create_repository("many")
        repo.hard_delete.switch(ON)
        repo.put("main", "k", b"k")
        repo.commit("main", "first")
        for name in ("dev", "qa"):
            repo.create_branch(name, "main")
        repo.put("dev", "d", b"d")
        repo.put("main", "l", b"l")
        repo.commit("main", "second")
        begin(repo)
        self.repo = repo
        with database.read() as tx:
            self.tables = {name: tx.rows(f"SELECT * FROM {name}") for name in tables(tx)}
        self.objects = dict(self.store._objects)
        self.contents = {}  # by metarange: named by their content, so they are the same in every history
        self.verdicts = {}
        self.address = {row.path: row.address for row in self.repo.list("main")}
        with database.read() as tx:
            self.address |= {bytes(path).decode(): one for one, path, _ in tx.rows(f"SELECT {NOTED} FROM discarded")}

    def clock(self):
        return self.now

    def again(self):
        self.now = NOW
        self.store._objects.clear()
        self.store._objects.update(self.objects)
        with self.database.write() as tx:
            for name, rows in self.tables.items():
                tx.execute(f"DELETE FROM {name}")
                if rows:
                    tx.execute_many(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def looked_at(self):
        """All that a judge looks at, at this moment."""
        with self.database.read() as tx:
            staged = tx.rows("SELECT token, path, address FROM staging WHERE address IS NOT NULL")
            stones = dict(tx.rows("SELECT address, state FROM tombstones"))
            fresh = {row[0] for row in tx.rows("SELECT address FROM fresh")}
            noted = [
                (one, bytes(path).decode(), until) for one, path, until in tx.rows(f"SELECT {NOTED} FROM discarded")
            ]
            after = tx.one("SELECT discard_after FROM repositories")[0]
            metaranges = {row[0] for row in tx.rows("SELECT metarange FROM commits")}
            holds = tx.rows("SELECT kind, value FROM holds")
            tickets = {row[0] for row in tx.rows("SELECT address FROM tickets")}
        for one in metaranges - self.contents.keys():
            self.repo.ranges.metarange.cache_clear()
            entries = oracle.contents(self.repo, {one})[one]
            self.contents[one] = {entry.address for entry in entries if "://" not in entry.address}
        prefix = self.repo.prefix
        return SimpleNamespace(
            rows=[
                (str(token), bytes(path).decode(), address) for token, path, address in staged if "://" not in address
            ],
            staged={row[2] for row in staged if "://" not in row[2]},
            stones=stones,
            fresh=fresh,
            noted=noted,
            on=after is not None,
            committed=set().union(*(self.contents[one] for one in metaranges)),
            holds=frozenset(holds),
            tickets=tickets,
            stored={key.removeprefix(prefix) for key in self.store._objects if key.startswith(f"{prefix}branches/")},
        )


def tables(tx):
    found = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if not tx.has_table("sqlite_master") and tx.__class__.__name__.startswith("PostgreSQL"):
        found = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    return sorted(row[0] for row in tx.rows(found) if not row[0].startswith("sqlite_"))


# ---- what flows do


def link(repo, _):
    handed = repo.physical_address("main", "n")
    repo.store.put(repo.prefix + handed.ticket.address, [b"new"])
    repo.link("main", "n", handed.token)


def nothing_to_commit(repo, _):
    repo.put("qa", "q", b"q")
    repo.remove("qa", "q")
    repo.commit("qa", "nothing")


def work_begun(repo, most=1000):
    run = new_run(JOB, now=repo.clock(), started_at=repo.clock(), entropy=b"dead", last=None)
    row = RunRow(run.id, JOB, "", Action.DELETE, run.now, None, RunState.SWEPT, 0, 0)
    return run, repo.hard_delete.claim(row, 0, most=most)


def work(repo, _):
    """One batch of a worker, all of it but for its report."""
    repo.gate.settle_moves()
    run = new_run(JOB, now=repo.clock(), started_at=repo.clock(), entropy=os.urandom(4), last=None)
    row = RunRow(run.id, JOB, "", Action.DELETE, run.now, None, RunState.SWEPT, 0, 0)
    discards.remove(repo, repo.hard_delete, row, 0, Folder(repo.store, repo.prefix, run))


def collect(repo, _):
    stored = sorted(oracle.stored(repo))
    condemn(repo, "gc", stored, oracle.committed)


def hold(kind, name):
    def act(repo, start):
        value = start.address[name] if kind is HoldKind.ADDRESS else name
        repo.orders.add(kind, value, reason="asked for", until=None)

    return act


def later(_, start):
    """Time passes: leases end, pauses end."""
    start.tick()


FLOWS = {
    "put n": lambda repo, _: repo.put("main", "n", b"new"),
    "put a": lambda repo, _: repo.put("main", "a", b"other"),
    "put b": lambda repo, _: repo.put("main", "b", b"other"),
    "link n": link,
    "copy a e": lambda repo, _: repo.copy("main", "a", "main", "e"),
    "copy k a": lambda repo, _: repo.copy("main", "k", "main", "a"),
    "move a e": lambda repo, _: repo.move("main", "a", "e"),
    "move a c": lambda repo, _: repo.move("main", "a", "c"),
    "move b a": lambda repo, _: repo.move("main", "b", "a"),
    "copy to dev": lambda repo, _: repo.copy("main", "a", "dev", "x"),
    "remove a": lambda repo, _: repo.remove("main", "a"),
    "remove b": lambda repo, _: repo.remove("main", "b"),
    "remove k": lambda repo, _: repo.remove("main", "k"),
    "reset": lambda repo, _: repo.reset("main"),
    "reset a": lambda repo, _: repo.reset("main", path="a"),
    "reset b*": lambda repo, _: repo.reset("main", prefix="b"),
    "commit": lambda repo, _: repo.commit("main", "another"),
    "commit nothing": nothing_to_commit,
    "merge": lambda repo, _: repo.merge("main", "qa"),
    "delete dev": lambda repo, _: repo.delete_branch("dev", force=True),
    "hold a": hold(HoldKind.ADDRESS, "a"),
    "hold b*": hold(HoldKind.PREFIX, "b"),
    "off": lambda repo, _: repo.hard_delete.switch(None),
    "off and on": lambda repo, _: (repo.hard_delete.switch(None), repo.hard_delete.switch(ON)),
    "restore": lambda repo, _: repo.hard_delete.restore(WantedBack()),
    "worker": work,
    "collector": collect,
    "stage elsewhere": lambda repo, _: repo.stage("main", "a", "s3://elsewhere/a", size=1, checksum="c"),
    "copy a e, remove e": lambda repo, _: (repo.copy("main", "a", "main", "e"), repo.remove("main", "e")),
    "time": later,
}


@dataclass(frozen=True)
class Cut:
    """A flow that dies at one of its steps."""

    flow: str
    crash: object  # Before or After


class World:
    """Some flows, by their names or cut, from one start."""

    def __init__(self, start, flows, *, fine=False, whole=(), rows=True):
        self.start, self._flows, self._fine, self._whole, self._rows = start, flows, fine, whole, rows
        self._whole_lives = not any(isinstance(one, Cut) for one in flows)
        self.tracks = Tracks(without={"partitions", PROBE} | ({"intents"} if self._whole_lives else set()))

    def flows(self, pause):
        self.start.again()
        self._outcomes, self._history = {}, Past(self.start, rows=self._rows)
        bodies, names = {}, defaultdict(itertools.count)
        for one in self._flows:
            name, crash = (one.flow, one.crash) if isinstance(one, Cut) else (one, None)
            number = next(names[name])
            who = name + "'" * number
            bodies[who] = self._body(who, FLOWS[name], crash, pause)
        return bodies

    def _body(self, who, act, crash, pause):
        first = iter([pause])
        once = (lambda: next(first, lambda: None)()) if who in self._whole else pause
        steps = self._steps = Steps(crash, pause=once, fine=self._fine)
        core = self.start.repo.core
        store = Proxy(
            watched_store(self.start.store, self.tracks),
            steps.step,
            put_new=steps.record,
            head=steps.look,
            get=steps.look,
        )  # whoever finds that another's move was cut off reads its record, in the transaction
        mine = replace(
            core,
            database=SteppedDatabase(watched(core.database, self.tracks), steps),
            store=store,
            ranges=Ranges(store, core.prefix, raggedness=3),
            clock=self.clock,
        )

        def body():
            try:
                act(LakeRepository(mine), SimpleNamespace(address=self.start.address, tick=lambda: self._tick(steps)))
                self._outcomes[who] = "done"
            except DesiltError as error:
                self._outcomes[who] = f"refused: {type(error).__name__}"
            except Crash:
                self._outcomes[who] = "crashed"
            except Exception as error:
                self._outcomes[who] = f"broken: {error!r}"

        return body

    def clock(self):
        self.tracks.now.reads.add("time")
        return self.start.now

    def _tick(self, steps):
        with steps.step():
            self.tracks.now.writes.add("time")
            self.start.now += timedelta(minutes=11)

    def look(self, touched):
        if self._whole_lives and touched.reads >= LAST_MOVE and not touched.writes:
            touched.reads -= LAST_MOVE  # where nobody crashes, the journal never has more than the database
        if self._whole_lives:
            touched.lists -= {KEY + self.start.repo.prefix + journal.FOLDER}
        prefix = f"{KEY}{self.start.repo.prefix}branches/"
        keys = {one.removeprefix(KEY) for one in touched.writes if one.startswith(prefix)}
        removed = any(key not in self.start.store._objects for key in keys)
        if removed or touched.writes & JUDGED:
            touched.writes.add("(judged)")  # so that these are tried in every order
        if removed or touched.writes & SEEN:
            self._history.look()

    def end(self):
        for who, how in self._outcomes.items():
            if how.startswith("broken"):
                raise Violation(Harm.STUCK, f"{who} {how}")
        failed = [
            who for who, how in self._outcomes.items() if how != "done" and who.startswith((*UPLOADS, "commit n"))
        ]
        self._history.end(bool(failed))
        return [Line(who, how) for who, how in sorted(self._outcomes.items())]

    def judge(self):
        """At the end, where nobody looked before."""
        self._history.catch_up()
        self.end()

    @property
    def outcomes(self):
        return dict(self._outcomes)

    @property
    def taken(self):
        """How many steps the last flow took in the last history."""
        return self._steps.taken


class Past:
    """What a history has seen so far, and what must be true by that."""

    def __init__(self, start, *, rows=True):
        self._start, self._rows, found = start, rows, start.looked_at()  # rows: of fresh, there must be just those
        self._known = found.staged | found.stored
        self._watched = set(found.fresh) | {
            address for address, state in found.stones.items() if state in ("discarded", "claimed")
        }
        self._excused = set()  # staged while hard delete was off
        self._committed, self._holds, self._paths = set(found.committed), set(), defaultdict(set)
        self._update(found)

    def _update(self, found):
        if found.on:
            self._watched |= found.staged - self._known
        else:
            self._excused |= found.staged
        self._known |= found.staged
        self._committed |= found.committed
        self._holds |= found.holds
        for address, path in [row[:0:-1] for row in found.rows] + [row[:2] for row in found.noted]:
            self._paths[address].add(path)

    def look(self):
        found = self._start.looked_at()
        self._update(found)
        for address in sorted(found.staged | found.committed):
            state = found.stones.get(address, State.RESTORED)
            if state != State.RESTORED or address not in found.stored:
                how = "staged" if address in found.staged else "committed"
                raise Violation(
                    Harm.LOSS, f"{self._name(address)} is {how}, and {state if address in found.stored else 'gone'}"
                )
        if any(until is None for _, _, until in found.noted):
            raise Violation(Harm.LEAK, "something was dropped, and nobody has decided on it")
        for kind, value in found.holds:
            if kind == HoldKind.ADDRESS and value not in found.stored:
                raise Violation(Harm.LOSS, f"{self._name(value)} is held, and gone")
        if not self._rows:
            return found
        fresh = {one for one in found.staged & self._watched if one not in self._committed | self._excused}
        if fresh - found.fresh:
            raise Violation(Harm.LEAK, f"{self._names(fresh - found.fresh)} is staged, and not fresh")
        if odd := found.fresh - fresh:
            harm = Harm.LOSS if odd & self._committed else Harm.LEAK
            raise Violation(harm, f"{self._names(odd)} is fresh, and should not be")
        return found

    def catch_up(self):
        """Of what happened since the start only the end is known: what was staged may have been while it was off."""
        if not self.look().on:
            self._excused |= self._watched

    def end(self, failed):
        found = self._start.looked_at()
        key = (
            *map(
                frozenset, (found.rows, found.stones.items(), found.fresh, found.noted, found.committed, found.stored)
            ),
            *map(frozenset, (found.tickets, self._watched, self._excused, self._committed, self._holds)),
            failed,
        )
        if key not in self._start.verdicts:
            try:
                self._judge(failed)
                self._start.verdicts[key] = None
            except Violation as wrong:
                self._start.verdicts[key] = wrong
        if self._start.verdicts[key]:
            raise self._start.verdicts[key]

    def _judge(self, failed):
        """Time passes, and a worker removes all that is due: what is left has a reason to be there."""
        for _ in range(2):
            self._start.now += timedelta(hours=2)
            worker.remove(self._start.repo, max_share=1.0)
        found = self.look()
        left = found.stored - found.staged - found.committed - found.tickets - self._committed - self._excused
        for address in sorted(left):
            state = found.stones.get(address)
            if state == State.CONDEMNED or self._held(address):
                continue  # the collector's
            if address in self._watched:
                raise Violation(Harm.LEAK, f"{self._name(address)} is left, {state or 'and nobody will remove it'}")
            if address not in self._known and not failed:
                raise Violation(Harm.LEAK, f"{self._name(address)} was never staged")

    def _held(self, address):
        return any(
            value == address
            if kind == HoldKind.ADDRESS
            else any(path.startswith(value) for path in self._paths[address])
            for kind, value in self._holds
        )

    def _name(self, address):
        """The paths that it had."""
        return "what was at " + (", ".join(sorted(self._paths[address])) or address)

    def _names(self, addresses):
        return ", ".join(map(self._name, sorted(addresses)))
