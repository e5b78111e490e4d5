"""A database is named to others without its password, and found again by whoever knows it."""

import pickle
import traceback

import pytest

from desilt.errors import InvalidUri
from desilt.executors.piece import opened, parcel
from desilt.records import passwords
from desilt.records.database import open_database
from desilt.records.passwords import KNOWN, remember, with_password, without_password
from desilt.repository.handle import Access

PLAIN = "postgresql://ann@db.example:5433/lake?sslmode=require"
FULL = "postgresql://ann:open%20sesame@db.example:5433/lake?sslmode=require"


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setenv(KNOWN, "")
    monkeypatch.delenv("DESILT_DB", raising=False)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        (FULL, PLAIN),
        (PLAIN, PLAIN),
        ("postgresql://ann:a:b@c@host/lake", "postgresql://ann@host/lake"),
        ("postgresql:///lake?user=ann&password=sesame&host=h", "postgresql:///lake?user=ann&host=h"),
        ("postgresql:///lake?password=sesame", "postgresql:///lake"),
        ("postgresql://h/lake?sslpassword=s&sslkey=k", "postgresql://h/lake?sslkey=k"),
        ("postgresql://ann:p@one:1,two:2/lake", "postgresql://ann@one:1,two:2/lake"),
        ("postgresql://ann:open?sesame@db:1/lake?sslmode=require", "postgresql://ann@db:1/lake?sslmode=require"),
        ("postgresql://ann:open/sesame@db/lake", "postgresql://ann@db/lake"),
        ("postgresql://ann:open#sesame@db/lake", "postgresql://ann@db/lake"),
        ("postgresql:///lake?user=ann@corp&password=sesame", "postgresql:///lake?user=ann@corp"),
        ("postgresql://db?user=ann@corp&password=sesame", "postgresql://db?user=ann@corp"),
        ("postgresql://h/lake?pass%77ord=sesame", "postgresql://h/lake"),
        ("sqlite:///a:b@c?password=x", "sqlite:///a:b@c?password=x"),
    ],
)
def test_all_but_the_password_is_told(url, plain):
    assert without_password(url) == plain


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://ann:sesame@db/lake",
        "postgresq://ann:sesame@db/lake",
        "postgresql://ann:sesame%zz@db/lake",
        "postgresql://ann:sesame%00@db/lake",
        "postgresql://ann:sesame@[::1/lake",
        "postgresql://ann:sesame@[::1]x/lake",
        "postgresql://db/lake?password=sesame=",
    ],
)
def test_a_url_that_is_wrong_is_told_without_its_password(url):
    with pytest.raises(InvalidUri) as raised:
        open_database(url)
    assert "sesame" not in "".join(traceback.format_exception(raised.value))


def test_a_process_knows_what_it_opened_and_so_do_those_that_it_starts():
    remember(FULL)
    remember("postgresql://bob:other@h/lake")
    assert with_password(PLAIN) == FULL
    assert with_password("postgresql://bob@h/lake") == "postgresql://bob:other@h/lake"
    remember(FULL.replace("sesame", "barley"))  # it was changed
    assert "barley" in with_password(PLAIN)
    assert "sesame" not in passwords.os.environ[KNOWN]


def test_the_environment_of_a_worker_tells_it(monkeypatch):
    assert with_password(PLAIN) == PLAIN
    monkeypatch.setenv("DESILT_DB", FULL)
    assert with_password(PLAIN) == FULL
    assert with_password("postgresql://ann@elsewhere/lake") == "postgresql://ann@elsewhere/lake"


def test_what_is_sent_of_a_repository_has_no_password_in_it(repo, monkeypatch):
    monkeypatch.setattr(repo.database, "url", FULL)
    sent = parcel(len, [Access(repo)])
    _, _, (handle,) = opened(sent)
    assert handle.database == PLAIN
    assert b"sesame" not in pickle.dumps(handle)
