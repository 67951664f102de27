"""A sine wave fitted by LBFGS: every step calls its closure up to twenty times."""

import time

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-8, 8, 20000, device="cuda", dtype=torch.float64)[:, None]
y = torch.sin(2 * x) + 0.1 * x
model = nn.Sequential(nn.Linear(1, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)).cuda().double()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=20, history_size=20)


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for n in range(40):
    begin = time.perf_counter()
    loss = float(optimizer.step(closure))
    print(f"step {n} loss {loss:.5f} {(time.perf_counter() - begin) * 1e3:.2f} ms", flush=True)
