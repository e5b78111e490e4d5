"""Object stores behind one small protocol."""

from desilt.objects.opening import open_store
from desilt.objects.store import LISTING, ObjectInfo, ObjectStore, Outcome, Result

__all__ = ["LISTING", "ObjectInfo", "ObjectStore", "Outcome", "Result", "open_store"]
