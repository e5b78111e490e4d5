"""What desilt itself has written and needs no longer: folders of old runs, caches that are of no use any more.

Losing one of these loses no data; but a run that cannot find what the last one left
to it stops. So none goes that a watermark names, that is not over, that has
something in the trash, or that guards compare the next plan with.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from desilt.clock import elapsed
from desilt.domain.run import FOLDER, ID
from desilt.errors import OutsidePrefix
from desilt.records import ledger, locks, watermarks
from desilt.records import removals as tombstones
from desilt.records.removals import MARKS, State
from desilt.repository.protocol import Repository
from desilt.runs.plan import Plan
from desilt.runs.steps import TidyFiles
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure
from desilt.sweep.sweep import Sweep

KEPT_FOR = (State.TRASHED, State.RESTORING, State.CONDEMNED, State.FAILED, *MARKS)
HEX = "[0-9a-f]"
OWN = re.compile(
    rf"_desilt/(runs/[a-z][a-z0-9]*/{ID.pattern}/|ranges/{HEX}{{32}}\.(json|parquet)|metaranges/{HEX}{{64}}\.json|staging/{HEX}{{64}}"
    rf"|removed/({ID.pattern}|\d+-runs)(\.{HEX}{{64}}\.json|-\d{{4,}}-{HEX}{{8}}\.parquet))"
)


def needed(repository: Repository, runs: Sequence[str]) -> set[str]:
    """Those of some ``runs`` whose folders somebody may still look into."""
    with repository.records.read() as tx:
        saved = watermarks.every(tx, repository.uid)
        found = tombstones.runs_in(tx, repository.uid, *KEPT_FOR, of=runs)
        found |= {row.id for row in ledger.sweeping(tx, repository.uid)} | ledger.newest(tx, repository.uid)
    found |= {match[0] for run, value in saved for match in ID.finditer(f"{run} {json.dumps(value)}")}
    return found & set(runs)


def tidy(sweep: Sweep, step: TidyFiles) -> None:
    """Remove what ``step`` names and nobody needs by now. What fails is found again by the next run."""
    repository, plan = sweep.repository, sweep.plan

    def look() -> None:
        with repository.records.write() as tx:
            locks.check(tx, sweep.lock)

    look()
    folders = [name for group in step.files for name in group.keys if name.startswith(FOLDER)]
    sure, still = Sure(look, since=elapsed()), needed(repository, [run_of(name) for name in folders]) | {plan.run}
    budget = Budget(repository, sweep.per_second)
    for group in step.files:
        keys = _keys(repository, plan, group.keys, still)
        while some := list(islice(keys, repository.store.delete_batch)):
            for portion in budget.portions(some):
                sure.check()
                repository.store.delete_many(portion)


def run_of(folder: str) -> str:
    """The run whose folder it is."""
    return folder.rstrip("/").rpartition("/")[2]


def _keys(repository: Repository, plan: Plan, names: Sequence[str], still: set[str]) -> Iterator[str]:
    for name in names:
        match = OWN.fullmatch(name)
        if match is None:
            raise OutsidePrefix(plan.run, name)
        if not name.startswith(FOLDER):
            yield repository.prefix + name
        elif run_of(name) not in still:
            for batch in repository.store.list(repository.prefix + name):
                yield from batch["key"].to_pylist()
