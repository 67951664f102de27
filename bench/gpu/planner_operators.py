"""Measures the operators that the planner's physics rests on: attention by kernel, grouped products, 8-bit passes, host.

    python bench/gpu/planner_operators.py OUT

Writes attention.csv, grouped.csv, quantise.csv, host.csv and sustained.csv into OUT, in about two minutes on one GPU.
Every time is the median of repeated calls between CUDA events after a warm-up, in an otherwise idle process; host times
are wall time over many calls with the GPU far from busy. Each part that this PyTorch lacks is left out, with a line.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

DEADLINE_S = 170.0
BEGAN = time.perf_counter()


def late(share: float) -> bool:
    """Whether this part of the time is spent: later parts keep theirs."""
    return time.perf_counter() - BEGAN > DEADLINE_S * share


def gpu_ms(call: Callable[[], object], least: int = 5, budget_ms: float = 120.0) -> float:
    """Median GPU time of a call."""
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    times: list[float] = []
    spent = 0.0
    while len(times) < least or (spent < budget_ms and len(times) < 25):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(200_000)  # the host gets ahead, so that launches do not show
        first.record()
        call()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last))
        spent += times[-1]
        if spent > budget_ms and len(times) >= 3:
            break
    return median(times)


def write(out: Path, name: str, rows: list[dict[str, object]]) -> None:
    """One table."""
    if not rows:
        return
    keys = list(dict.fromkeys(k for r in rows for k in r))
    with (out / name).open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, keys)
        table.writeheader()
        table.writerows(rows)
    print(name, len(rows), f"{time.perf_counter() - BEGAN:.0f} s", flush=True)


def attention(out: Path) -> None:
    """Forward and backward of causal (and full) attention by kernel, sequence, head width and sharing of keys."""
    kinds = {"fa2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH,
             "efficient": SDPBackend.EFFICIENT_ATTENTION}  # fmt: skip
    rows: list[dict[str, object]] = []
    shapes = [(b, s, h, d, True) for d, h in ((128, 32), (64, 32)) for s in (512, 1024, 2048, 4096, 8192, 16384, 32768)
              for b in (max(16384 // s, 1),)]  # fmt: skip
    shapes += [(1, 4096, 32, 128, False), (1, 8192, 32, 128, False), (1, 2048, 8, 128, True), (1, 8192, 8, 128, True),
               (1, 4096, 4, 128, True), (4, 4096, 128, 128, True)]  # fmt: skip
    for batch, seq, heads, width, causal in shapes:
        for kind, backend in kinds.items():
            if late(0.4) or (kind == "math" and seq > 4096) or (kind == "efficient" and width == 64):
                continue
            try:
                q, k, v = (
                    torch.randn(batch, heads, seq, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                    for _ in range(3)
                )
                with sdpa_kernel(backend):
                    forward = gpu_ms(
                        lambda q=q, k=k, v=v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c)
                    )
                    made = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                    grad = torch.randn_like(made)
                    backward = gpu_ms(
                        lambda m=made, g=grad, q=q, k=k, v=v: torch.autograd.grad(m, (q, k, v), g, retain_graph=True)
                    )
            except (RuntimeError, torch.OutOfMemoryError) as error:
                print("attention", kind, seq, str(error)[:100], flush=True)
                torch.cuda.empty_cache()
                continue
            pairs = seq / 2 if causal else seq
            flop = 4.0 * batch * heads * seq * pairs * width
            rows.append(
                {"kernel": kind, "batch": batch, "seq": seq, "heads": heads, "head_dim": width, "causal": int(causal),
                 "forward_ms": round(forward, 5), "backward_ms": round(backward, 5),
                 "forward_tflops": round(flop / forward / 1e9, 1),
                 "backward_tflops": round(2.5 * flop / backward / 1e9, 1)}
            )  # fmt: skip
            del q, k, v, made, grad
    write(out, "attention.csv", rows)


def grouped(out: Path) -> None:
    """Grouped products by tokens per expert: forward (tokens x weights) and the weight gradient."""
    rows: list[dict[str, object]] = []
    product = getattr(torch, "_grouped_mm", None)
    scaled = getattr(torch, "_scaled_grouped_mm", None)
    dims = [(4096, 7168), (7168, 2048), (1536, 2048), (2048, 768), (28672, 4096), (2816, 2048)]
    for n, k in dims:
        for experts in (4, 8, 16, 32, 64, 128):
            for each in (1, 4, 16, 32, 64, 128, 256, 512, 1024, 4096):
                tokens = each * experts
                if late(0.7) or tokens > 65536 or experts * n * k > 4e9 or product is None:
                    continue
                if each in (1, 4, 32) and experts not in (8, 32, 128):
                    continue
                try:
                    x = torch.randn(tokens, k, device="cuda", dtype=torch.bfloat16)
                    w = torch.randn(experts, n, k, device="cuda", dtype=torch.bfloat16)
                    ends = torch.arange(1, experts + 1, device="cuda", dtype=torch.int32) * each
                    forward = gpu_ms(lambda x=x, w=w, e=ends: product(x, w.transpose(-2, -1), offs=e), 3, 20)
                    y = torch.randn(tokens, n, device="cuda", dtype=torch.bfloat16)
                    weight = None
                    if each >= 16:
                        weight = gpu_ms(lambda x=x, y=y, e=ends: product(y.t(), x, offs=e), 3, 20)
                    eight = None
                    if scaled is not None and each >= 16:
                        try:
                            x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
                            sx = torch.ones(tokens, device="cuda")
                            sw = torch.ones(experts, n, device="cuda")
                            eight = gpu_ms(
                                lambda a=x8, b=w8, p=sx, q=sw, e=ends, f=scaled: f(
                                    a, b.transpose(-2, -1), p, q, offs=e, out_dtype=torch.bfloat16
                                ), 3, 20
                            )  # fmt: skip
                        except (RuntimeError, TypeError, ValueError) as error:
                            print("fp8 grouped", str(error)[:100], flush=True)
                            scaled = None
                except (RuntimeError, torch.OutOfMemoryError) as error:
                    print("grouped", n, k, experts, each, str(error)[:100], flush=True)
                    torch.cuda.empty_cache()
                    continue
                rows.append(
                    {"tokens_per_expert": each, "experts": experts, "n": n, "k": k, "forward_ms": round(forward, 5),
                     "weight_gradient_ms": round(weight, 5) if weight else "", "fp8_ms": round(eight, 5) if eight else "",
                     "forward_tflops": round(2.0 * tokens * n * k / forward / 1e9, 1)}
                )  # fmt: skip
    write(out, "grouped.csv", rows)


def quantise(out: Path) -> None:
    """What making 8-bit copies costs beside the product that uses them: amax, cast, transpose; by tensor and by row."""
    rows: list[dict[str, object]] = []
    eight = torch.float8_e4m3fn
    for m, n, k in ((8192, 8192, 8192), (16384, 4096, 4096), (8192, 28672, 8192), (8192, 4096, 14336)):
        x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        x8, w8 = x.to(eight), w.to(eight)
        one = torch.ones((), device="cuda")
        sm, sn = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")
        timed: dict[str, Callable[[], object]] = {
            "amax": lambda x=x: x.abs().amax(),
            "amax_row": lambda x=x: x.abs().amax(dim=-1, keepdim=True),
            "cast": lambda x=x: x.to(eight),
            "cast_transpose": lambda x=x: x.t().contiguous().to(eight),
            "product_bf16": lambda x=x, w=w: x @ w.t(),
            "product_tensorwise": lambda a=x8, b=w8, s=one: torch._scaled_mm(a, b.t(), s, s, out_dtype=torch.bfloat16),
            "product_tensorwise_fast": lambda a=x8, b=w8, s=one: torch._scaled_mm(
                a, b.t(), s, s, out_dtype=torch.bfloat16, use_fast_accum=True
            ),
            "product_rowwise": lambda a=x8, b=w8, p=sm, q=sn: torch._scaled_mm(
                a, b.t(), p, q, out_dtype=torch.bfloat16, use_fast_accum=True
            ),
        }
        for name, call in timed.items():
            if late(0.8):
                continue
            try:
                rows.append({"m": m, "n": n, "k": k, "what": name, "ms": round(gpu_ms(call, 5, 40), 5)})
            except RuntimeError as error:
                print("quantise", name, str(error)[:100], flush=True)
    write(out, "quantise.csv", rows)


class Layer(torch.nn.Module):
    """A plain decoder layer, as most PyTorch code writes it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, hidden = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, seq, 3, hidden // 64, 64).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, seq, hidden))
        return x + self.down(F.gelu(self.up(self.second(x))))


