"""A lakeFS server that answers what the real one answered, and nothing else.

It is strict: method, path, query and body must be those of the transcript, or of what a test told it besides; all else
is answered with 599 and remembered, and the fixture fails the test for it. It can be told to misbehave.
"""

import base64
import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from lakefs_server import ROOT

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "a-secret-that-nobody-may-ever-see"
REPOSITORY = "/repositories/capture"
ELSEWHERE = "/elsewhere"  # where every redirect leads to
MADE_LATER = {44, 45, 46, 47, 48, 49, 50, 52}  # requests about what was deleted, or with wrong keys


def key_of(method, path, query, body):
    return method, path, tuple(sorted((name, str(value)) for name, value in query.items())), json.dumps(body)


class Replay:
    """Answers in the order they were given; the last of a kind stays."""

    def __init__(self):
        self._told, self._before = defaultdict(list), defaultdict(list)
        self.asked, self.unexpected = [], []
        for line in (ROOT / "transcript.jsonl").read_text().splitlines():
            one = json.loads(line)
            if one["n"] not in MADE_LATER:
                raw = base64.b64decode(one["body_base64"]) if "body_base64" in one else one.get("body", "").encode()
                self.tell(
                    one["method"], one["path"], raw, query=one["query"], body=one["request"], status=one["status"]
                )
        for path in (ROOT / "namespace" / "_lakefs").iterdir():
            for kind in ("range", "meta_range") if len(path.name) == 64 else ():
                self.tell("GET", f"{REPOSITORY}/metadata/object/{kind}/{path.name}", path.read_bytes())
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                status, raw, length = replay.answer(self)
                self.send_response(status)
                self.send_header("Content-Length", str(length))
                if status == 302:
                    self.send_header("Location", f"{replay.endpoint}/api/v1{ELSEWHERE}")
                self.end_headers()
                self.wfile.write(raw)
                self.close_connection = length != len(raw)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._http.server_address[1]}"

    def tell(self, method, path, answer, *, query=None, body=None, status=200):
        """Besides the transcript: what to answer to one request."""
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self._told[key_of(method, path, query or {}, body)].append((status, raw, len(raw)))

    def forget(self, method, path):
        for key in [key for key in self._told if key[:2] == (method, path)]:
            del self._told[key]

    def misbehave(self, method, path, *, status=200, answer=b"", times=1, cut=0):
        """Whatever is asked there, ``times`` times; with ``cut``, so many bytes of what was announced do not come."""
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self._before[method, path] += [(status, raw[: len(raw) - cut], len(raw))] * times

    def answer(self, request):
        parts = urlsplit(request.path)
        raw = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else None
        path = parts.path.removeprefix("/api/v1")
        query = dict(parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape"))
        key = key_of(request.command, path, query, body)
        self.asked.append(key)
        if not parts.path.startswith("/api/v1/"):
            self.unexpected.append(key)
            return 599, b"", 0
        if request.headers.get("Authorization") != "Basic " + base64.b64encode(f"{KEY}:{SECRET}".encode()).decode():
            raw = b'{"message":"error authenticating request"}\n'
            return 401, raw, len(raw)
        if before := self._before.get((request.command, path)):
            return before.pop(0)
        if key not in self._told:
            self.unexpected.append(key)
            return 599, b"", 0
        answers = self._told[key]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def close(self):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
