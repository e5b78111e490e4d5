"""Object stores behind one small protocol."""

from desilt.objects.opening import open_store
from desilt.objects.store import LISTING, ObjectInfo, ObjectStore

__all__ = ["LISTING", "ObjectInfo", "ObjectStore", "open_store"]
