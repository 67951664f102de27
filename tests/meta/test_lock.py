"""The lock pins, with hashes, whatever pyproject.toml asks for; the audit fails on an answer, never on silence."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"ci_{name}", ROOT / ".ci" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_package_is_pinned_within_its_bounds() -> None:
    _, *lines = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(m["name"]): m["version"] for line in lines if (m := LINE.fullmatch(line))}
    assert len(pinned) == len(lines), "a line without a hash"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = script("lock").EXTRAS
    wanted = [
        Requirement(p)
        for p in [*project["dependencies"], *(p for e in extras for p in project["optional-dependencies"][e])]
    ]
    loose = [
        str(r) for r in wanted if not r.specifier.contains(pinned.get(canonicalize_name(r.name), "0"), prereleases=True)
    ]
    assert not loose, "make lock"


def test_the_lock_covers_what_the_tests_install() -> None:
    assert {"dev", *script("setup").EXTRAS} == set(script("lock").EXTRAS)


@pytest.mark.parametrize(
    ("printed", "fails"),
    [
        ("no route to the database", False), ("", False), (json.dumps({"dependencies": []}), False),
        (json.dumps({"dependencies": [{"name": "a", "skip_reason": "not found in the database"}]}), False), ("[1]", False),
        (json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": []}]}]}), False),
        (json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]}), True),
    ],
)  # fmt: skip
def test_an_audit_fails_on_an_answer_alone(printed: str, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = script("audit")
    done = subprocess.CompletedProcess([], 1, printed, "")
    monkeypatch.setattr(audit.subprocess, "run", lambda *a, **k: done)
    if fails:
        with pytest.raises(SystemExit, match="a 1: CVE-1, mended in 2"):
            audit.main()
    else:
        audit.main()
