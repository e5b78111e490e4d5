"""Which desilt this is, and that it can be sent: an archive is the same one, and works."""

import subprocess
import sys

from bare_python import bare_python
from desilt.executors import package

SAYS = (
    "from desilt.executors.package import this; import desilt; print(this().version, this().modules, desilt.__file__)"
)


def said_by(python, path):
    words = [python, "-c", SAYS]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(path)}
    return subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout.split()


def test_an_archive_of_it_is_the_same_and_another_is_not(tmp_path):
    python = bare_python(tmp_path / "python")
    packed = package.archive(tmp_path)
    version, modules, where = said_by(python, packed)
    assert (version, modules) == (package.this().version, package.this().modules)
    assert str(packed) in where

    unpacked = tmp_path / "unpacked"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", packed, unpacked], check=True)
    assert said_by(python, unpacked)[1] == modules
    with (unpacked / "desilt" / "clock.py").open("a") as module:
        module.write("\n")
    assert said_by(python, unpacked)[1] != modules
