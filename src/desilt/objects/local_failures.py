"""What a disk's refusals mean."""

import errno

from desilt.errors import BadRequest, Conflict, DesiltError, NotFound, StorageFailed

ABSENT = (FileNotFoundError, NotADirectoryError)
FULL = {errno.ENOSPC, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def failure(uri: str, doing: str, key: str, error: OSError) -> DesiltError:
    """What the error means to whoever asked for ``key``."""
    where = f"{doing} {key!r} in {uri}"
    if doing not in ("writing", "moving") and (isinstance(error, ABSENT) or error.errno == errno.ELOOP):
        return NotFound("object", key)
    if isinstance(error, (FileExistsError, IsADirectoryError, NotADirectoryError)):
        return Conflict(f"{where} failed: on a disk a key cannot be both an object and a folder; use another key")
    if error.errno == errno.ENAMETOOLONG:
        return BadRequest(f"{where} failed: the name is too long for this file system; use a shorter key")
    if error.errno in FULL:
        return StorageFailed(f"{where} failed: the disk is full; free some space and try again, nothing was stored")
    if error.errno in FORBIDDEN:
        return StorageFailed(f"{where} failed: {error.strerror}; check the owner and mode of the directory")
    return StorageFailed(f"{where} failed: {error.strerror}; check the disk and try again")


def vanishing(folder: str) -> DesiltError:
    return StorageFailed(f"{folder} vanishes as soon as it is made; see who removes it, and try again")
