"""Pieces of work in processes of their own on this machine: as many as it has cores, started when they are needed."""

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from desilt.errors import WorkFailed
from desilt.executors.executor import Item, Nobody, Result, Watch, Weigh
from desilt.executors.worker import PROTOCOL
from desilt.logs import logger

COMMAND = (sys.executable, "-c", "from desilt.executors.worker import main; main()")
SECONDS_TO_END = 5.0
Answer = tuple[int, str, Any]  # to which piece, of which kind, and what
log = logger(__name__)


class Worker:
    """One such process, and what is under way in it."""

    def __init__(self) -> None:
        there = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)  # what can be imported here, can be there
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": there}
        )

    def do(self, work: Callable[[Any], Any], item: Any) -> tuple[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            piece = pickle.dumps((work, item), PROTOCOL)
            self._process.stdin.write(pickle.dumps(piece, PROTOCOL))
            self._process.stdin.flush()
            answer: tuple[str, Any] = pickle.load(self._process.stdout)
            return answer
        except (EOFError, BrokenPipeError):
            code = self._process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return "failed", (f"a worker process ended ({how}); was memory short?", "")

    def end(self, *, at_once: bool) -> None:
        """Once it has nothing to do; or in the middle of it, which leaves what a crash would."""
        if at_once:
            self._process.kill()
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Processes:
    """In ``width`` processes, one piece to each at a time."""

    def __init__(self, width: int, watch: Watch | None = None) -> None:
        self.width = width
        self.watch: Watch = watch or Nobody()
        self._idle: list[Worker] = []

    @property
    def place(self) -> str:
        return f"in {self.width} processes"

    def __call__(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        rows: int = 0,  # noqa: ARG002  others choose by it
        weigh: Weigh | None = None,
    ) -> list[Result]:
        left: SimpleQueue[tuple[int, Item]] = SimpleQueue()
        for numbered in enumerate(items):
            left.put(numbered)
        told: SimpleQueue[Answer] = SimpleQueue()
        workers = [self._idle.pop() if self._idle else started() for _ in range(min(self.width, len(items)))]
        threads = [threading.Thread(target=_serve, args=(one, work, left, told), daemon=True) for one in workers]
        for thread in threads:
            thread.start()
        results: dict[int, Result] = {}
        try:
            for number, result in _answers(told, len(items)):
                results[number] = result
                self.watch.advance(weigh(result) if weigh else 0)
        except Exception:
            _drain(left)
            for thread in threads:
                thread.join()  # what is under way is ended as it should be
            dismiss(workers, at_once=False)
            raise
        except BaseException:
            dismiss(workers, at_once=True)
            raise
        self._idle += workers
        return [results[number] for number in range(len(items))]

    def close(self) -> None:
        dismiss(self._idle, at_once=False)
        self._idle.clear()


def _serve(worker: Worker, work: Callable[[Any], Any], left: "SimpleQueue[Any]", told: "SimpleQueue[Answer]") -> None:
    """Give a worker piece after piece until there is none, or one failed."""
    with suppress(Empty):
        while True:
            number, item = left.get_nowait()
            try:
                kind, value = worker.do(work, item)
            except Exception as error:  # what cannot be sent, or read: nobody may wait for it in vain
                kind, value = "failed", (f"{type(error).__name__}: {error}", "")
            told.put((number, kind, value))
            if kind != "done":
                return


def _drain(left: "SimpleQueue[Any]") -> None:
    with suppress(Empty):
        while True:
            left.get_nowait()


def _answers(told: "SimpleQueue[Answer]", count: int) -> Iterator[tuple[int, Any]]:
    for _ in range(count):
        number, kind, value = told.get()
        if kind == "done":
            yield number, value
        elif kind == "raised":
            raise value
        else:
            said, trace = value
            log.info("a piece of work failed: %s", trace or said)
            raise WorkFailed(said)


_started: set[Worker] = set()


def started() -> Worker:
    worker = Worker()
    _started.add(worker)
    return worker


def dismiss(workers: Sequence[Worker], *, at_once: bool) -> None:
    for worker in workers:
        worker.end(at_once=at_once)
        _started.discard(worker)


def stop(*, at_once: bool = False) -> None:  # noqa: ARG001  as those of Spark are stopped
    """End every worker of this process in the middle of whatever it does."""
    dismiss(list(_started), at_once=True)


def end() -> None:
    """The same; nobody is left behind."""
    stop()


atexit.register(end)
