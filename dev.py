#!/usr/bin/env python3
"""Everything from a clone, with nothing but Python: install, then run.

    python3 dev.py demo     install, then build a small lake and show it
    python3 dev.py test     install, then lint, check types and run the tests
    python3 dev.py lock     write requirements.lock anew from pyproject.toml

Installs go into .venv beside this file, from requirements.lock with hashes
checked, and are skipped when nothing changed. What follows the word is passed
on: `dev.py test -k merge`, `dev.py demo --keep mylake`. All tests run in two
processes at once, those with words of their own in one. Icechunk's library has
a format that it writes on Python 3.12 and later alone: run by an older one,
`test` looks for such a Python, and tests Icechunk with that one as well.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
LATER = HERE / ".venv-later"
LOCK = HERE / "requirements.lock"
NEEDS, WRITES_BOTH = (3, 11), (3, 12)  # the second: Icechunk's library, its two formats
KNOWN = (12, 13)  # later ones of Python 3, as tested
OTHER_HALF = ("tests/contract", "tests/property", "tests/unit")  # about as long as all others together
ICECHUNK = ("tests/unit/icechunk/", "tests/*/test_icechunk*.py", "tests/*/*/test_icechunk*.py")


def main(argv: list[str]) -> int:
    if sys.version_info < NEEDS:
        return complain(f"desilt needs Python {NEEDS[0]}.{NEEDS[1]} or newer; this is {sys.version.split()[0]}")
    if os.name != "posix":
        return complain("desilt runs on Linux and macOS; on Windows, use WSL")
    word, *rest = argv or [""]
    if word == "demo":
        install()
        return run("-m", "desilt", "demo", *rest)
    if word == "test":
        install()
        return lint() or (run("-m", "pytest", *rest) if rest else test())
    if word == "lock":
        return lock()
    print(__doc__)
    return 0 if word in ("", "-h", "--help") else 2


def install(where: Path = VENV, python: str = sys.executable) -> None:
    """Exactly what the lock names, and this project, editable."""
    version = subprocess.run([python, "-VV"], check=True, stdout=subprocess.PIPE).stdout
    wanted = hashlib.sha256(LOCK.read_bytes() + (HERE / "pyproject.toml").read_bytes() + version).hexdigest()
    stamp = where / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"Installing into {where.name} (a few minutes the first time: Spark alone is 490 MB) …", flush=True)
    subprocess.run([python, "-m", "venv", "--clear", str(where)], check=True)
    pip(where, "install", "--require-hashes", "-r", str(LOCK))
    pip(where, "install", "--no-deps", "--no-build-isolation", "-e", str(HERE))
    stamp.write_text(wanted)


def pip(where: Path, *args: str) -> None:
    command = [str(where / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", *args]
    if subprocess.run(command, cwd=HERE).returncode:
        sys.exit(complain(f"could not install; see above, then try again: pip {' '.join(args)}"))


def lint() -> int:
    paths = ["src", "tests", "benchmarks", "dev.py"]
    return (
        run("-m", "ruff", "check", "--quiet", *paths)
        or run("-m", "ruff", "format", "--check", "--quiet", *paths)
        or run("-m", "mypy", "--no-error-summary")
    )


def test() -> int:
    """All tests, each half with a Spark and servers of its own; what one of them says is shown once both are done."""
    with tempfile.TemporaryFile() as said, ThreadPoolExecutor(1) as beside:
        other = beside.submit(test_other_half, said)
        failed = run("-m", "pytest", *(f"--ignore={folder}" for folder in OTHER_HALF))
        failed = other.result() or failed
        said.seek(0)
        sys.stdout.buffer.write(said.read())
    return failed


def test_other_half(said: IO[bytes]) -> int:
    """The other half; and Icechunk's tests with a later Python, if this one has not the library of both formats."""
    failed = run("-m", "pytest", *OTHER_HALF, said=said)
    if sys.version_info >= WRITES_BOTH:
        return failed
    python = next(filter(works, later()), None)
    if python is None:
        said.write(b"Icechunk's format 2 was read, and not tested beside its library: no Python 3.12 is at hand\n")
        return failed
    install(LATER, python)
    said.write(b"Icechunk, both formats:\n")
    said.flush()
    tests = sorted(str(found) for pattern in ICECHUNK for found in HERE.glob(pattern))
    return run("-m", "pytest", *tests, where=LATER, said=said) or failed


def later() -> list[str]:
    """What may be a later Python: on the PATH, or installed by pyenv."""
    installed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [shutil.which(f"python3.{minor}") for minor in KNOWN]
    found += [str(one) for minor in KNOWN for one in sorted(installed.glob(f"3.{minor}.*/bin/python"))]
    return [one for one in found if one]


def works(python: str) -> bool:
    """Whether it is one that starts, and can make environments: some are only a name for what is not there."""
    command = [python, "-c", f"import ensurepip, sys, venv; sys.exit(sys.version_info < {WRITES_BOTH})"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def lock() -> int:
    """Exact versions and hashes for every platform and Python we support; no registry is named in it."""
    return run(
        *("-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
        *("--no-emit-index-url", "--no-emit-find-links", "--all-extras", "--group", "dev"),
        *("--custom-compile-command", "python3 dev.py lock", "-o", str(LOCK), "pyproject.toml"),
    )


def run(*args: str, where: Path = VENV, said: IO[bytes] | None = None) -> int:
    command, streams = [str(where / "bin" / "python"), *args], {"stdout": said, "stderr": said}
    return subprocess.run(command, cwd=HERE, env=environment(where), **streams).returncode


def environment(where: Path = VENV) -> dict[str, str]:
    """Compiled once, whatever the shell says: tests start hundreds of processes."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(where / "compiled")}


def complain(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
