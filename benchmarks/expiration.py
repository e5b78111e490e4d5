"""Expiration and collection as history grows.

    python benchmarks/expiration.py [--commits 1000,10000,100000] [--days 30,300,3000] [--rounds 3]

(1) Which commits to edit, in histories with a hundred branches: our algorithm
against the seed's own loop, which walks the whole history of every ref; both must
end in the same graph. (2) The same from a lake: plan, and run. (3) What collection
finds in a lake with a long past (:mod:`long_lake`), all but the last days of which
is expired: our plan against DuckDB, on one core, which computes the same answer
from the same cache files and writes the same rows.

Everything runs in this process; each figure is the best of its rounds, in seconds
of CPU, with those by the wall beside them: the machine may be busy.
"""

import argparse
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import long_lake
from desilt.cache.metaranges import Lists
from desilt.domain.expiration import Node, Ref, after, expire
from desilt.domain.expiry import Expiry
from desilt.domain.history import Commit, new_commit
from desilt.domain.run import Run
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.collect.unreached import divide
from desilt.jobs.expire import job as expiration
from desilt.jobs.job import Mark, Work
from desilt.jobs.runner import plan, run
from desilt.lake import Lake, LakeRepository, commits
from desilt.lake.lake import locate
from desilt.sweep.limits import Limits
from lifecycle import addresses, asking, best, objects, peak_mb, reopened, timed
from long_lake import DAY, START
from machine import keep
from runs import resident_mb

SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
AT_ONCE = collection.job.ask(unreached_for=timedelta(0))
BRANCHES = 100
HOUR = timedelta(hours=1)
YOUNG = 7  # days that stay, of a long past


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", default="1000,10000,100000")
    parser.add_argument("--days", default="30,300,3000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(
        f"{'commits':>9}{'decide':>10}{'the seed':>10}{'times':>9}{'plan':>10}{'run':>10}{'grew':>10}{'abandoned':>11}"
    )
    histories = [decided(int(count), options.rounds) for count in options.commits.split(",")]
    print(f"{'days':>9}{'entries':>12}{'mark':>10}{'DuckDB':>10}{'times':>9}{'objects':>10}{'commits':>9}")
    lakes = [collected(int(days), options.rounds) for days in options.days.split(",")]
    keep("expiration", {"histories": histories, "lakes": lakes, "branches": BRANCHES, "rounds": options.rounds})


def decided(count: int, rounds: int) -> dict[str, Any]:
    """A history of so many commits, one an hour, half of which expires."""
    made, heads = history(count)
    nodes = {commit.id: Node(commit.id, commit.parents, commit.created_at) for commit in made}
    refs = [Ref("branch", name, head) for name, head in heads.items()]
    before = START + count // 2 * HOUR
    ours, theirs = [], []
    for _ in range(rounds):
        took, found = timed(lambda: expire(nodes, refs, before=before))
        ours.append(took)
        took, expected = timed(lambda: seed(nodes, refs, before))
        theirs.append(took)
        assert after(nodes, found) == expected
    row: dict[str, Any] = {"commits": count, "abandoned": len(found.abandoned), "edits": len(found.edits)}
    row |= {"decide": best(ours), "seed": best(theirs)}
    row |= on_a_lake(made, heads, before)
    row["times_seed"] = round(row["seed"]["cpu"] / row["decide"]["cpu"], 1)
    print(
        f"{count:>9,}{row['decide']['cpu']:>8.2f} s{row['seed']['cpu']:>8.2f} s{row['times_seed']:>8.1f}×"
        f"{row['plan']['cpu']:>8.2f} s{row['run']['cpu']:>8.2f} s{row['grew_mb']:>7,} MB{row['abandoned']:>11,}"
    )
    return row


def history(count: int) -> tuple[list[Commit], dict[str, str]]:
    """Branches that leave main, are committed to, and come back; the last of each is a head."""
    chance = random.Random(count)
    made = [commit([], 0)]
    heads = {"main": made[0]}
    for number in range(1, count):
        name = chance.choice(["main", f"b-{chance.randrange(BRANCHES - 1):02d}"])
        tip = heads.get(name) if chance.random() > 0.02 else None
        parents = [tip or heads["main"]]
        if name == "main" and chance.random() < 0.1:
            other = chance.choice(list(heads.values()))
            parents += [other] if other.id != parents[0].id else []
        made.append(commit(parents, number))
        heads[name] = made[-1]
    return made, {name: head.id for name, head in heads.items()}


def commit(parents: list[Commit], number: int) -> Commit:
    at = START + number * HOUR
    return new_commit(parents=parents, metarange="", created_at=at, committer="", message=str(number), metadata={})


