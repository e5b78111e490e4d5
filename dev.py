#!/usr/bin/env python3
"""Everything from a clone, with nothing but Python: install, then run.

    python3 dev.py demo     install, then build a small lake and show it
    python3 dev.py test     install, then lint, check types and run the tests
    python3 dev.py lock     write requirements.lock anew from pyproject.toml

Installs go into .venv beside this file, from requirements.lock with hashes
checked, and are skipped when nothing changed. What follows the word is passed
on: `dev.py test -k merge`, `dev.py demo --keep mylake`. All tests run in two
processes at once, those with words of their own in one.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
LOCK = HERE / "requirements.lock"
PYTHON = VENV / "bin" / "python"
NEEDS = (3, 11)
ENVIRONMENT = {  # compiled once, whatever the shell says: tests start hundreds of processes
    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PYTHONPYCACHEPREFIX": str(VENV / "compiled"),
}
OTHER_HALF = ("tests/contract", "tests/property")  # about as long as all others together


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


def install() -> None:
    """A .venv that holds exactly what the lock names, and this project, editable."""
    wanted = hashlib.sha256(
        LOCK.read_bytes() + (HERE / "pyproject.toml").read_bytes() + sys.version.encode()
    ).hexdigest()
    stamp = VENV / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("Installing into .venv (a few minutes the first time: Spark alone is 490 MB) …", flush=True)
    venv.create(VENV, with_pip=True, clear=True)
    pip("install", "--require-hashes", "-r", str(LOCK))
    pip("install", "--no-deps", "--no-build-isolation", "-e", str(HERE))
    stamp.write_text(wanted)


def pip(*args: str) -> None:
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *args]
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
    with tempfile.TemporaryFile() as said:
        command = [str(PYTHON), "-m", "pytest", *OTHER_HALF]
        with subprocess.Popen(command, cwd=HERE, env=ENVIRONMENT, stdout=said, stderr=subprocess.STDOUT) as other:
            try:
                failed = run("-m", "pytest", *(f"--ignore={folder}" for folder in OTHER_HALF))
                failed = other.wait() or failed
            finally:
                other.terminate()
        said.seek(0)
        sys.stdout.buffer.write(said.read())
    return failed


def lock() -> int:
    """Exact versions and hashes for every platform and Python we support; no registry is named in it."""
    return run(
        *("-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
        *("--no-emit-index-url", "--no-emit-find-links", "--all-extras", "--group", "dev"),
        *("--custom-compile-command", "python3 dev.py lock", "-o", str(LOCK), "pyproject.toml"),
    )


def run(*args: str) -> int:
    return subprocess.run([str(PYTHON), *args], cwd=HERE, env=ENVIRONMENT).returncode


def complain(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
