"""A large MLP whose history keeps every loss with the graph that made it."""

import torch
from torch import nn

WIDTH, BATCH, STEPS = 2048, 4096, 300

model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU()))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
history = []
for step in range(STEPS):
    x = torch.randn(BATCH, WIDTH, device="cuda")
    output = model(x)
    loss = (output - x).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    history.append((output - x).abs().mean(0))  # LINE
    if step % 50 == 0:
        print("step", step, flush=True)
