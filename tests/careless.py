"""A store as some are: conditions of a put are taken, and never looked at."""

from contextlib import nullcontext

from desilt.testing.faults import Proxy


class Careless(Proxy):
    moves_cheaply = False

    def __init__(self, store):
        super().__init__(store, nullcontext)

    @property
    def conditional(self):
        return self

    def read(self, key):
        return self._real.conditional.read(key)

    def put_over(self, seen, body):
        return self._real.put(seen.key, [body]) > 0

    def put_new(self, key, body):
        return self._real.put(key, [body]) > 0
