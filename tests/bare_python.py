"""A Python with everything that is installed here but what is being tested."""

import subprocess
import sys
import sysconfig
import venv


def bare_python(folder):
    """The program, made in ``folder``."""
    venv.create(folder)
    beside = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (beside / "others.pth").write_text(sysconfig.get_path("purelib"))  # files like this one there are not read
    python = str(folder / "bin" / "python")
    env = {"PATH": "/usr/bin:/bin"}
    lacks = subprocess.run([python, "-c", "import desilt"], capture_output=True, cwd=folder, env=env)
    assert lacks.returncode, "desilt itself is installed there, and not beside its source"
    return python
