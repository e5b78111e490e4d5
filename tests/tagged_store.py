"""Tags and batch jobs of a store that has none: kept in memory beside a local one, as S3 keeps them.

tags = Tags(repo)                   # then: monkeypatch.setattr(type(repo.store), "tagging", tags)
tags.fails.add(repo.prefix + one)   # requests about this key fail, from here on
tags.tagged()                       # addresses that carry a tag
tags.expire()                       # the rule of the bucket comes by
"""

from desilt.errors import NotFound
from desilt.objects.batch_tagging import JobStatus
from desilt.objects.tags import TagOutcome, TagResult


class Tags:
    """The tags of each key; requests about keys that ``fails`` has are refused, and of ``loses`` the answer is lost."""

    def __init__(self, repo):
        self.repo, self.of, self.fails, self.loses = repo, {}, set(), set()

    def tag_many(self, keys, tag, *, between=lambda: None):
        def set_it(key):
            self.of.setdefault(key, {})[tag.key] = tag.value
            return TagResult.TAGGED

        return self._each(keys, set_it, between)

    def untag_many(self, keys, tag, *, between=lambda: None):
        def take_it_off(key):
            had = self.of.get(key, {}).pop(tag.key, None)
            return TagResult.BARE if had is None else TagResult.UNTAGGED

        return self._each(keys, take_it_off, between)

    def tagless(self, keys, *, between=lambda: None):
        return self._each(keys, lambda key: TagResult.TAGGED if self.of.get(key) else TagResult.BARE, between)

    def tagged(self):
        return {key.removeprefix(self.repo.prefix) for key, tags in self.of.items() if tags}

    def expire(self):
        """Whatever carries a tag goes; what that was."""
        gone = self.tagged()
        self.repo.store.delete_many([self.repo.prefix + one for one in gone])
        return gone

    def _each(self, keys, act, between):
        told = []
        for key in keys:
            between()
            if key in self.fails:
                told.append(TagOutcome(key, TagResult.FAILED, "SlowDown"))
            elif not self._is_there(key):
                told.append(TagOutcome(key, TagResult.GONE))
            else:
                done = TagOutcome(key, act(key))
                told.append(TagOutcome(key, TagResult.FAILED, "no answer") if key in self.loses else done)
        return told

    def _is_there(self, key):
        try:
            self.repo.store.head(key)
        except NotFound:
            return False
        return True


class Jobs:
    """Jobs of S3 Batch Operations: each tags its keys once somebody lets it :meth:`work`, or has looked at it twice.

    One that is cancelled is *Cancelling* at first, and its tasks that are under way end as they would have.
    """

    def __init__(self, tags):
        self.tags, self.made = tags, []

    def __call__(self, store, _account, _role):
        """What a run asks for jobs, in place of :class:`~desilt.objects.batch_tagging.BatchJobs`."""
        self.store = store
        return self

    def write_manifest(self, key, keys):
        self.store.put(key, ["".join(f"{one}\n" for one in keys).encode()])
        return f"etag of {key}"

    def create(self, manifest, etag, tag, report, token):
        asked = (manifest, etag, tag, report)
        for number, job in enumerate(self.made):
            if job["token"] == token:
                assert job["asked"] == asked, "S3 refuses a token that made another job"
                return str(number)
        keys = self.store.get(manifest).decode().splitlines()
        self.made.append({"token": token, "asked": asked, "keys": keys, "tag": tag, "state": "Active", "looks": 0})
        return str(len(self.made) - 1)

    def status(self, name):
        job = self.made[int(name)]
        job["looks"] += 1
        if job["looks"] > 1:
            self._end(job)
        return JobStatus(job["state"])

    def cancel(self, name):
        job = self.made[int(name)]
        if job["state"] == "Active":
            job["state"] = "Cancelling"

    def results(self, _report, name):
        keys = self.made[int(name)]["keys"]
        return (TagOutcome(key, TagResult.TAGGED) for key in keys)

    def work(self):
        """The store goes on with whatever jobs it has."""
        for job in self.made:
            self._end(job)

    def _end(self, job):
        if job["state"] in ("Active", "Cancelling"):
            self.tags.tag_many(job["keys"], job["tag"])
            job["state"] = "Complete" if job["state"] == "Active" else "Cancelled"
