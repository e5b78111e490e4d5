"""A lake in a bucket of the real S3 server with its database in PostgreSQL, and something to remove by every job.

lake = filled(Lake.create(...).create_repository("demo", clock_at=START))
lake.sweep("collect", executor)     # the report; what went is what had to, and nothing else did
"""

from datetime import UTC, datetime, timedelta

from desilt.domain.policy import parse
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import run
from desilt.sweep.limits import Limits
from words import collecting, days, read, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
ALL = Limits(confirm=True, max_share=1.0)
LOGS = parse({"logs": {"prefix": "logs/", "days": 7}})
JOBS = ("gc", "lifecycle", "collect")


class LakeInABucket:
    """One repository; ``goes`` are the addresses that each job has to remove, ``stays`` what none may touch."""

    def __init__(self, repo, count, batch):
        self.repo, self.entries = repo, {}
        repo.store.delete_batch = batch  # so that there are many
        self.data = {f"data/{number}": f"kept {number}" for number in range(5)}
        self.stays = {self.put("main", path, text) for path, text in self.data.items()}
        repo.commit("main", "data")
        repo.create_branch("gone", "main")
        goes = {"lifecycle": {self.put("main", f"logs/{number}") for number in range(count)}}
        repo.commit("main", "old logs")
        goes["collect"] = {self.put("gone", f"only/there/{number}") for number in range(count)}
        repo.commit("gone", "what only this branch had")
        repo.delete_branch("gone")
        goes["gc"] = {self.put("main", f"tmp/{number}") for number in range(count)}
        repo.reset("main")
        days(repo, 30)
        self.data["logs/new"], self.data["staged"] = "young", "staged"
        self.stays |= {self.put("main", "logs/new", "young")}
        repo.commit("main", "new")
        self.stays |= {self.put("main", "staged", "staged")}
        self.goes = goes

    def put(self, branch, path, text="x"):
        entry = self.repo.put(branch, path, text.encode())
        self.entries[entry.address] = entry
        return entry.address

    def sweep(self, job, executor=HERE, limits=ALL):
        """A run of a job; its report, once what is left was looked at."""
        before = stored(self.repo)
        report = run(*self.asked(job, executor), limits)[-1]
        went, done = before - stored(self.repo), report.swept
        assert went <= self.goes[job], f"{sorted(went - self.goes[job])} went, which was not to"
        assert done.asked == done.removed + done.gone + done.failed
        self.judge()
        return report

    def asked(self, job, executor):
        if job == "gc":
            return uncommitted.job, self.repo, executor, uncommitted.job.ask(dropped_for=timedelta(0))
        if job == "lifecycle":
            return lifecycle.job, self.repo, executor, lifecycle.job.ask(policy=LOGS, dropped_for=timedelta(0))
        return collection.job, self.repo, executor, collecting(older_than=timedelta(days=7), dropped_for=timedelta(0))

    def left(self, job):
        """What a job had to remove, and is there."""
        return self.goes[job] & stored(self.repo)

    def judge(self):
        """All that somebody may read is there."""
        assert self.stays <= stored(self.repo)
        assert {path: read(self.repo, "main", path) for path in self.data} == self.data
