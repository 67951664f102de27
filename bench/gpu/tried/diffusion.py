"""A small denoising U-Net in float32, NCHW, with group norm; noise is made on the device."""

import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn
from torch.nn import functional as F

W, S, B = size(128, 16), size(64, 16), size(16, 2)


class Res(nn.Module):
    def __init__(self, a, b, t):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, a), nn.Conv2d(a, b, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(8, b), nn.Conv2d(b, b, 3, padding=1)
        self.t, self.skip = nn.Linear(t, b), nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.c2(F.silu(self.n2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        t = 4 * W
        self.time = nn.Sequential(nn.Linear(W, t), nn.SiLU(), nn.Linear(t, t))
        self.first = nn.Conv2d(3, W, 3, padding=1)
        self.d1, self.d2, self.d3 = Res(W, W, t), Res(W, 2 * W, t), Res(2 * W, 2 * W, t)
        self.mid = Res(2 * W, 2 * W, t)
        self.u3, self.u2, self.u1 = Res(4 * W, 2 * W, t), Res(4 * W, W, t), Res(2 * W, W, t)
        self.last = nn.Sequential(nn.GroupNorm(8, W), nn.SiLU(), nn.Conv2d(W, 3, 3, padding=1))

    def forward(self, x, t):
        f = torch.exp(-torch.arange(W // 2, device=x.device) * 9.2 / (W // 2))
        e = t.float()[:, None] * f
        e = self.time(torch.cat([e.sin(), e.cos()], 1))
        a = self.d1(self.first(x), e)
        b = self.d2(F.avg_pool2d(a, 2), e)
        c = self.d3(F.avg_pool2d(b, 2), e)
        h = self.mid(c, e)
        h = self.u3(torch.cat([h, c], 1), e)
        h = self.u2(torch.cat([F.interpolate(h, scale_factor=2), b], 1), e)
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2), a], 1), e)
        return self.last(h)


torch.manual_seed(0)
torch.backends.cudnn.benchmark = CHANGE == "cudnn-benchmark"
model = UNet().to(DEVICE)
if CHANGE == "channels-last":
    model = model.to(memory_format=torch.channels_last)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device=DEVICE), 0)
pictures = torch.rand(64, 3, S, S, device=DEVICE)
for _step in steps():
    x = pictures[torch.randint(0, 64, (B,), device=DEVICE)]
    t = torch.randint(0, 1000, (B,), device=DEVICE)
    noise = torch.randn_like(x)
    a = alphas[t][:, None, None, None]
    noisy = a.sqrt() * x + (1 - a).sqrt() * noise
    if CHANGE == "channels-last":
        noisy = noisy.contiguous(memory_format=torch.channels_last)
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=CHANGE == "bf16-autocast"):
        loss = F.mse_loss(model(noisy, t), noise)
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
