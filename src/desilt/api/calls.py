"""How the API is called: a call that does not fit is told like everything else that is wrong."""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from desilt.errors import BadRequest

P = ParamSpec("P")
T = TypeVar("T")


def fitting(call: Callable[P, T]) -> Callable[P, T]:
    """``call``, which refuses arguments that it has not, or lacks, before anything is done."""
    signature = inspect.signature(call)

    @functools.wraps(call)
    def checked(*values: P.args, **named: P.kwargs) -> T:
        try:
            signature.bind(*values, **named)
        except TypeError as error:
            raise BadRequest(f"{call.__name__}(…): {error}; see help({call.__name__})") from None
        return call(*values, **named)

    return checked
