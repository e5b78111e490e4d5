"""What stands between a verdict and a race is said first, wherever it is less than a transaction."""

import json
from datetime import UTC, datetime

import pytest

from desilt.lake import Lake
from desilt.lake.gate import LakeGate
from desilt.repository.gate import Safety
from desilt.runs.safety import TOLD, told

PLAN = ("expire", "plan")


@pytest.fixture
def uri(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    lake.create_repository("demo", clock_at=datetime(2026, 1, 1, tzinfo=UTC))
    lake.close()
    return f"{tmp_path}/lake#demo"


def page(uri):
    lake = Lake.open(uri)
    repo = lake.repository("demo")
    keys = [key for batch in repo.store.list(f"{repo.prefix}_desilt/runs/expire/") for key in batch["key"].to_pylist()]
    text = repo.store.get(next(key for key in keys if key.endswith("report.html"))).decode()
    lake.close()
    return text


def test_one_transaction_goes_without_saying_but_is_on_the_page_and_in_json(cli, uri):
    assert "Safety" not in cli(*PLAN, uri, "--older-than", "2025-12-01")[1]
    assert json.loads(cli(*PLAN, uri, "--older-than", "2025-12-01", "--json")[1])["safety"] == "atomic"
    head, _, _ = page(uri).partition("<main>")
    assert "<dt>Safety</dt>" in head


@pytest.mark.parametrize("level", [Safety.CONDITIONAL, Safety.GRACE])
def test_less_than_that_is_the_first_line(cli, uri, monkeypatch, level):
    monkeypatch.setattr(LakeGate, "safety", level)
    code, out, _ = cli(*PLAN, uri, "--older-than", "2025-12-01")
    assert code == 0
    assert out.splitlines()[0] == f"Safety: {level}: {TOLD[level]}."
    assert f"Safety: {level}." in page(uri)
    assert json.loads(cli("runs", "show", uri, "last", "--json")[1])["safety"] == level


def test_a_level_of_a_later_version_is_told_as_that():
    assert set(TOLD) == set(Safety)
    assert "not known" in told("quantum")
