"""Each habit fires on the line that has it and is silent on the same code done right."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from stallwise.lint import all_checks, lint

HEAD = """
import gc, os, time
import torch, torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.checkpoint import checkpoint
torch.set_float32_matmul_precision("high")
device = torch.device("cuda")
"""
SET_UP = """
loader = DataLoader(data, batch_size=8, num_workers=4, pin_memory=True)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
"""
STEP = """
x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
loss = F.cross_entropy(model(x), y)
optimizer.zero_grad(set_to_none=True)
loss.backward()
optimizer.step()
"""


def script(extra: str = "", *, step: str = STEP, set_up: str = SET_UP, head: str = HEAD, after: str = "") -> str:
    """A whole training script with something planted in its loop."""
    body = indent(dedent(step) + dedent(extra), "    ")
    return f"{head}{set_up}\nfor step, (x, y) in enumerate(loader):\n{body}\n{dedent(after)}\n"


def in_loop(bad: str, good: str) -> tuple[str, str]:
    return script(bad), script(good)


def in_step(old: str, bad: str, good: str | None = None) -> tuple[str, str]:
    return script(step=STEP.replace(old, bad)), script(step=STEP.replace(old, good or old))


def in_set_up(old: str, bad: str) -> tuple[str, str]:
    return script(set_up=SET_UP.replace(old, bad)), script()


def after_loop(bad: str, good: str) -> tuple[str, str]:
    return script(after=bad), script(after=good)


SCALED = """
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
optimizer.zero_grad(set_to_none=True)
"""


def scaled(old: str, new: str) -> tuple[str, str]:
    forward = "loss = F.cross_entropy(model(x), y)"
    return script(step=forward + SCALED.replace(old, new)), script(step=forward + SCALED)


EVALUATE = """
def evaluate(model, loader):
    model.eval()
    total = 0
    {guard}
        for x, y in loader:
            total = total + F.cross_entropy(model(x), y)
    return total
