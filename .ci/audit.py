"""Asks pip-audit for known vulnerabilities of what requirements-dev.lock pins; fails where there is one with a release that mends it.

    python .ci/audit.py

Where pip-audit cannot be had, or reaches no database, that is said and nothing fails: an answer is needed to fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).resolve().parents[1] / "requirements-dev.lock"
AUDIT = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--disable-pip", "--require-hashes"]
AS_JSON = ["--format", "json", "--progress-spinner", "off"]
LONGEST_S = 120.0  # a database that answers does so in seconds


def audited() -> list[dict[str, Any]]:
    """Packages that pip-audit has an answer for; it skips those that its database does not know."""
    try:
        done = subprocess.run(
            [*AUDIT, *AS_JSON], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LONGEST_S
        )
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
        return []
    return [package for package in found if "vulns" in package]


def mended(packages: list[dict[str, Any]]) -> list[str]:
    """One line a vulnerability that a release mends."""
    return [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions'])}"
        for package in packages
        for flaw in package["vulns"]
        if flaw.get("fix_versions")
    ]


def main() -> None:
    packages = audited()
    if not packages:
        print("pip-audit is not installed or reaches no database: nothing was audited")
        return
    if lines := mended(packages):
        raise SystemExit("\n".join([*lines, "make lock moves the pins forward"]))
    print(f"{len(packages)} packages audited, no known vulnerability that a release mends")


if __name__ == "__main__":
    main()
