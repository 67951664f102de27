"""A training step captured into a CUDA graph after a warm-up, then replayed: no module is called in the loop any more."""

import time

import torch
from torch import nn

model = nn.Sequential(*[m for _ in range(24) for m in (nn.Linear(512, 512), nn.GELU())]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
x = torch.randn(64, 512, device="cuda")


def step() -> None:
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(11):  # into the steps that a recorder likes to trace
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
begin = time.perf_counter()
for n in range(6000):
    graph.replay()
    if n % 500 == 499:
        torch.cuda.synchronize()
        print(
            f"step {n + 1} {float(model[0].weight.sum()):.4f} {(time.perf_counter() - begin) / 500 * 1e3:.3f} ms",
            flush=True,
        )
        begin = time.perf_counter()
