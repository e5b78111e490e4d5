"""A repository given to a lakeFS server: made bare, and its refs restored from a dump."""

from typing import Any

from desilt.errors import AlreadyExists, DesiltError, NotFound
from desilt.lakefs.calls import Absent, Call, Calls, segment
from desilt.lakefs.server import CONFIG, DumpedRefs
from desilt.lakefs.settings import Settings

CREATE = Call("make a repository", "fs:CreateRepository and fs:AttachStorageNamespace")
BRANCHES = Call("list branches and tags", "fs:ListBranches and fs:ListTags")
RESTORE = Call("restore refs", "fs:CreateBranch, fs:CreateTag and fs:CreateCommit")


class Receiver:
    """One repository of a server, before it has any history."""

    def __init__(self, settings: Settings) -> None:
        self._calls, self.name = Calls(settings), settings.repository
        self._path = f"/repositories/{segment(settings.repository)}"

    def is_there(self) -> bool:
        try:
            self._calls.json(CREATE, "GET", self._path)
        except (Absent, NotFound):
            return False
        return True

    def is_bare(self) -> bool:
        """Whether it has neither branches nor tags."""
        return not any(self._listed(kind) for kind in ("branches", "tags"))

    def usual_namespace(self) -> str:
        """Where the server would put a repository of this name; "" where it does not say."""
        told = self._calls.json(CONFIG, "GET", "/config").get("storage_config")
        prefix = told.get("default_namespace_prefix") if isinstance(told, dict) else None
        if not isinstance(prefix, str) or not prefix:
            return ""
        return f"{prefix if prefix.endswith('/') else prefix + '/'}{self.name}"

    def create(self, namespace: str, default_branch: str) -> None:
        body = {"name": self.name, "storage_namespace": namespace, "default_branch": default_branch}
        try:
            self._calls.json(CREATE, "POST", "/repositories", query={"bare": "true"}, body=body)
        except DesiltError:
            if not (self.is_there() and self.is_bare()):  # else the answer to a first try was lost
                raise

    def restore(self, refs: DumpedRefs) -> None:
        """Commits, branches and tags as they are dumped; the repository must have none."""
        body = {
            "commits_meta_range_id": refs.commits,
            "branches_meta_range_id": refs.branches,
            "tags_meta_range_id": refs.tags,
        }
        if not self.is_bare():
            raise AlreadyExists("history of repository", self.name, "give another name")
        try:
            self._calls.raw(RESTORE, "PUT", f"{self._path}/refs/restore", body=body)
        except Absent as absent:
            raise self._calls.failed(RESTORE, f"said {absent.status}: {absent.message!r}") from None

    def _listed(self, kind: str) -> list[Any]:
        try:
            told = self._calls.json(BRANCHES, "GET", f"{self._path}/{kind}", query={"amount": "1"})
        except Absent as absent:
            raise self._calls.failed(BRANCHES, f"said {absent.status}: {absent.message!r}") from None
        rows = told.get("results")
        if not isinstance(rows, list):
            raise self._calls.failed(BRANCHES, "left results out of its answer")
        return rows
