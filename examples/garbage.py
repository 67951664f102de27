"""A training script whose side structures make Python's garbage collector stop the loop again and again."""

import gc

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = [{"id": i, "children": [[i], [i + 1]]} for i in range(300_000)]  # many small objects that live on
gc.set_threshold(200, 2, 2)
for step in range(60):
    cells = [[n] for n in range(2_000)]  # enough new objects to trigger collections
    x, y = torch.randn(32, 64, device=device), torch.randint(0, 10, (32,), device=device)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history[step % len(history)]["cells"] = cells
