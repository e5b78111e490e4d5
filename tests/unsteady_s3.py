"""Between desilt and an S3 server: requests that are refused, whose answers are lost or cut off, or that come late.

    with unsteady(server.endpoint) as between:
        environ["AWS_ENDPOINT_URL"] = between.endpoint
        between.busy["PUT"] = 3         # the next three are told to slow down
        between.loses["PUT"] = 1        # the server does one more, and nobody hears of it
        between.holds_after = 5         # what comes then waits, even if whoever asked is dead, for between.go_on()

        between.resets["bulk"] = 2      # the connection breaks before the server has heard of it
        between.cuts["list"] = 1        # half of an answer
        between.errors["list"] = 1      # an error in place of an answer, under 200
        between.empties["list"] = 1     # nothing in place of an answer, under 200
        between.after["list"] = 2       # but not yet: the first two pass
        between.busy_keys["bulk"] = 1   # the server does it, and says of every other key that it had no time
        between.chance = Random(1), 0.1, ("bulk", "list")  # any of these, to one of ten requests of these kinds

A kind is a method, of requests about tags; ``bulk`` deletes many, ``list`` lists, others are ``GET object`` and so on.
Everything else passes.
"""

import http.client
import re
import socket
import struct
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
INTERNAL_ERROR = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
DELETED = re.compile(b"<Deleted>.*?(<Key>.*?</Key>).*?</Deleted>", re.DOTALL)
RESET, LOST = "reset", None  # in place of an answer


def kind_of(method, path):
    query = urlsplit(path).query
    if "tagging" in query:
        return method
    if method == "POST" and "delete" in query:
        return "bulk"
    return "list" if "list-type" in query else f"{method} object"


class Cut(bytes):
    """An answer that ends in the middle, though it says how long it is."""


class Unsteady:
    """What is to go wrong, and what was asked."""

    def __init__(self, to):
        self.to, self.endpoint = to, ""
        self.busy, self.loses, self.asked = Counter(), Counter(), Counter()
        self.resets, self.cuts, self.busy_keys = Counter(), Counter(), Counter()
        self.errors, self.empties, self.after = Counter(), Counter(), Counter()
        self.chance, self.failed, self.seen = None, Counter(), Counter()
        self.before_tag = lambda: None  # called before each that sets tags is passed on
        self.holds_after, self.held = None, 0
        self._lock, self._open, self._empty = threading.Lock(), threading.Event(), threading.Condition()

    def go_on(self):
        """What was held reaches the server, and is answered, before this returns."""
        self.holds_after = None
        self._open.set()
        with self._empty:
            self._empty.wait_for(lambda: self.held == 0)

    def pass_on(self, request):
        """The answer; LOST or RESET if there is none."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        kind = kind_of(request.command, request.path)
        fault = self._drawn(kind)
        self.seen[kind] += 1
        if self._due(self.after, kind):
            return self._ask(request, body)
        if self._due(self.busy, kind) or fault == "busy":
            return 503, {}, SLOW_DOWN
        if self._due(self.resets, kind) or fault == "resets":
            return RESET
        if self._due(self.errors, kind):
            return 200, {}, INTERNAL_ERROR
        if self._due(self.empties, kind):
            return 200, {}, b"<ListBucketResult></ListBucketResult>"
        if kind == "PUT":
            self.before_tag()
            with self._waiting():
                told = self._ask(request, body)
        else:
            told = self._ask(request, body)
        if self._due(self.loses, kind) or fault == "loses":
            return LOST
        status, headers, answer = told
        if self._due(self.cuts, kind) or fault == "cuts":
            return status, headers, Cut(answer)
        if self._due(self.busy_keys, kind) or (fault == "busy_keys" and kind == "bulk"):
            return status, headers, every_other_key_is_busy(answer)
        return told

    def _drawn(self, kind):
        """A fault by chance."""
        if self.chance is None or kind not in self.chance[2]:
            return None
        chances, share, _ = self.chance
        with self._lock:
            fault = (
                chances.choice(("busy", "resets", "loses", "cuts", "busy_keys")) if chances.random() < share else None
            )
            self.failed[kind] += fault is not None
        return fault

    @contextmanager
    def _waiting(self):
        with self._lock:
            self.asked["PUT"] += 1
            wait = self.holds_after is not None and self.asked["PUT"] > self.holds_after
            self.held += wait
        if wait:
            self._open.wait()
        try:
            yield
        finally:
            with self._empty:
                self.held -= wait
                self._empty.notify_all()

    def _due(self, counter, method):
        with self._lock:
            counter[method] -= (is_due := counter[method] > 0)
            return is_due

    def _ask(self, request, body):
        server = http.client.HTTPConnection(self.to)
        server.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            if name.lower() != "expect":
                server.putheader(name, value)
        server.endheaders(body)
        answer = server.getresponse()
        told = answer.status, dict(answer.getheaders()), answer.read()
        server.close()
        return told


def every_other_key_is_busy(answer):
    """Of a bulk delete; though the server has done all of it."""
    numbers = iter(range(10_000))

    def told(match):
        if next(numbers) % 2:
            return match[0]
        return (
            b"<Error>" + match[1] + b"<Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
        )

    return DELETED.sub(told, answer)


@contextmanager
def unsteady(endpoint):
    between = Unsteady(urlsplit(endpoint).netloc)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # else whoever asks whether to go on is left waiting

        def answer(self):
            told = between.pass_on(self)
            if told in (LOST, RESET):
                if told == RESET:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                self.close_connection = True
                return
            status, headers, body = told
            with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked may be dead by now
                self.send_response_only(status)
                length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
                for name, value in headers.items():
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", length)
                self.end_headers()
                if isinstance(body, Cut):
                    body, self.close_connection = body[: len(body) // 2], True
                if self.command != "HEAD":
                    self.wfile.write(body)

        def handle(self):
            with suppress(ConnectionResetError, ValueError):  # what is closed cannot be flushed
                super().handle()

        def finish(self):
            with suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *_):
            pass

        do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = answer  # noqa: N815 - as the server asks

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        between.endpoint = f"http://127.0.0.1:{server.server_port}"
        try:
            yield between
        finally:
            between.go_on()
            server.shutdown()
            thread.join()
