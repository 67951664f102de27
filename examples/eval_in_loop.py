"""A training script that evaluates on a held-out set after every single step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(1024, 256), torch.randint(0, 10, (1024,)))
held_out = torch.randn(8192, 256, device=device)
for x, y in DataLoader(data, batch_size=16):
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        for part in held_out.split(1024):
            model(part)
    model.train()
