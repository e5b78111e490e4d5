"""Databases of every kind: what is promised of one holds for all."""

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def new_url(request, tmp_path):
    """A function that gives the URL of an empty database each time it is called."""
    if request.param == "postgres":
        return request.getfixturevalue("fresh_postgres_url")
    numbers = iter(range(1, 100))
    return lambda: f"sqlite://{tmp_path}/lake{next(numbers)}.db"


@pytest.fixture
def database_url(new_url):
    return new_url()
