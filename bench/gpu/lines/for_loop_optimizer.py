"""A deep, narrow net with AdamW that updates one parameter after the other."""

import torch
from torch import nn

WIDTH, LAYERS, STEPS = 256, 200, 200

model = nn.Sequential(*(layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU()))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False, fused=False)
x = torch.randn(512, WIDTH, device="cuda")
for step in range(STEPS):
    loss = model(x).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()  # LINE
    if step % 50 == 0:
        print("step", step, flush=True)