def seed(nodes: dict[str, Node], refs: list[Ref], before: datetime) -> dict[str, Node]:
    """As the seed writes it, for histories with merges: ref by ref, all of what each descends from."""
    edited = dict(nodes)
    for ref in refs:
        if edited[ref.target].created_at < before:
            continue
        ancestry, waiting = {ref.target}, [ref.target]
        while waiting:
            for parent in edited[waiting.pop()].parents:
                if parent not in ancestry:
                    ancestry.add(parent)
                    waiting.append(parent)
        (root,) = (name for name in ancestry if not edited[name].parents)
        for name in ancestry:
            node = edited[name]
            if node.created_at >= before and any(edited[up].created_at < before for up in node.parents):
                kept = (up if edited[up].created_at >= before else root for up in node.parents)
                edited[name] = replace(node, parents=tuple(dict.fromkeys(kept)))
    return edited


def on_a_lake(made: list[Commit], heads: dict[str, str], before: datetime) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        lake = Lake.create(locate(f"{directory}/lake"))
        repo = lake.create_repository("bench", clock_at=START - DAY)
        first = repo.resolve("main").commit.id
        with repo.database.write() as tx:
            for one in made:
                parents = one.parents or (first,)
                commits.insert(tx, repo.uid, replace(one, parents=parents, generation=one.generation + 1))
        known = {one.id: one for one in made}
        for name, head in heads.items():
            if name != "main":
                repo.create_branch(name, "main")
            long_lake.point(repo, name, known[head])
        repo.set_clock(made[-1].created_at + HOUR)
        ask, memory = expiration.job.ask(wish=Expiry(before)), resident_mb()
        planned, _ = timed(lambda: plan(expiration.job, repo, HERE, ask))
        ran, reports = timed(lambda: run(expiration.job, repo, HERE, ask, SURE))
        assert reports[-1].history["edited"] > 0
        lake.close()
        return {"plan": planned, "run": ran, "grew_mb": round(peak_mb() - memory)}


def collected(days: int, rounds: int) -> dict[str, Any]:
    """A long past, of which the last days stay, and what stands at old branches."""
    with tempfile.TemporaryDirectory() as directory:
        repo = long_lake.make(Path(directory), days)
        run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(repo.clock() - YOUNG * DAY)), SURE)
        for branch in repo.branches():
            if branch.name != "main":
                repo.delete_branch(branch.name)
        plan(collection.job, repo, HERE, AT_ONCE)  # decodes every range, once
        ask = alternative(repo, Path(directory))
        ours, theirs = [], []
        for _ in range(rounds):
            took, answer = timed(lambda: marked(repo))
            ours.append(took)
            theirs.append(timed(ask)[0])
            found = addresses(*objects(repo, answer))
            assert found == addresses(f"{directory}/plan.parquet") != set()
        row: dict[str, Any] = {
            "days": days,
            "commits": answer.figures.history["commits collected"],
            "entries": sum(one.count for one in lists(repo).ranges.values()),
            "objects": len(found),
            "mark": best(ours),
            "duckdb": best(theirs),
            "stages": dict(answer.figures.seconds),
        }
        row["times_duckdb"] = round(row["mark"]["cpu"] / row["duckdb"]["cpu"], 2)
        print(
            f"{days:>9,}{row['entries']:>12,}{row['mark']['cpu']:>8.2f} s{row['duckdb']['cpu']:>8.2f} s"
            f"{row['times_duckdb']:>8.2f}×{row['objects']:>10,}{row['commits']:>9,}"
        )
        return row


def marked(repo: LakeRepository) -> Mark:
    with reopened(repo) as again:
        opened = Run("00000000000000-00000000", "collect", again.clock())
        return collection.mark(Work(opened, again, again.source(HERE), HERE, AT_ONCE))


def lists(repo: LakeRepository) -> Lists:
    source = repo.source(HERE)
    return source.lists(source.snapshot(repo.clock()).commits.values())


def alternative(repo: LakeRepository, directory: Path) -> Callable[[], None]:
    """The same answer by DuckDB: objects all of whose entries only dead commits have."""
    source, there = repo.source(HERE), set(lists(repo).ranges) | set(lists(repo).of)
    divided = divide(source.snapshot(repo.clock()), source, there, repo.clock() - repo.grace, set())
    files = collection.entries_of(source, divided)
    root = repo.store.root  # type: ignore[attr-defined]
    owners = [(f"{root}/{one.file.key}", owner, owner in one.dead) for one in files for owner in (*one.live, *one.dead)]
    paths, numbers, dead = (list(column) for column in zip(*owners, strict=True))
    table = {"filename": paths, "owner": pa.array(numbers, pa.int32()), "dead": dead}
    pq.write_table(pa.table(table), directory / "owners.parquet")
    question = f"""COPY (SELECT address, max(size_bytes) AS size_bytes, max(created_at) AS created_at,
            'remove' AS verdict, 'collected' AS reason, list(DISTINCT path) AS paths
        FROM read_parquet({sorted(set(paths))}, filename = true, binary_as_string = true) e
        JOIN '{directory}/owners.parquet' o USING (filename, owner)
        GROUP BY address HAVING bool_and(dead))
        TO '{directory}/plan.parquet' (FORMAT parquet)"""
    return asking(question)


if __name__ == "__main__":
    main()
