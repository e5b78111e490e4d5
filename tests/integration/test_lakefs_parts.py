"""Objects that were uploaded in parts: S3 dates them by when that began, so a date does not make them old."""

from datetime import timedelta

import pytest

from desilt.domain.reason import Reason
from desilt.lakefs import sightings
from lakefs_world import DAY, bucket_world

PARTS = [bytes(1 << 20)] * 17  # of 16 MiB
WHOLE = [b"whole"]


@pytest.fixture(scope="module")
def bucket(s3_server):
    return s3_server.create_bucket("lakefs-parts")


@pytest.fixture
def here(s3_server, bucket, tmp_path, monkeypatch):
    with bucket_world(s3_server, bucket, tmp_path, monkeypatch) as found:
        found.upload("main", "kept", b"1")
        found.subject.commit("main", "kept")
        yield found


def arrive(here, body):
    """An object that nothing points to, with the date and the name of now, and how it got there."""
    address = here.model.names.address()
    here.repository.store.put(address, body)
    return address


def run(here, **words):
    return here.api.gc.run(confirm=True, max_share=1, **words)


def test_what_came_in_parts_stays_until_a_listing_long_ago_had_it(here):
    whole, parts = arrive(here, WHOLE), arrive(here, PARTS)
    here.wait(3 * DAY)  # the upload of the second may have ended just now
    report = run(here)
    assert (report.swept.removed, report.keep[Reason.YOUNG].objects) == (1, 1)
    assert whole not in here.stored()
    assert "1 of the objects that are young were uploaded in parts" in report.notes[0]
    here.wait(DAY)
    assert run(here).swept.removed == 0
    assert parts in here.stored()
    here.wait(DAY)
    assert run(here).swept.removed == 1
    assert parts not in here.stored()


def test_what_is_staged_as_soon_as_its_upload_has_ended_is_never_removed(here):
    parts = arrive(here, PARTS)
    here.wait(3 * DAY)
    run(here)
    place = here.ask("GET")["storage_namespace"]
    told = {"physical_address": f"{place}/{parts}", "checksum": "1", "size_bytes": 17 << 20}
    here.ask("PUT", "branches", "main", "objects", body=told, path="late")
    here.wait(5 * DAY)
    assert run(here).swept.removed == 0
    assert parts in here.stored()


def test_explain_says_until_when_it_stays(here):
    parts = arrive(here, PARTS)
    here.wait(3 * DAY)
    assert here.api.explain(parts)[0].verdict == Reason.YOUNG
    run(here)
    seen = here.subject.now()
    here.wait(DAY)
    told = here.api.explain(parts)[0]
    assert (told.verdict, told.until) == (Reason.YOUNG, seen + DAY + timedelta(minutes=10))
    here.wait(DAY)
    assert here.api.explain(parts)[0].verdict == Reason.UNREFERENCED


def test_where_what_was_seen_is_damaged_all_is_seen_for_the_first_time(here):
    parts = arrive(here, PARTS)
    here.wait(3 * DAY)
    run(here)
    here.wait(3 * DAY)
    data = here.repository.store.get(sightings.FILE)
    here.repository.store.put(sightings.FILE, [data[:-1] + bytes([data[-1] ^ 1])])
    assert run(here).swept.removed == 0
    assert parts in here.stored()


def test_what_a_look_back_in_time_finds_old_enough_is_not(here):
    parts = arrive(here, PARTS)
    here.wait(3 * DAY)
    here.api.gc.plan()
    here.wait(DAY / 2)
    assert here.api.gc.plan(now=here.subject.now()).report.removed.objects == 0
    assert parts in here.stored()


def test_what_was_committed_once_has_ended_its_upload(here):
    parts = here.upload("main", "big", b"".join(PARTS))
    assert here.repository.store.parts.among([parts]) == {parts}
    here.commit("main", "big", here.subject.now())
    here.wait(DAY)
    here.upload("main", "big", b"smaller")
    here.commit("main", "smaller", here.subject.now())
    here.wait(30 * DAY)
    here.ask("PUT", "settings", "gc_rules", body={"default_retention_days": 5, "branches": []})
    report = run(here, rules="server")
    assert (report.swept.removed, report.action) == (1, "trash")
    assert parts not in here.stored()
