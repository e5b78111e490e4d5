"""Between desilt and an S3 server: requests about tags that are refused, whose answers are lost, or that come late.

    with unsteady(server.endpoint) as between:
        environ["AWS_ENDPOINT_URL"] = between.endpoint
        between.busy["PUT"] = 3         # the next three are told to slow down
        between.loses["PUT"] = 1        # the server does one more, and nobody hears of it
        between.holds_after = 5         # what comes then waits, even if whoever asked is dead, for between.go_on()

Everything else passes.
"""

import http.client
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Unsteady:
    """What is to go wrong, and what was asked."""

    def __init__(self, to):
        self.to, self.endpoint = to, ""
        self.busy, self.loses, self.asked = Counter(), Counter(), Counter()
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
        """The answer; None if it is lost."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        about_tags = "tagging" in urlsplit(request.path).query
        method = request.command
        if about_tags:
            if self._due(self.busy, method):
                return 503, {}, SLOW_DOWN
            if method == "PUT":
                self.before_tag()
                with self._waiting():
                    told = self._ask(request, body)
                return None if self._due(self.loses, method) else told
        told = self._ask(request, body)
        return None if about_tags and self._due(self.loses, method) else told

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


@contextmanager
def unsteady(endpoint):
    between = Unsteady(urlsplit(endpoint).netloc)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # else whoever asks whether to go on is left waiting

        def answer(self):
            told = between.pass_on(self)
            if told is None:
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
                if self.command != "HEAD":
                    self.wfile.write(body)

        def handle(self):
            with suppress(ConnectionResetError):
                super().handle()

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
