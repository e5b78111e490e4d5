"""A process that does pieces of work: one after the other from its standard input, each answered on its output.

It is started, never forked, and imports nothing of whoever started it but what a piece names. It ends with its input,
in the middle of a piece if need be: whoever started it is gone then. Ctrl-C is for that one to deal with.
"""

import os
import pickle
import select
import signal
import sys
import threading
import traceback
from typing import BinaryIO

from desilt.errors import DesiltError

PROTOCOL = pickle.HIGHEST_PROTOCOL


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not print among the answers
    threading.Thread(target=end_with, args=(0,), daemon=True).start()
    serve(sys.stdin.buffer, answers)


def end_with(descriptor: int) -> None:
    """Wait until nobody can write there any more, and end."""
    waiting = select.poll()
    waiting.register(descriptor, 0)  # an end is told to whoever asks for nothing
    waiting.poll()
    os._exit(0)


def serve(asked: BinaryIO, answers: BinaryIO) -> None:
    while True:
        try:
            piece: bytes = pickle.load(asked)
        except EOFError:
            return
        try:
            answers.write(answered(piece))
            answers.flush()
        except BrokenPipeError:
            return  # nobody waits for it any more


def answered(piece: bytes) -> bytes:
    """What came of it: a result, an error of ours, or what is known of another. It can be sent, whatever it is."""
    try:
        work, item = pickle.loads(piece)
        return pickle.dumps(("done", work(item)), PROTOCOL)
    except DesiltError as error:
        return pickle.dumps(("raised", error), PROTOCOL)
    except Exception as error:
        return pickle.dumps(("failed", (f"{type(error).__name__}: {error}", traceback.format_exc())), PROTOCOL)
