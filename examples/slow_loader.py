"""A training script whose loader is too slow: each sample takes 2 ms to prepare, in the training process itself."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SlowImages(Dataset):
    """Stands for decoding and augmenting an image."""

    def __len__(self) -> int:
        return 480

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.002)
        return torch.randn(3, 32, 32), index % 10


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)).to(
    device
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for images, labels in DataLoader(SlowImages(), batch_size=16):
    loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
