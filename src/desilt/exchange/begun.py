"""What says that a place was begun to be copied to, from where, and what became of ids: small files beside the copy."""

import json
from collections.abc import Mapping
from pathlib import Path

from desilt.errors import BadRequest, NotFound, Unreadable
from desilt.exchange.side import Partner
from desilt.objects.local import LocalStore
from desilt.objects.store import ObjectStore

MARKER = "_desilt/copied-from.json"
IDS = "_desilt/commit-ids.json"
THE_SERVERS_OWN = ("dummy", "_lakefs/dummy")  # what it puts into a new repository


def read(store: ObjectStore, prefix: str) -> dict[str, str] | None:
    """What was noted when the copy was begun; None where none was."""
    try:
        found = json.loads(store.get(prefix + MARKER))
    except NotFound:
        return None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreadable(f"{prefix}{MARKER} is not what desilt writes; see who did, and choose another place")
    return {str(name): str(value) for name, value in found.items()}


def note(store: ObjectStore, prefix: str, said: Mapping[str, str]) -> None:
    body = json.dumps(said, indent=2).encode()
    if not store.put_new(prefix + MARKER, body) and read(store, prefix) != said:
        raise BadRequest(f"somebody else has just begun to copy to {store.uri}; choose another place")


def check_empty(store: ObjectStore, prefix: str) -> None:
    """Refuse a place in which anything lies."""
    if isinstance(store, LocalStore) and not Path(store.root).is_dir():
        return
    for batch in store.list(prefix):
        for key in batch["key"].to_pylist():
            if key.removeprefix(prefix) not in THE_SERVERS_OWN:
                raise BadRequest(f"{store.uri} is not empty (it has {key}); choose a place of its own for the copy")


def write_ids(side: Partner, ids: Mapping[str, str]) -> str:
    """Where it is written which commit has which id now; "" where all have their own."""
    other = {old: new for old, new in ids.items() if old != new}
    if not other:
        return ""
    side.store.put(side.prefix + IDS, [json.dumps(other, indent=1, sort_keys=True).encode()])
    return f"{side.store.uri.partition('?')[0].rstrip('/')}/{side.prefix}{IDS}"
