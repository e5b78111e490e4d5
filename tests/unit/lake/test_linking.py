"""Addresses inside the lake, reached through links of the file system."""

import pytest

from desilt.errors import BadRequest
from desilt.lake import Lake
from desilt.lake.lake import locate


def test_a_link_to_the_lake_is_the_lake(tmp_path):
    repo = Lake.create(locate(str(tmp_path / "real"))).create_repository("demo")
    inside = repo.put("main", "a", b"x").address
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for root in (tmp_path / "real", tmp_path / "link"):
        for form in (
            f"file://{root}",
            f"file://localhost{root}",
            f"FILE://LOCALHOST{root}",
            f"lake://{root}",
            "https://bucket.s3.amazonaws.com",
        ):
            with pytest.raises(BadRequest, match="inside"):
                repo.stage("main", "b", f"{form}/{repo.prefix}{inside}", size=1, checksum="x")
    repo.stage("main", "b", f"file://{tmp_path}/real-not/x", size=1, checksum="x")


def test_a_lake_opened_through_a_link_knows_its_real_place(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    repo = Lake.create(locate(str(tmp_path / "link"))).create_repository("demo")
    with pytest.raises(BadRequest, match="inside"):
        repo.stage("main", "b", f"file://{tmp_path}/real/x", size=1, checksum="x")