def host(out: Path) -> None:
    """Host time per layer and microbatch where the GPU has next to nothing to do, and of the optimizer."""
    rows: list[dict[str, object]] = []
    layers, hidden = 16, 256
    model = torch.nn.ModuleList(Layer(hidden) for _ in range(layers)).cuda().bfloat16()
    x = torch.randn(1, 64, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)

    def plain() -> torch.Tensor:
        y = x
        for layer in model:
            y = layer(y)
        return y

    def checked() -> torch.Tensor:
        y = x
        for layer in model:
            y = checkpoint(layer, y, use_reentrant=False)
        return y

    def passes(run: Callable[[], torch.Tensor], repeats: int = 10) -> tuple[float, float]:
        forward, backward = [], []
        for _ in range(repeats + 3):
            torch.cuda.synchronize()
            start = time.perf_counter()
            loss = run().sum()
            middle = time.perf_counter()
            loss.backward()
            torch.cuda.synchronize()
            forward.append(middle - start)
            backward.append(time.perf_counter() - middle)
        return median(forward[3:]) / layers * 1e6, median(backward[3:]) / layers * 1e6

    for name, run in (("eager", plain), ("eager_checkpoint", checked)):
        forward, backward = passes(run)
        rows.append({"what": name, "forward_us": round(forward, 1), "backward_us": round(backward, 1)})
    with torch.autocast("cuda", dtype=torch.bfloat16):
        model.float()
        forward, backward = passes(plain)
        rows.append({"what": "autocast", "forward_us": round(forward, 1), "backward_us": round(backward, 1)})
    model.bfloat16()
    plain().sum().backward()
    for fused in (False, True):
        step = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused).step
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(10):
            step()
        torch.cuda.synchronize()
        each = (time.perf_counter() - start) / 10 / layers * 1e6
        rows.append({"what": f"adamw_{'fused' if fused else 'foreach'}_per_layer", "forward_us": round(each, 1)})
    if not late(0.85):
        try:
            quick = torch.compile(model[0], dynamic=False)

            def compiled() -> torch.Tensor:
                y = x
                for _ in range(layers):
                    y = quick(y)
                return y

            forward, backward = passes(compiled)
            rows.append({"what": "compiled", "forward_us": round(forward, 1), "backward_us": round(backward, 1)})
        except Exception as error:  # a compiler that is not there is no reason to lose the rest
            print("compile", str(error)[:100], flush=True)
    write(out, "host.csv", rows)


