"""Lifecycle on active commits only: what that would save, and what a collection before it saves.

    python benchmarks/active.py [--days 300] [--shares 10,50,90] [--rounds 3]

A lake with a long past (:mod:`long_lake`) on one branch is run once. History is
expired, so that a share of its commits is reached by nothing; one more day is
committed. That day is planned with all commits there, and again once a collection
has taken those that nothing reaches: so much would a run cost that read active
commits only. Before either, the range cache is made anew, so that both read as few files.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import long_lake
from desilt.cache.ranges import FOLDER as CACHE
from desilt.domain.expiry import Expiry
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import run
from desilt.lake import LakeRepository
from lifecycle import POLICY, SURE, best, planned, timed
from long_lake import DAY, START
from machine import keep


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--shares", default="10,50,90")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    columns = (
        "commits",
        "active",
        "entries",
        "active",
        "incremental",
        "active",
        "saved",
        "full",
        "active",
        "saved",
        "collection",
    )
    print(f"{'unreached':>10}" + "".join(f"{column:>12}" for column in columns))
    rows = []
    for share in map(int, options.shares.split(",")):
        row = measure(options.days, share, options.rounds)
        rows.append(row)
        before, after = row["all"], row["active"]
        print(
            f"{share:>8} %"
            + "".join(f"{side[of]:>12,}" for of in ("commits", "entries") for side in (before, after))
            + "".join(
                f"{before[side]['cpu']:>10.2f} s{after[side]['cpu']:>10.2f} s{row['saved'][side]:>11.0%}"
                for side in ("incremental", "full")
            )
            + f"{row['collection']['cpu']:>10.2f} s"
        )
    keep("active", {"rows": rows, "days": options.days, "rounds": options.rounds})


def measure(days: int, share: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        repo = long_lake.make(Path(directory), days)
        for branch in repo.branches():
            if branch.name != "main":
                repo.delete_branch(branch.name)
        run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY), SURE)
        wish = Expiry(START + days * share // 100 * DAY)
        run(expiration.job, repo, HERE, expiration.job.ask(wish=wish), SURE)
        run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY), SURE)
        long_lake.add(repo, range(days, days + 1))
        repo.set_clock(repo.clock() + DAY)
        row: dict[str, Any] = {"unreached": share, "all": plans(repo, rounds)}
        row["collection"], _ = timed(
            lambda: run(collection.job, repo, HERE, collection.job.ask(unreached_for=0 * DAY), SURE)
        )
        row["active"] = plans(repo, rounds)
        row["saved"] = {
            side: round(1 - row["active"][side]["cpu"] / row["all"][side]["cpu"], 2) for side in ("incremental", "full")
        }
        return row


def plans(repo: LakeRepository, rounds: int) -> dict[str, Any]:
    """The day's plan, from where the last run ended and in full; from a cache that was made for these commits alone."""
    cached = [key for batch in repo.store.list(repo.prefix + CACHE) for key in batch["key"].to_pylist()]
    repo.store.delete_many(cached)
    report = planned(repo, full=True)
    found: dict[str, Any] = {"entries": report.inputs["entries"], "commits": report.inputs["commits"]}
    for side in ("incremental", "full"):
        found[side] = best([timed(partial(planned, repo, full=side == "full"))[0] for _ in range(rounds)])
    return found


if __name__ == "__main__":
    main()
