"""A training script that writes its whole state to disk on the training thread every few steps."""

import tempfile
from pathlib import Path

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(device)
ballast = torch.randn(12_000_000)  # 48 MB of state that every checkpoint carries
optimizer = torch.optim.AdamW(model.parameters())
path = Path(tempfile.mkdtemp()) / "checkpoint.pt"
for step in range(40):
    x, y = torch.randn(32, 256, device=device), torch.randint(0, 10, (32,), device=device)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "ballast": ballast}, path)
