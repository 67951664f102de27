"""Recommendation: embedding bags, two small MLPs, float32; rows are put together in Python, in the training process."""

import numpy as np
import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn

TABLES, ROWS, D, B = size(16, 3), size(200_000, 500), size(64, 8), size(2048, 16)


class Clicks(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        dense = np.log1p(rng.random(13, dtype=np.float32) * 100)
        return torch.from_numpy(dense), torch.from_numpy(rng.integers(0, ROWS, TABLES)), float(i % 2)


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, D, mode="sum") for _ in range(TABLES))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, D), nn.ReLU())
        pairs = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(
            nn.Linear(D + pairs, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1)
        )

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        found = [x] + [t(sparse[:, i : i + 1]) for i, t in enumerate(self.tables)]
        z = torch.stack(found, dim=1)
        z = torch.bmm(z, z.transpose(1, 2))
        i, j = torch.tril_indices(z.size(1), z.size(1), offset=-1, device=z.device)
        return self.top(torch.cat([x, z[:, i, j]], dim=1)).squeeze(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    if CHANGE == "tf32":
        torch.set_float32_matmul_precision("high")
    model = DLRM().to(DEVICE)
    how = {"fused": True, "foreach": False} if CHANGE == "fused-optimizer" else {"foreach": False}
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, **how)
    batches = iter(torch.utils.data.DataLoader(Clicks(), batch_size=B, shuffle=False))
    batch = None
    for _step in steps():
        if batch is None or CHANGE != "last-batch-again":
            batch = next(batches)
        dense, sparse, label = (t.to(DEVICE) for t in batch)
        loss = nn.functional.binary_cross_entropy_with_logits(model(dense, sparse), label.float())
        opt.zero_grad()
        loss.backward()
        opt.step()