"""

PAIRS: dict[str, tuple[str, tuple[str, str]]] = {
    "item": ("host-sync", in_loop("total = loss.item()", "if step % 100 == 0:\n    print(loss.item())")),
    "item behind a flag": (
        "host-sync",
        in_loop("history.append(loss.item())", "show = step % 10 == 0\nif show:\n    history.append(loss.item())"),
    ),
    "cpu": ("host-sync", in_loop("c = loss.detach().cpu()", "c = loss.detach()")),
    "tolist": ("host-sync", in_loop("values = loss.tolist()", "values = loss")),
    "float of a tensor": ("host-sync", in_loop("v = float(loss)", "v = float(step)")),
    "item in a helper": (
        "host-sync",
        (
            HEAD + "\ndef note(loss):\n    return loss.item()\n" + script("note(loss)", head=""),
            HEAD + "\ndef note(loss):\n    return loss.detach()\n" + script("note(loss)", head=""),
        ),
    ),
    "print of a tensor": ("host-sync", in_loop("print(loss)", "print(step)")),
    "f-string of a tensor": (
        "host-sync",
        in_loop("print(f'loss {loss}')", "if step % 50 == 0:\n    print(f'loss {loss}')"),
    ),
    "progress bar": ("host-sync", in_loop("bar.set_postfix(loss=loss)", "bar.set_postfix(step=step)")),
    "synchronize": ("host-sync", in_loop("torch.cuda.synchronize()", "if step == 0:\n    torch.cuda.synchronize()")),
    "no workers": ("input-starved", in_set_up("num_workers=4, ", "")),
    "zero workers": ("input-starved", in_set_up("num_workers=4", "num_workers=0")),
    "unpinned": ("h2d-copy-exposed", in_set_up(", pin_memory=True", "")),
    "blocking copy": ("h2d-copy-exposed", in_step("x.to(device, non_blocking=True)", "x.to(device)")),
    "blocking cuda": ("h2d-copy-exposed", in_step("x.to(device, non_blocking=True)", "x.cuda()")),
    "made on the host": (
        "h2d-copy-exposed",
        in_loop("mask = torch.zeros(8, 8).to(device)", "mask = torch.zeros(8, 8, device=device)"),
    ),
    "half under autocast": (
        "fp16-overflow",
        in_step(
            "loss = F.cross_entropy(model(x), y)",
            "with torch.autocast('cuda'):\n    loss = F.cross_entropy(model(x.half()), y)",
            "with torch.autocast('cuda'):\n    loss = F.cross_entropy(model(x), y)",
        ),
    ),
    "backward under autocast": (
        "fp16-underflow",
        in_step(
            "loss = F.cross_entropy(model(x), y)\noptimizer.zero_grad(set_to_none=True)\nloss.backward()",
            "optimizer.zero_grad()\nwith torch.autocast('cuda'):\n    loss = f(model(x), y)\n    loss.backward()",
            "optimizer.zero_grad()\nwith torch.autocast('cuda'):\n    loss = f(model(x), y)\nloss.backward()",
        ),
    ),
    "clip before unscale": ("fp16-underflow", scaled("scaler.unscale_(optimizer)\n", "")),
    "update before step": (
        "fp16-underflow",
        scaled("scaler.step(optimizer)\nscaler.update()", "scaler.update()\nscaler.step(optimizer)"),
    ),
    "update missing": ("fp16-underflow", scaled("scaler.update()\n", "")),
    "unscaled step": ("fp16-underflow", scaled("scaler.step(optimizer)", "optimizer.step()")),
    "unscale twice": (
        "fp16-underflow",
        scaled("scaler.unscale_(optimizer)", "scaler.unscale_(optimizer)\nscaler.unscale_(optimizer)"),
    ),
    "zeros written": ("dram-bandwidth-bound", in_step("set_to_none=True", "set_to_none=False")),
    "never zeroed": ("grad-explosion", in_step("optimizer.zero_grad(set_to_none=True)\n", "")),
    "evaluation with gradients": (
        "oom-eval-grad",
        after_loop(EVALUATE.format(guard="if True:"), EVALUATE.format(guard="with torch.no_grad():")),
    ),
    "losses kept": ("memory-leak", in_loop("losses.append(loss)", "losses.append(loss.detach())")),
    "loss summed": ("memory-leak", in_loop("total += loss", "total += loss.detach()")),
    "graph retained": ("memory-leak", in_step("loss.backward()", "loss.backward(retain_graph=True)")),
    "cache emptied": (
        "allocator-churn",
        in_loop("torch.cuda.empty_cache()", "if step % 1000 == 0:\n    torch.cuda.empty_cache()"),
    ),
    "collected": ("python-gc-pauses", in_loop("gc.collect()", "if step % 500 == 0:\n    gc.collect()")),
    "collective on rank 0": (
        "collective-mismatch",
        in_loop(
            "if step % 10 == 0:\n    if dist.get_rank() == 0:\n        dist.all_reduce(loss)",
            "if step % 10 == 0:\n    dist.all_reduce(loss)\n    if dist.get_rank() == 0:\n        print(step)",
        ),
    ),
    "barrier on one side": (
        "collective-mismatch",
        in_loop("if rank == 0:\n    dist.barrier()", "if rank == 0:\n    dist.barrier()\nelse:\n    dist.barrier()"),
    ),
    "foreach off": ("optimizer-unfused", in_set_up("fused=True", "foreach=False")),
    "branch": ("host-sync", in_loop("if loss > 10:\n    continue", "if step > 10:\n    continue")),
    "mask": (
        "host-sync",
        in_loop("kept = x[x.abs() > 1]\nlow = loss[loss > 0]", "kept = torch.where(loss > 0, loss, 0)"),
    ),
    "host timer": (
        "none",
        in_step(
            "loss = F.cross_entropy(model(x), y)",
            "t0 = time.time()\nloss = F.cross_entropy(model(x), y)\nforward_s = time.time() - t0",
            "t0 = torch.cuda.Event(enable_timing=True)\nloss = F.cross_entropy(model(x), y)",
        ),
    ),
    "tf32 off": (
        "tensor-cores-unused",
        (script(head=HEAD.replace('torch.set_float32_matmul_precision("high")\n', "")), script()),
    ),
    "checkpoint in the loop": (
        "checkpoint-stall",
        in_loop(
            "if step % 500 == 0:\n    torch.save(model.state_dict(), 'm.pt')",
            "if step % 500 == 0:\n    pool.submit(torch.save, snapshot(model), 'm.pt')",
        ),
    ),
    "random state kept": (
        "recompute-unneeded",
        (
            HEAD + "\ndef block(h):\n    return checkpoint(layer, h, use_reentrant=False)\n",
            HEAD + "\ndef block(h):\n    return checkpoint(layer, h, use_reentrant=False, preserve_rng_state=False)\n",
        ),
    ),
    "anomaly detection": (
        "host-work-unattributed",
        (script(head=HEAD + "torch.autograd.set_detect_anomaly(True)\n"), script()),
    ),
    "data parallel": (
        "per-gpu-batch-too-small",
        (script(head=HEAD + "model = nn.DataParallel(model)\n"), script(head=HEAD + "model = model.to(device)\n")),
    ),
}


@pytest.mark.parametrize(("cause", "pair"), PAIRS.values(), ids=PAIRS.keys())
def test_fires_before_and_is_silent_after(cause: str, pair: tuple[str, str]) -> None:
    before, after = pair
    assert cause in {r.cause for r in lint(before)}
    assert [f"{r.line}: {r.cause} {r.message}" for r in lint(after)] == []


def test_every_check_has_a_snippet() -> None:
    fired = {r.check for _, (before, _) in PAIRS.values() for r in lint(before)}
    assert fired == {m.__name__.rsplit(".", 1)[1].replace("_", "-") for m in all_checks()}
