"""Writes requirements-dev.lock: every package that the gate installs, with the hash of the file that pip chose.

PyTorch stands apart: its builds for CPUs come from other places under one version, each with a hash of its own. For Linux on
x86-64 and this Python's version; others install by pyproject.toml's bounds. Run it again to move forward:

    python .ci/lock.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
EXTRAS = ("dev", "mcp", "url", "jax", "parquet", "test", "ray")  # as .ci/setup.py installs them


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(p for e in EXTRAS for p in project["optional-dependencies"][e]),
        "hatchling>=1.24",
    ]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
        "--quiet",
        "--only-binary=:all:",
    ]
    told = subprocess.run([*command, "--report", "-", *wanted], capture_output=True, text=True, check=True)
    lines = [f"# Python {sys.version_info.major}.{sys.version_info.minor}, Linux x86-64; written by .ci/lock.py"]
    for one in sorted(json.loads(told.stdout)["install"], key=lambda i: i["metadata"]["name"].lower()):
        digest = one["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{one['metadata']['name'].lower()}=={one['metadata']['version']} --hash=sha256:{digest}")
    LOCK.write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 1} packages in {LOCK.name}")


if __name__ == "__main__":
    main()
