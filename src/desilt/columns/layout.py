"""Where a repository's objects and tables lie, and what their names tell: the only thing that knows addresses.

By the column: an address, or a folder and a name, is never looked at one by one where
there may be millions. It is sent to executors, so it is small.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from desilt.columns.arrays import Flags, Seconds


class Layout(Protocol):
    """Addresses are below the repository's prefix; a folder ends with its slash.

    A *group* is what objects are uploaded to: a branch, by its uid. Its folders sort by
    time, the newest first; past a *boundary* among them, nothing new appears.
    """

    @property
    def data(self) -> str:
        """The folder that objects are in."""

    @property
    def tables(self) -> str:
        """The folder that ranges and metaranges are in."""

    def is_object(self, address: str) -> bool:
        """Whether one address is that of an object."""

    def is_table(self, address: str) -> bool:
        """Whether one address is that of a range or a metarange."""

    def objects(self, addresses: pa.Array) -> Flags:
        """Which addresses are those of objects: what a run may ever remove as one."""

    def tables_among(self, addresses: pa.Array) -> Flags:
        """Which are those of ranges or metaranges."""

    def ours(self, folders: pa.DictionaryArray, found: pa.Array) -> Flags:
        """The same as :meth:`objects`, of folders and the names found in them."""

    def seconds(self, found: pa.Array) -> Seconds:
        """The second in which each object's name was made, by what it says; -1 where it says nothing."""

    def address_seconds(self, addresses: pa.Array) -> Seconds:
        """The same of whole addresses of objects."""

    def named_at(self, address: str) -> datetime | None:
        """The same of one address."""

    def group_of(self, address: str) -> str:
        """The group of an object, by its address or its folder; "" where there is none."""

    def groups(self, addresses: pa.Array) -> pa.Array:
        """The groups of many addresses."""

    def group_folder(self, group: str) -> str:
        """The folder that all objects of a group are in."""

    def settled(self, folder: str, boundaries: Mapping[str, str]) -> bool:
        """Whether ``folder`` lies past the boundary of its group."""

    def boundary(self, at: datetime) -> str:
        """What every folder lies past that was closed to uploads at ``at``."""

    def after(self, folder_name: str) -> str:
        """The boundary right after a folder of uploads."""
