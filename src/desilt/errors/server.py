"""What a lakeFS server says instead of an answer, cut by who can do something about it."""

from desilt.errors.base import DesiltError


class ServerFailed(DesiltError):
    """No answer, or none that can be relied on; what was asked for counts as not read."""

    code = "server-failed"

    def __init__(self, server: str, fact: str, way_out: str) -> None:
        self.server, self.fact = server, " ".join(fact.split())
        super().__init__(f"the lakeFS server at {server} {self.fact}; {way_out}")


class WrongKeys(ServerFailed):
    code = "wrong-keys"

    def __init__(self, server: str, key_id: str) -> None:
        self.key_id = key_id
        super().__init__(server, f"does not know the key {key_id!r} or its secret", "see `lakectl config`")


class MissingRight(ServerFailed):
    code = "missing-right"

    def __init__(self, server: str, key_id: str, doing: str, rights: str) -> None:
        self.key_id, self.rights = key_id, rights
        super().__init__(server, f"does not let the key {key_id!r} {doing}", f"it needs {rights}")


class ServerTooOld(ServerFailed):
    code = "server-too-old"

    def __init__(self, server: str, doing: str) -> None:
        super().__init__(server, f"has no way to {doing}", "upgrade it, or see whether its URL is right")
