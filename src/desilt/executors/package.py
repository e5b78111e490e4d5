"""This very desilt: by what it is known, and as a file that can be sent to a machine that lacks it."""

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

NAME = "desilt"
LEFT_OUT = "__pycache__"
ABOUT = ("METADATA", "entry_points.txt")  # its version, and the jobs that plug in


@dataclass(frozen=True, slots=True)
class Package:
    """A desilt: its version, and what its modules come to. Two that are the same do the same."""

    version: str
    modules: str

    def __str__(self) -> str:
        return f"{NAME} {self.version} ({self.modules[:8]})"


@cache
def this() -> Package:
    """The desilt of this process, installed, beside its source or in an archive."""
    found = hashlib.sha256()
    for name, file in _inside(files(NAME), NAME):
        if name.endswith(".py"):
            found.update(f"{name}\n".encode())
            found.update(hashlib.sha256(file.read_bytes()).digest())
    return Package(_version(), found.hexdigest())


def archive(target: Path) -> Path:
    """All of it as a file that Python imports from, in ``target``."""
    path = target / f"{NAME}-{this().modules[:16]}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in _inside(files(NAME), NAME):
            packed.writestr(name, file.read_bytes())
        for name in ABOUT:
            if (text := _about(name)) is not None:
                packed.writestr(f"{NAME}-{_version()}.dist-info/{name}", text)
    return path


def _inside(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for inner in sorted(folder.iterdir(), key=lambda one: one.name):
        if inner.name == LEFT_OUT:
            continue
        path = f"{name}/{inner.name}"
        if inner.is_dir():
            yield from _inside(inner, path)
        else:
            yield path, inner


def _version() -> str:
    try:
        return distribution(NAME).version
    except PackageNotFoundError:
        return "of no version"


def _about(name: str) -> str | None:
    try:
        return distribution(NAME).read_text(name)
    except PackageNotFoundError:
        return None
