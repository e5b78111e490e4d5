"""Where `desilt` begins: soon there, so that Ctrl-C is answered with a line even while the rest is imported."""

import os
import signal
from types import FrameType


def main() -> None:
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is to be ignored
    if ours:
        signal.signal(signal.SIGINT, leave)
    try:
        from desilt.cli.main import main as begin

        begin()
    finally:
        if ours:  # all is said; what is left is to end Spark, and takes a moment
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave(_number: int, _frame: FrameType | None) -> None:
    """End at once: an import that is interrupted may make anything of an exception."""
    os.write(2, b"error: stopped; nothing was done yet\n")
    os._exit(130)


if __name__ == "__main__":
    main()
