"""Edits of Icechunk repositories in a bucket, where the store compares: somebody commits right before each write."""

import uuid

import pytest

pytest.importorskip("icechunk", reason="desilt[icechunk] is not installed: nothing of Icechunk is tested")

from desilt.domain.expiry import Expiry
from desilt.executors.executor import HERE
from desilt.jobs.expire import job as expiration
from desilt.jobs.runner import run
from desilt.objects import open_store
from icechunk_editing import RESULTS, SURE, Sample, Watched, opened
from icechunk_world import FORMATS, WHERE_BOTH, WRITES_BOTH, World, icechunk


class BucketWorld(World):
    """The same in a bucket."""

    def __init__(self, place, version, server, name):
        self.place, self.version, self.uri = place, version, f"s3://{name}/some/where"
        self.bucket = {
            "bucket": name,
            "prefix": "some/where",
            "endpoint_url": server.endpoint,
            "access_key_id": server.access_key,
            "secret_access_key": server.secret_key,
            "region": "us-east-1",
            "allow_http": True,
            "force_path_style": True,
        }
        words = {"spec_version": version} if WRITES_BOTH else {}
        self.repo = icechunk.Repository.create(self._storage, **words)

    @property
    def root(self):
        return self.uri

    @property
    def _storage(self):
        return icechunk.s3_storage(**self.bucket)


@pytest.fixture(params=[1, 2], ids=["format 1", "format 2"])
def sample(request, place, s3_server, monkeypatch):
    if request.param not in FORMATS:
        pytest.skip(WHERE_BOTH)
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = f"edit{uuid.uuid4().hex[:8]}"
    s3_server.create_bucket(bucket)
    return Sample(BucketWorld(place, request.param, s3_server, bucket))


def test_a_commit_right_before_each_write_is_never_lost(sample):
    """In format 2 the store refuses what was decided on a file that is another by now; whatever is written has all."""
    mode, made = f"v{sample.world.version}", []

    def commits(_number, when):
        if when == "before" and len(made) < 3:
            made.append(15 + len(made))
            sample.world.reopen()
            sample.commit(made[-1], "main")

    watched = Watched(open_store(sample.world.uri), commits)
    repository = opened(sample.world.place, sample.world.uri, store=watched)
    ask = expiration.job.ask(wish=Expiry(sample.cut, mode=mode), sizes=False)
    run(expiration.job, repository, HERE, ask, SURE)
    assert made == [15, 16, 17]
    assert sample.lines() == {**RESULTS[mode], "main": f"17,16,15,{RESULTS[mode]['main']}"}
    assert watched.writes.count("repo") == (3 if mode == "v2" else 0)


def test_old_tags_and_branches_go_in_a_bucket_too(sample):
    sample.world.repo.create_branch("stale branch ü", sample.made[4])
    sample.world.repo.create_tag("a tag ü", sample.made[4])
    repository = opened(sample.world.place, sample.world.uri)
    wish = Expiry(sample.cut, delete_tags=True, delete_branches=True, mode=f"v{sample.world.version}")
    report = run(expiration.job, repository, HERE, expiration.job.ask(wish=wish, sizes=False), SURE)[-1]
    assert set(report.refs.values()) == {"deleted"}
    assert sample.lines() == {name: RESULTS["design"][name] for name in ("main", "develop", "test", "qa")}
