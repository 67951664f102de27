"""The wheel in a clean environment: installs it there, then records, watches, runs and uses a notebook kernel on the GPU.

    python bench/gpu/recorder_wheel.py make ENV WHEEL PACKAGES    # an environment with the wheel; other packages are lent to it
    ENV/bin/python bench/gpu/recorder_wheel.py check OUT          # one line a verb; exit 1 where one failed

PACKAGES is a folder of wheels that this interpreter may lack. The job is a small loop on the GPU, or on the CPU where there is none.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
import zipfile
from pathlib import Path

LOOP = """
import torch
from torch import nn
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)]).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for n in range(400):
    loss = model(torch.randn(64, 512, device=device)).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print("trained on", device)
"""
CELLS = (
    "import stallwise\nprint(stallwise.__file__)\nstallwise.start('notebook')",
    LOOP,
    "stallwise.stop()\nstallwise.diagnose('notebook')",  # shows itself
)


def make(home: Path, wheel: Path, packages: Path) -> None:
    venv.create(home, with_pip=False, clear=True)
    site = next((home / "lib").glob("python*/site-packages"))
    lent = home / "lent"
    for other in packages.glob("*.whl"):
        if importlib.util.find_spec(module_of(other)) is None:
            zipfile.ZipFile(other).extractall(lent)
    torch = importlib.util.find_spec("torch")
    outer = [str(Path(torch.origin).parents[1])] if torch and torch.origin else [sysconfig.get_path("purelib")]
    (site / "lent.pth").write_text("\n".join([str(lent), *outer]) + "\n")
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    if subprocess.run([*install, str(wheel)], capture_output=True).returncode:  # no pip there
        zipfile.ZipFile(wheel).extractall(site)
        script = home / "bin" / "stallwise"
        script.write_text(f"#!{python}\nfrom stallwise.surfaces.cli import run\nrun()\n")
        script.chmod(0o755)


def module_of(wheel: Path) -> str:
    """The first module of a wheel."""
    names = [n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n and ".data/" not in n]
    tops = [n.split("/")[0].split(".")[0] for n in names if n.endswith((".py", ".so"))]
    return tops[0] if tops else "no_such_module"


def check() -> list[tuple[str, bool, str]]:
    """(what, whether it did, last words)"""
    where = Path(tempfile.mkdtemp())
    (where / "loop.py").write_text(LOOP)
    told = []

    def call(what: str, *command: str) -> str:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=90)
        words = (done.stdout + done.stderr).strip()
        told.append((what, done.returncode == 0, words[-1500:]))
        return words

    stallwise = str(Path(sys.executable).parent / "stallwise")
    call("record", stallwise, "record", "-o", "bundle", "--", sys.executable, "loop.py")
    traced = list((where / "bundle").glob("rank-00000/trace_*.json.gz"))
    told.append(("record leaves traces", bool(traced), str([p.name for p in traced])))
    told.append(("watch says the step", "step 399" in call("watch", stallwise, "watch", "--once", "bundle"), ""))
    told.append(
        ("run answers", "because" in call("run", stallwise, "run", "-o", "r", "--", sys.executable, "loop.py"), "")
    )
    told.append(notebook(where))
    return told


def notebook(where: Path) -> tuple[str, bool, str]:
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import KernelManager

    manager = KernelManager()
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, display_name="clean", language="python")
    manager.start_kernel(cwd=str(where))
    client = manager.client()
    client.start_channels()
    printed: list[str] = []
    try:
        client.wait_for_ready(timeout=60)
        states = [
            client.execute_interactive(cell, timeout=60, output_hook=lambda m: printed.append(str(m["content"])))
            for cell in CELLS
        ]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    steps = (where / "notebook" / "rank-00000.jsonl").read_text().count('"k":"step"')
    good = all(s["content"]["status"] == "ok" for s in states) and "text/html" in "".join(printed) and steps == 400
    return "notebook kernel", good, f"{steps} steps; " + "".join(printed)[-600:]


def main() -> None:
    if sys.argv[1] == "make":
        make(*map(Path, sys.argv[2:5]))
        return
    began = time.monotonic()
    told = check()
    text = "\n".join(f"{'ok  ' if good else 'FAIL'} {what}: {words}" for what, good, words in told)
    (Path(sys.argv[2]) / "wheel.txt").write_text(text + "\n")
    print(
        "\n".join(f"{'ok  ' if good else 'FAIL'} {what}" for what, good, _ in told), f"{time.monotonic() - began:.0f} s"
    )
    raise SystemExit(0 if all(good for _, good, _ in told) else 1)


if __name__ == "__main__":
    main()
