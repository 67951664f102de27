"""A convolution net on made-up pictures; every sample is blurred in Python, in the main process."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, BATCH, STEPS = 64, 32, 160


class Pictures(Dataset):
    def __init__(self) -> None:
        self.pixels = torch.rand(BATCH * STEPS, SIZE)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, i: int):
        row = self.pixels[i].tolist()
        rows = [[(a * b + 0.1) ** 0.5 for a in row] for b in row]  # LINE
        return torch.tensor(rows).unsqueeze(0), i % 10


model = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)
).cuda()
model(torch.zeros(1, 1, SIZE, SIZE, device="cuda"))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step, (x, y) in enumerate(DataLoader(Pictures(), batch_size=BATCH, pin_memory=True)):
    loss = F.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print("step", step, flush=True)
