"""Files of text that a command is given."""

from typing import BinaryIO

from desilt.errors import BadRequest


def decoded(file: BinaryIO) -> str:
    """What it says."""
    raw = file.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{label(file)}:{line}: this is not UTF-8; save the file as UTF-8") from None


def label(file: BinaryIO) -> str:
    """What it is called."""
    name = getattr(file, "name", "-")
    return name if isinstance(name, str) and name not in ("-", "<stdin>") else "stdin"
