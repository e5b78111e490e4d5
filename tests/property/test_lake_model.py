"""Random histories, run on the lake and on a few dicts; both must tell the same story."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    run_state_machine_as_test,
)

from lake_model import LakeModel


def run(examples, steps):
    run_state_machine_as_test(
        LakeModel,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_lake_agrees_with_a_model_of_dicts():
    run(examples=20, steps=40)


@pytest.mark.slow
def test_the_lake_agrees_with_a_model_of_dicts_for_long():
    run(examples=300, steps=80)


def test_the_lake_on_postgresql_agrees_too(fresh_postgres_url, monkeypatch):
    monkeypatch.setattr(LakeModel, "database_url", staticmethod(fresh_postgres_url))
    run(examples=6, steps=30)
