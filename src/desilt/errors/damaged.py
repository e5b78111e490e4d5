"""Files that are not what was written, cut by where a sound one comes from."""

from collections.abc import Sequence

from desilt.errors.base import Unreadable

EXAMPLES = 3


class Damaged(Unreadable):
    """A file, by name; which kind of file says what to do about it."""

    code = "damaged"

    def __init__(self, name: str, reason: str, said: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(said)


class CorruptTable(Damaged):
    code = "corrupt-table"

    def __init__(self, name: str, reason: str) -> None:
        said = f"table {name} is corrupt: {reason}; restore this file from a copy, nothing was read from it"
        super().__init__(name, reason, said)


class MissingTable(CorruptTable):
    code = "missing-table"

    def __init__(self, name: str) -> None:
        super().__init__(name, "its file is missing")


class DamagedAsset(Damaged):
    """A snapshot, a manifest, a log or a ref of an Icechunk repository."""

    code = "damaged-asset"

    def __init__(self, name: str, reason: str, way_out: str = "restore this file from a copy") -> None:
        super().__init__(name, reason, f"{name} cannot be relied on: {reason}; {way_out}, nothing was read from it")


class MissingAsset(DamagedAsset):
    code = "missing-asset"

    def __init__(self, name: str) -> None:
        super().__init__(name, "the file is missing")


class UnknownAsset(DamagedAsset):
    """Nothing may be wrong with it: it is newer than we are, or was made by something else."""

    code = "unknown-asset"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason, "upgrade desilt")


class DamagedInventory(Damaged):
    code = "damaged-inventory"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason, f"inventory {name} is damaged: {reason}; take another, or leave --inventory out")


class DamagedRun(Damaged):
    """``reason`` goes on from the name: *is not what was planned*."""

    code = "damaged-run"

    def __init__(self, name: str, reason: str, way_out: str = "plan again") -> None:
        super().__init__(name, reason, f"{name} {reason}; {way_out}")


class DamagedWatermark(Damaged):
    code = "damaged-watermark"

    def __init__(self, name: str, reason: str) -> None:
        said = f"{name}, where the last run ended, cannot be read: {reason}; pass --full to look at everything again"
        super().__init__(name, reason, said)


class NotReadBack(Damaged):
    """What a run can make again: a cache, or a file that it has just written."""

    code = "not-read-back"

    def __init__(self, name: str, reason: str = "") -> None:
        super().__init__(name, reason, f"{name} could not be read back{f': {reason}' if reason else ''}; run again")


class Dangling(Unreadable):
    """Files that something which stays needs, and the store does not list: a name may be damaged, or they are lost."""

    code = "dangling"

    def __init__(self, what: str, count: int, examples: Sequence[str], way_out: str = "") -> None:
        self.count, self.examples = count, tuple(sorted(examples)[:EXAMPLES])
        shown = ", ".join(self.examples) + (", …" if count > len(self.examples) else "")
        are = "is" if count == 1 else "are"
        super().__init__(
            f"{count:,} of the {what} that are needed {are} not in the store's listing ({shown}); nothing was removed, "
            f"for a damaged name makes garbage of what it stood for: see `desilt fsck`{way_out}"
        )
