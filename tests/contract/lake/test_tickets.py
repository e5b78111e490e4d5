"""Uploads hold tickets: through us by the time in their name, from outside by a signed token."""

import dataclasses
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta

import pytest

from desilt.domain.ticket import sign
from desilt.errors import BadRequest, BadTicket, BranchMoved, InvalidPath, NotFound
from desilt.lake import tickets
from words import contents


def upload(repo, address, text="direct"):
    """What a direct uploader does: write to the address it was given."""
    repo.store.put(repo.prefix + address.ticket.address, [text.encode()])


def open_tickets(repo):
    with repo.database.read() as tx:
        return [ticket.address for ticket in tickets.open_at(tx, repo.uid, repo.clock())]


def test_a_direct_upload_is_linked_with_its_token(repo):
    address = repo.physical_address("main", "a")
    assert open_tickets(repo) == [address.ticket.address]
    assert address.uri.endswith(repo.prefix + address.ticket.address)
    upload(repo, address)
    entry = repo.link("main", "a", address.token, content_type="text/plain")
    assert contents(repo, "main") == {"a": "direct"}
    assert entry.size == 6
    assert repo.stat("main", "a") == entry
    assert open_tickets(repo) == []


def test_the_checksum_is_the_objects_own_unless_it_is_given(repo):
    first, second = repo.physical_address("main", "a"), repo.physical_address("main", "b")
    upload(repo, first, "hello")
    upload(repo, second, "hello")
    assert repo.link("main", "a", first.token).checksum == "5d41402abc4b2a76b9719d911017c592"
    assert repo.link("main", "b", second.token, checksum="mine").checksum == "mine"


def test_a_token_works_once(repo):
    address = repo.physical_address("main", "a")
    upload(repo, address)
    repo.link("main", "a", address.token)
    repo.remove("main", "a")
    with pytest.raises(BadTicket, match="used already"):
        repo.link("main", "a", address.token)
    assert contents(repo, "main") == {}


def test_a_token_expires(repo, clock):
    address = repo.physical_address("main", "a")
    upload(repo, address)
    clock.now += timedelta(hours=24)
    with pytest.raises(BadTicket, match="expired"):
        repo.link("main", "a", address.token)
    assert contents(repo, "main") == {}


def test_a_token_is_bound_to_its_path_branch_and_repository(lake, repo):
    repo.create_branch("dev", "main")
    other = lake.create_repository("other")
    address = repo.physical_address("main", "a")
    upload(repo, address)
    for link in (
        lambda: repo.link("main", "b", address.token),
        lambda: repo.link("dev", "a", address.token),
        lambda: other.link("main", "a", address.token),
    ):
        with pytest.raises(BadTicket):
            link()
    repo.link("main", "a", address.token)


def test_a_token_for_a_branch_that_was_made_anew_is_refused(repo):
    repo.create_branch("dev", "main")
    address = repo.physical_address("dev", "a")
    upload(repo, address)
    repo.delete_branch("dev")
    repo.create_branch("dev", "main")
    with pytest.raises(BadTicket, match="another branch"):
        repo.link("dev", "a", address.token)


def forgeries(address):
    said, mac = address.token.split(".")
    claims = json.loads(urlsafe_b64decode(said + "=" * (-len(said) % 4)))
    longer = urlsafe_b64encode(json.dumps(claims | {"expires_at": 2**60}).encode()).decode().rstrip("=")
    yield from (f"{longer}.{mac}", f"{said}.{mac[:-1]}A", f"{said}.", said, "", ".", "ä.ä", f"{said}.{mac}=")
    yield sign(address.ticket, "another secret")
    yield sign(dataclasses.replace(address.ticket, path="b"), "")


def test_an_altered_or_foreign_token_is_refused(repo):
    address = repo.physical_address("main", "a")
    upload(repo, address)
    for forged in forgeries(address):
        if forged != address.token:
            with pytest.raises(BadTicket):
                repo.link("main", "a", forged)
    assert contents(repo, "main") == {}
    repo.link("main", "a", address.token)


def test_a_token_without_an_object_can_be_linked_later(repo):
    address = repo.physical_address("main", "a")
    with pytest.raises(BadTicket, match="no object"):
        repo.link("main", "a", address.token)
    upload(repo, address)
    repo.link("main", "a", address.token)


def test_an_address_is_only_given_for_a_path_and_a_branch_that_can_be(repo):
    with pytest.raises(InvalidPath):
        repo.physical_address("main", "")
    with pytest.raises(NotFound):
        repo.physical_address("nosuch", "a")


def test_a_slow_upload_renews_its_ticket_and_lives(repo, clock):
    def body():
        for _ in range(5):
            clock.now += timedelta(hours=20)
            yield b"slow "

    repo.put("main", "a", body())
    assert contents(repo, "main") == {"a": "slow slow slow slow slow "}
    assert open_tickets(repo) == []


def test_an_upload_that_stalls_past_its_ticket_fails_loudly(repo, clock):
    def body():
        yield b"x"
        clock.now += timedelta(hours=25)

    with pytest.raises(BadTicket, match="expired"):
        repo.put("main", "a", body())
    assert contents(repo, "main") == {}


def test_a_renewal_does_not_revive_a_ticket_that_has_expired(repo, clock):
    def body():
        yield b"x"
        clock.now += timedelta(hours=30)
        yield b"y"
        raise AssertionError("went on after its ticket expired")

    with pytest.raises(BadTicket, match="expired"):
        repo.put("main", "a", body())


def test_an_upload_whose_branch_is_deleted_meanwhile_fails_loudly(repo):
    repo.create_branch("dev", "main")

    def body():
        yield b"x"
        repo.delete_branch("dev")

    with pytest.raises((NotFound, BranchMoved)):
        repo.put("dev", "a", body())


def test_objects_elsewhere_are_staged_by_their_whole_address(repo):
    entry = repo.stage("main", "a", "s3://elsewhere/key", size=3, checksum="x")
    repo.commit("main", "outside")
    assert repo.stat("main", "a") == entry
    with pytest.raises(BadRequest, match="outside"):
        repo.get("main", "a")


def test_no_address_inside_the_lake_can_be_staged_however_it_is_spelled(repo):
    inside = repo.put("main", "a", b"x").address
    root = repo.core.store.uri.partition("?")[0]
    for spelled in (
        f"{root}/{repo.prefix}{inside}",
        f"{root}//{repo.prefix}{inside}",
        f"{root}/./x/../{repo.prefix}{inside}",
        f"{root}/{repo.prefix}{inside}".replace("memory:", "MEMORY:"),
        f"{root}/{repo.prefix}{inside}".replace("repos", "%72epos"),
        f"{root}/{repo.prefix}{inside}".replace("repos", "%2572epos"),
        f"{root}/{repo.prefix}{inside}?version=1",
        f"{root}/repos/another/branches/b/p/o",
        root,
    ):
        with pytest.raises(BadRequest, match="inside"):
            repo.stage("main", "b", spelled, size=1, checksum="x")
    for not_whole in (inside, "", "/some/x", "key"):
        with pytest.raises(BadRequest):
            repo.stage("main", "b", not_whole, size=1, checksum="x")
    assert contents(repo, "main") == {"a": "x"}