def sustained(out: Path) -> None:
    """Clock, power and rate of each unit under seconds of load: products, attention, copies."""
    rows: list[dict[str, object]] = []
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    a8 = a.to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    q = torch.randn(4, 32, 8192, 128, device="cuda", dtype=torch.bfloat16)
    big = torch.empty(2**30, device="cuda", dtype=torch.bfloat16)
    target = torch.empty_like(big)

    def cudnn() -> object:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, q, q, is_causal=True)

    def flash() -> object:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(q, q, q, is_causal=True)

    work: dict[str, tuple[Callable[[], object], float]] = {
        "product_bf16": (lambda: a @ a, 2 * 8192.0**3),
        "product_fp8": (lambda: torch._scaled_mm(a8, a8.t(), one, one, out_dtype=torch.bfloat16), 2 * 8192.0**3),
        "attention_cudnn": (cudnn, 4 * 4 * 32 * 8192.0**2 / 2 * 128),
        "attention_fa2": (flash, 4 * 4 * 32 * 8192.0**2 / 2 * 128),
        "copy": (lambda: target.copy_(big), 2 * 2.0 * 2**30),
    }
    for name, (call, amount) in work.items():
        if late(0.98):
            break
        seen: list[tuple[float, float]] = []
        stop = threading.Event()

        def watch(seen: list[tuple[float, float]] = seen, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                asked = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"]
                text = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
                if text:
                    clock, power = text[0].split(",")[:2]
                    seen.append((float(clock), float(power)))
                stop.wait(0.25)

        short = gpu_ms(call, 3, 20)
        thread = threading.Thread(target=watch)
        thread.start()
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < 3.0:
            for _ in range(8):
                call()
            torch.cuda.synchronize()
            calls += 8
        spent = time.perf_counter() - start
        stop.set()
        thread.join()
        last = seen[len(seen) // 2 :] or [(0.0, 0.0)]
        rows.append(
            {"what": name, "short_per_s": f"{amount / short * 1e3:.5g}", "sustained_per_s": f"{amount * calls / spent:.5g}",
             "clock_mhz": median(c for c, _ in last), "power_w": median(p for _, p in last)}
        )  # fmt: skip
    write(out, "sustained.csv", rows)


def main() -> None:
    """All parts, each into its own file."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    out.mkdir(parents=True, exist_ok=True)
    print(torch.__version__, torch.cuda.get_device_name(), flush=True)
    for part in (attention, grouped, quantise, host, sustained):
        try:
            part(out)
        except Exception as error:  # the other tables are worth having
            print(part.__name__, "failed:", str(error)[:300], flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
