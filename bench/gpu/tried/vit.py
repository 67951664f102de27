"""ViT in float32, pictures decoded and augmented by two loader workers."""

import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn
from torch.nn import functional as F

L, C, H, P, S, B = size(8, 2), size(512, 32), size(8, 2), size(16, 8), size(224, 32), size(48, 4)


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        raw = torch.randint(0, 256, (3, S + 32, S + 32), dtype=torch.uint8, generator=g).float() / 255
        y, x = torch.randint(0, 32, (2,), generator=g).tolist()
        cut = raw[:, y : y + S, x : x + S]
        cut = F.interpolate(cut[None], size=(S, S), mode="bilinear", antialias=True)[0]
        return (cut - 0.45) / 0.23, i % 1000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.o = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, H, c // H).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c)
        x = x + self.o(y)
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, C, P, stride=P)
        self.pos = nn.Parameter(torch.zeros(1, (S // P) ** 2, C))
        self.layers = nn.Sequential(*(Layer() for _ in range(L)))
        self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, 1000)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.norm(self.layers(x)).mean(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    if CHANGE == "tf32":
        torch.set_float32_matmul_precision("high")
    model = ViT().to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=B, num_workers=2, pin_memory=DEVICE == "cuda")
    batches, batch = iter(loader), None
    for _step in steps():
        if batch is None or CHANGE != "last-batch-again":
            batch = next(batches)
        x, y = (t.to(DEVICE, non_blocking=True) for t in batch)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=CHANGE == "bf16-autocast"):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
