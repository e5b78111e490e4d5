"""A quiet Spark session that needs no Java installed.

:func:`session` starts Spark, or gives back the session that is already running.
The JVM that it launches does not outlive this process: not a start that fails or
is interrupted, and not the end of the program.
"""

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from desilt.errors import DesiltError
from desilt.executors.java import HANGS_SECONDS, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRACE_SECONDS = 5.0  # for a JVM to remove its temporary files, before it is killed
LOGGING = Path(__file__).with_name("log4j2.properties")

_launched: dict[int, tuple["subprocess.Popen[bytes]", threading.Thread]] = {}
"""By the process that launched it, a JVM and who passes on what it says; a child by fork leaves its parent's alone."""
_hushed: set[int] = set()


def session(app: str = "desilt", *, master: str | None = None, **conf: str) -> "SparkSession":
    """The active session, else a new one: local unless ``master`` or spark-submit says otherwise."""
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    running: SparkSession | None = SparkSession.getActiveSession()
    if running is None and SparkContext._active_spark_context is not None:
        running = SparkSession.builder.getOrCreate()  # made in another thread
    if running is not None:
        return running
    builder = SparkSession.builder.appName(app)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit chose already
        settings, env = {**everywhere(), **conf}, {}
    else:
        master = master or "local[*]"
        settings = {**everywhere(), **quiet(), **(local() if master.startswith("local") else {}), **conf}
        settings["spark.master"] = master
        env = {"JAVA_HOME": str(java_home())}
        if master.startswith("local"):
            env["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with environment(env), launching(), interrupts_left_alone():
            started: SparkSession = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        line = str(error).partition("\n")[0]
        raise DesiltError(f"Spark did not start: {line}; see the lines above, and check Java and memory") from error
    return started


@contextmanager
def launching() -> Iterator[None]:
    """Keep hold of the JVM that pyspark launches in the block; if the block fails, end it."""
    from pyspark import SparkContext, java_gateway
    from pyspark.sql import SparkSession

    try:
        with replaced(java_gateway, "Popen", launch):
            yield
    except BaseException:
        if os.getpid() in _launched:
            end()
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
            SparkSession._instantiatedSession = None
        raise


def launch(*words: Any, **options: Any) -> "subprocess.Popen[bytes]":
    """A JVM that can be ended with all the scripts that start it, and that has none of our output open."""
    own = {"start_new_session": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with uninterrupted():  # after the fork and before it is noted, nobody would end it
        jvm: subprocess.Popen[bytes] = subprocess.Popen(*words, **{**options, **own})
        relay = threading.Thread(target=pass_on, args=(jvm,), name="what Spark says", daemon=True)
        _launched[os.getpid()] = jvm, relay
        relay.start()
    return jvm


def pass_on(jvm: "subprocess.Popen[bytes]") -> None:
    """Say on stderr what a JVM says, until it is told to be quiet."""
    while jvm.stdout and (said := os.read(jvm.stdout.fileno(), 65536)):
        if jvm.pid not in _hushed:
            with suppress(OSError):
                os.write(2, said)


def stop(*, at_once: bool = False) -> None:
    """Tell the JVM that this process launched, if there is one, to end quietly; do not wait for it."""
    if os.getpid() in _launched:
        jvm, _ = _launched[os.getpid()]
        _hushed.add(jvm.pid)
        tell(jvm, signal.SIGKILL if at_once else signal.SIGTERM)


@atexit.register
def leave() -> None:
    """End the JVM as this process ends: what was not said by now is what its last calls into the JVM fail with."""
    if os.getpid() in _launched:
        logging.disable()
        end()


def end() -> None:
    """End the JVM that this process launched, if there is one: asked first, killed if it does not listen."""
    if os.getpid() not in _launched:
        return
    jvm, relay = _launched[os.getpid()]
    context = sys.modules["pyspark"].SparkContext._active_spark_context if "pyspark" in sys.modules else None
    if server := getattr(context, "_accumulatorServer", None):
        server.handle_error = lambda *_: None  # it would print a traceback once the JVM hangs up
    tell(jvm, signal.SIGTERM)
    try:
        jvm.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        tell(jvm, signal.SIGKILL)
        jvm.wait()
    relay.join(1.0)  # its last words
    _launched.pop(os.getpid(), None)


def tell(jvm: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    if jvm.poll() is None:
        with suppress(ProcessLookupError, PermissionError):  # macOS: the latter for one that has just ended
            os.killpg(jvm.pid, number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits for the end of the block."""
    before, waiting = signal.getsignal(signal.SIGINT), []
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, _frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def interrupts_left_alone() -> AbstractContextManager[None]:
    """Let a program's own answer to Ctrl-C, or its will to ignore it, outlive the start of Spark.

    Spark would put a handler in its place that calls the JVM, whatever call is under way.
    """
    from pyspark.core import context

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return nullcontext()
    return replaced(context, "signal", SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *_: None))


def spark_home() -> Path:
    """Where the wheel keeps Spark, with the programs that start its servers."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise DesiltError("there is no Spark; pip install pyspark")
    return Path(found.origin).parent


def everywhere() -> dict[str, str]:
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.python.authenticate.socketTimeout": f"{HANGS_SECONDS}s",  # 15 s are soon over on a busy machine
    }


def quiet() -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def local() -> dict[str, str]:
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@contextmanager
def replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """These variables for the time of the block: the JVM inherits them, later programs do not."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
