"""Where figures come from, and where they are kept."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def keep(name: str, figures: dict[str, object]) -> None:
    """Write ``figures`` beside the machine they were measured on."""
    RESULTS.mkdir(exist_ok=True)
    packages = ("numpy", "pyarrow", "cramjam", "obstore")
    record = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        ).stdout.strip(),
        "machine": {
            "system": platform.platform(terse=True),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "packages": {package: version(package) for package in packages},
        },
        **figures,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
