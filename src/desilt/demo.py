"""A small lake with a past: what a week of work leaves behind, in a few seconds."""

import random
from collections.abc import Callable

from desilt.lake.repository import Repository

DAYS = ("monday", "tuesday", "wednesday")
Say = Callable[[str], None]


def build(repository: Repository, say: Say) -> None:
    """Fill ``repository`` by the everyday moves that make garbage: overwrites, resets, deleted branches."""
    chance = random.Random(1998)

    def body(kilobytes: int) -> bytes:
        return chance.randbytes(kilobytes * 1000)

    say("three days of events and a model are committed to main")
    for day in DAYS:
        for part in range(4):
            repository.put("main", f"events/{day}/part-{part}.parquet", body(40))
    repository.put("main", "models/churn.bin", body(300), content_type="application/octet-stream")
    repository.commit("main", "Events and a first model", committer="ana")
    repository.create_tag("v1", "main")

    say("branch dev tries a new model three times; only the last try is committed")
    repository.create_branch("dev", "main")
    for _ in range(3):
        repository.put("dev", "models/churn.bin", body(310))
    repository.commit("dev", "A better model", committer="ben")

    say("main gets thursday's events meanwhile, and a copy of its table of contents")
    repository.put("main", "events/thursday/part-0.parquet", body(45))
    repository.copy("main", "events/thursday/part-0.parquet", "main", "latest/part-0.parquet")
    repository.commit("main", "Thursday", committer="ana")

    say("dev is merged into main")
    repository.merge("dev", "main", committer="ben")

    say("branch experiment uploads a lot, commits half of it, and is deleted")
    repository.create_branch("experiment", "main")
    for part in range(6):
        repository.put("experiment", f"scratch/{part}.tmp", body(120))
    repository.commit("experiment", "Half an idea", committer="eve")
    for part in range(6, 12):
        repository.put("experiment", f"scratch/{part}.tmp", body(120))
    repository.delete_branch("experiment", force=True)

    say("dev stages a failed import and resets it, then renames a file and stages another")
    for part in range(5):
        repository.put("dev", f"import/{part}.csv", body(80))
    repository.reset("dev", prefix="import/")
    repository.move("dev", "events/monday/part-0.parquet", "events/monday/first.parquet")
    repository.put("dev", "notes.txt", b"work in progress\n", content_type="text/plain")
