"""A training script that collects garbage by hand after every step, with many live objects to walk over."""

import gc

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
vocabulary = [{"id": i, "pieces": [[i], [i + 1]]} for i in range(150_000)]  # a tokenizer written in Python, say
for _ in range(40):
    x, y = torch.randn(32, 64, device=device), torch.randint(0, 10, (32,), device=device)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect()
