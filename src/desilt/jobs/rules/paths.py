"""Whether a repository has, or ever had, a path that begins so or fits a glob."""

from fnmatch import fnmatchcase

from desilt.domain.cutoffs import WILDCARD
from desilt.repository.source import Source


def has_path(source: Source, prefix: str) -> bool:
    """Whether any path begins with ``prefix``."""
    return any(True for _ in source.paths(prefix))


def has_glob(source: Source, glob: str) -> bool:
    """Whether any path fits ``glob``, in which ``*`` crosses slashes too."""
    return any(fnmatchcase(path, glob) for path in source.paths(WILDCARD.split(glob, maxsplit=1)[0]))
