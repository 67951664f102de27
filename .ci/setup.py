"""Sets up .venv: one line a step on the screen, all that pip and apt print in .venv/setup.log.

    python3 .ci/setup.py package    the virtual environment and stallwise: all that `make demo` needs
    python3 .ci/setup.py dev        pytest, ruff, mypy: without them nothing can be checked
    python3 .ci/setup.py extras     packages that some tests need; where one cannot be had, its tests are skipped by its name

Standard library only: it runs before anything is installed, and on a Python that may be too old for the rest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOG = VENV / "setup.log"
PYTHON = VENV / "bin" / "python"
OLDEST = (3, 11)  # requires-python of pyproject.toml
PIP = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
TORCH = "2.13.0"
BROWSERS = ("chromium", "chromium-browser")  # as tests/web/browser.py looks for it
EXTRAS = {
    "mcp": "MCP client",
    "url": "reader of addresses",
    "jax": "reader of XLA profiles",
    "parquet": "Parquet (50 MB)",
    "test": "browser driver, notebooks, tables, documentation",
    "ray": "Ray (70 MB)",
}


def step(title: str, *commands: list[str]) -> bool:
    """Runs the commands in order with one line on the screen; says whether all of them succeeded."""
    print(f"installing {title} ...", end=" ", flush=True)
    start = time.monotonic()
    done = all(quietly(command) for command in commands)
    seconds = time.monotonic() - start
    print(f"done in {seconds:.0f} s" if done else f"not to be had here ({seconds:.0f} s)", flush=True)
    return done


def quietly(command: list[str]) -> bool:
    """What it prints goes to the log; it cannot ask anything."""
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            return not subprocess.call(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        except OSError as error:  # the program itself is missing
            log.write(f"{error}\n")
            return False


def must(done: bool) -> None:
    """Ends with the last lines of the log where nothing can go on."""
    if not done:
        lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        print(*(f"  {line}" for line in lines[-8:]), sep="\n")
        raise SystemExit(f"the set-up cannot go on without it; all of it is in {LOG.relative_to(ROOT)}")


def package() -> None:
    """A virtual environment with stallwise in it."""
    if sys.version_info < OLDEST:
        found, needed = ".".join(map(str, sys.version_info[:2])), ".".join(map(str, OLDEST))
        raise SystemExit(
            f"stallwise needs Python {needed}, this is {found}; name another: make PYTHON=python{needed} demo"
        )
    must(step("stallwise into .venv", [sys.executable, "-m", "venv", str(VENV)], [*PIP, "-e", "."]))


def dev() -> None:
    """What every check needs."""
    must(step("pytest, ruff and mypy", [*PIP, *wanted("dev")]))


def wanted(extra: str) -> list[str]:
    """The packages of an extra, as pip takes them."""
    import tomllib  # not before the version is known

    return list(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"][extra]
    )


def extras() -> None:
    """Every one is optional; a second call asks again for what is missing."""
    missing = [name for extra, title in EXTRAS.items() for name in without(extra, title)]
    missing += ([] if torch() else ["torch"]) + ([] if chromium() else ["chromium"])
    if missing:
        print(
            f"tests that need {', '.join(missing)} are skipped; make extras asks again, {LOG.relative_to(ROOT)} says why"
        )


def without(extra: str, title: str) -> list[str]:
    """What of an extra could not be had: it is asked for as a whole, then package by package."""
    names, pip = wanted(extra), [*PIP, *large(extra)]
    if step(title, [*pip, *names]):
        return []
    refused = [name for name in names if len(names) == 1 or not step(name, [*pip, name])]
    return [re.split("[<>=]", name)[0] for name in refused]


def large(extra: str) -> list[str]:
    """Of a package this large most modules are never imported: they are compiled when they are."""
    return ["--no-compile"] if extra in ("ray", "torch") else []


def torch() -> bool:
    """The build for CPUs where pip is offered one; else the standard one, which works without a GPU and is larger."""
    pip = [*PIP, *large("torch")]
    if quietly([str(PYTHON), "-c", f"import importlib.metadata as m; assert m.version('torch').startswith('{TORCH}')"]):
        return True
    return step("CPU PyTorch (200 MB)", [*pip, f"torch=={TORCH}+cpu"]) or step(
        "PyTorch with its GPU libraries (3 GB), as pip is offered no CPU build", [*pip, f"torch=={TORCH}"]
    )


def chromium() -> bool:
    """From the distribution, where this user may install."""
    if os.environ.get("STALLWISE_CHROMIUM") or any(shutil.which(name) for name in BROWSERS):
        return True
    if not shutil.which("apt-get") or os.geteuid() != 0:
        print("no chromium here, and only root can install it with apt")
        return False
    install = ["apt-get", "install", "-y", "-qq", "chromium"]
    return step("chromium with apt (300 MB)", ["apt-get", "update", "-qq"], install)


if __name__ == "__main__":
    {"package": package, "dev": dev, "extras": extras}[sys.argv[1]]()
