"""An HTTP server for the model of lakeFS: who may ask, what was asked, and how it may misbehave.

Hooks run outside of the model's lock, in the thread of the request: one may ask the same server for something else.
"""

import base64
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

API = "/api/v1"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "a-secret-that-nobody-may-ever-see"
KEYS = {"LAKECTL_CREDENTIALS_ACCESS_KEY_ID": KEY, "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": SECRET}


@dataclass
class Ask:
    """One request."""

    method: str
    path: str  # after the API's own
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    names: dict[str, str] = field(default_factory=dict)  # from the path, by the route

    def __getattr__(self, name):
        try:
            return self.names[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def json(self):
        return json.loads(self.raw) if self.raw else {}

    @property
    def key(self):
        """The path of an object that is asked for, as bytes: it need not be UTF-8."""
        return self.query["path"].encode(errors="surrogateescape")

    @property
    def content(self):
        """An upload, alone or as a part of a form; and what kind of thing it says it is."""
        kind = self.headers.get("content-type", "application/octet-stream")
        if not kind.startswith("multipart/form-data"):
            return self.raw, kind
        mark = b"--" + re.search(r'boundary="?([^";]+)', kind)[1].encode()
        for part in self.raw.split(mark)[1:-1]:
            head, _, body = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
            if b'name="content"' in head:
                told = re.search(rb"(?i)content-type: *([^\r\n]+)", head)
                return body.removesuffix(b"\r\n"), told[1].decode() if told else "application/octet-stream"
        raise ValueError("a form without content")


@dataclass
class Answer:
    status: int
    body: object = None  # what JSON can be made of, text, or bytes
    location: str = ""
    cut: int = 0  # so many bytes of what is announced do not come

    @property
    def sent(self):
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b"", "application/octet-stream"
        if isinstance(self.body, str):
            return self.body.encode(), "text/plain; charset=utf-8"
        return json.dumps(self.body, separators=(",", ":"), sort_keys=True).encode() + b"\n", "application/json"


def route(method, path):
    """Marks what answers such requests; ``{name}`` stands for a part of the path."""

    def mark(answer):
        answer.routes = [*getattr(answer, "routes", []), (method, path)]
        return answer

    return mark


def error(status, message):
    return Answer(status, {"message": message})


@dataclass
class _Ordered:
    """Something that is to happen to requests."""

    method: str
    pattern: str
    then: object
    times: float

    def matches(self, ask):
        return self.times > 0 and ask.method == self.method and re.fullmatch(self.pattern, ask.path)


class HttpServer:
    """Serves the methods of a subclass that have a :func:`route`; one at a time, under ``lock``."""

    def __init__(self):
        self.lock = threading.RLock()
        self.asked = Counter()  # by method and route, such as ("GET", "/repositories/{repository}")
        self.unknown = []  # requests that have no route
        self._bad, self._before, self._after = [], [], []
        found = [getattr(self, name) for name in dir(type(self)) if hasattr(getattr(type(self), name), "routes")]
        self._routes = [(*one, _pattern(one[1]), answer) for answer in found for one in answer.routes]
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._http.server_address[1]}"

    def misbehave(self, method, pattern, *, status, answer=None, times=1, passing=0, location="", cut=0):
        """Of requests whose whole path matches ``pattern``, ``times`` get this answer, and nothing is done.

        The first ``passing`` are answered as ever.
        """
        message = {"message": "misbehaving"} if answer is None else answer
        self._bad.append(_Ordered(method, pattern, None, passing))
        self._bad.append(_Ordered(method, pattern, Answer(status, message, location, cut), times))

    def before(self, method, pattern, then, *, times=float("inf")):
        """Call ``then(ask)`` before such requests are looked at."""
        self._before.append(_Ordered(method, pattern, then, times))

    def after(self, method, pattern, then, *, times=float("inf")):
        """Call ``then(ask)`` when such requests were done, before they are answered."""
        self._after.append(_Ordered(method, pattern, then, times))

    def behave(self):
        """Forget all of these orders."""
        self._bad, self._before, self._after = [], [], []

    def close(self):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answered(self, ask, authorization):
        if authorization != "Basic " + base64.b64encode(f"{KEY}:{SECRET}".encode()).decode():
            return error(401, "error authenticating request")
        method, path, names, answer = self._found(ask)
        self.asked[method, path] += 1
        ask.names = names
        for one in self._due(self._before, ask):
            one.then(ask)
        for one in self._due(self._bad, ask)[:1]:
            if one.then is not None:
                return one.then
        with self.lock:
            found = answer(ask)
        for one in self._due(self._after, ask):
            one.then(ask)
        return found

    def _found(self, ask):
        for method, path, pattern, answer in self._routes:
            match = pattern.fullmatch(ask.path)
            if match and method == ask.method:
                return method, path, {name: unquote(told) for name, told in match.groupdict().items()}, answer
        self.unknown.append((ask.method, ask.path))
        return ask.method, ask.path, {}, lambda _: error(500, "invalid API endpoint")

    def _due(self, orders, ask):
        with self.lock:
            found = [one for one in orders if one.matches(ask)]
            for one in found if orders is not self._bad else found[:1]:
                one.times -= 1
        return found


def _pattern(path):
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body go together

        def answer(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape"))
            headers = {name.lower(): told for name, told in self.headers.items()}
            ask = Ask(self.command, parts.path.removeprefix(API), query, headers, raw)
            found = server.answered(ask, self.headers.get("Authorization"))
            body, kind = found.sent
            self.send_response(found.status)
            if body:
                self.send_header("Content-Type", kind)
            if found.location:
                self.send_header("Location", found.location)
            if found.status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) - found.cut])
            self.close_connection = self.close_connection or bool(found.cut)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *_):
            pass

    return Handler
