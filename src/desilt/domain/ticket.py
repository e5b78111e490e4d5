"""The right to put one object at one address, and to link it at one path, once, until it expires.

The token is what a direct uploader carries: everything the ticket says, signed.
Whoever changes a byte of it, or brings it to another repository, is refused.
"""

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from datetime import timedelta

from desilt.errors import BadTicket

LIFE = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Ticket:
    """An address handed out for an upload."""

    repository: str
    branch: str  # its uid: a branch made again under the same name is another one
    path: str
    address: str
    expires_at: int  # microseconds since 1970


def sign(ticket: Ticket, secret: str) -> str:
    """``ticket`` as a token."""
    said = json.dumps(asdict(ticket), sort_keys=True).encode()
    return f"{_text(said)}.{_text(_mac(said, secret))}"


def verify(token: str, secret: str, *, path: str) -> Ticket:
    """The ticket that ``token`` is, if it was signed with ``secret``; ``path`` is for the message."""
    said, _, mac = token.partition(".")
    try:
        raw = _bytes(said)
        genuine = hmac.compare_digest(_bytes(mac), _mac(raw, secret))
    except (ValueError, binascii.Error):
        genuine = False
    if not genuine:
        raise BadTicket(path, "was altered, or comes from another repository")
    return Ticket(**json.loads(raw))


def _mac(said: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), said, hashlib.sha256)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _text(raw) != text:
        raise ValueError("not written as we write it")
    return raw
