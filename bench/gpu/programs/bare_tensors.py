"""Power iteration with tensors alone: no module, no optimizer, no gradient, no loader."""

import time

import torch

matrix = torch.randn(6144, 6144, device="cuda")
vector = torch.randn(6144, 64, device="cuda")
begin = time.perf_counter()
for n in range(60000):
    vector = matrix @ vector
    vector /= vector.norm()
    if n % 3000 == 2999:
        print(
            f"iteration {n + 1} {float(vector.sum()):.4f} {(time.perf_counter() - begin) / 3000 * 1e3:.3f} ms",
            flush=True,
        )
        begin = time.perf_counter()
