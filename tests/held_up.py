"""Between one machine and a server: bytes pass, until a request with a certain word is held up.

with held_up(server.endpoint) as way:
    environ["AWS_ENDPOINT_URL"] = way.endpoint
    way.hold(b"?delete")                    # the server does it, and its answer is kept
    way.hold(b"/plan/", answered=False)     # the server does not hear of it
    way.reached.wait()
    way.go_on()                             # what was kept passes
"""

import socket
import threading
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

AT_ONCE = 1 << 16


class HeldUp:
    def __init__(self, to):
        self._to = to.hostname, to.port
        self._word, self._answered = None, True
        self.endpoint = ""
        self.reached, self._open = threading.Event(), threading.Event()
        self._open.set()

    def hold(self, word, *, answered=True):
        """From the next request that holds ``word`` in its first bytes, its connection stands still."""
        self.reached.clear()
        self._open.clear()
        self._word, self._answered = word, answered

    def go_on(self):
        self._word = None
        self._open.set()

    def serve(self, client):
        with client, suppress(OSError), socket.create_connection(self._to) as server:
            back = threading.Thread(target=self._answers, args=(server, client, held := threading.Event()), daemon=True)
            back.start()
            while said := client.recv(AT_ONCE):
                if self._word is not None and self._word in said:
                    if not self._answered:
                        self.reached.set()
                        self._open.wait()
                    held.set()
                server.sendall(said)
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            back.join()

    def _answers(self, server, client, held):
        with suppress(OSError):
            while said := server.recv(AT_ONCE):
                if held.is_set():
                    self.reached.set()
                    self._open.wait()
                client.sendall(said)


@contextmanager
def held_up(endpoint):
    way = HeldUp(urlsplit(endpoint))
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        way.endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}"

        def accept():
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=way.serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield way
        finally:
            way.go_on()
            listening.shutdown(socket.SHUT_RDWR)
