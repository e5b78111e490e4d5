"""The `desilt` of a script that :mod:`scripts` runs: asks the process there, or starts one of its own.

Started as ``python -IS passing_on.py FOLDER WORD…``; it imports little, to be soon done.
"""

import fcntl
import json
import os
import socket
import sys


def main(folder, *words):
    with open(f"{folder}/desilt") as turn:  # noqa: PTH123
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another one is at work, and may wait for what this one says or reads
            return start(words)
        if any(word.startswith("/dev/fd/") for word in words):
            return start(words)
        return ask(f"{folder}/warm", words)


def start(words):
    os.execv(sys.executable, [sys.executable, "-m", "desilt", *words])


def ask(where, words):
    with socket.socket(socket.AF_UNIX) as warm:
        warm.connect(where)
        socket.send_fds(warm, [b"."], [0, 1, 2])
        warm.sendall(json.dumps([words, os.getcwd(), dict(os.environ)]).encode())  # noqa: PTH109
        warm.shutdown(socket.SHUT_WR)
        return int(warm.recv(9) or 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
