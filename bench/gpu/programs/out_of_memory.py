"""Grows its batch until the card is full: ends with an exception."""

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(8192, 8192) for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for n in range(60):
    loss = model(torch.randn(1024 * 2**n if n > 12 else 1024, 8192, device="cuda")).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {n} loss {float(loss):.4f}", flush=True)
