"""LoRA adapters on a frozen bfloat16 decoder, with activation checkpointing of every block."""

import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

L, C, H, T, V, B, R = size(8, 2), size(1024, 32), size(16, 2), size(1024, 32), size(32000, 100), size(4, 2), 8
TYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32


class Lora(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.base = nn.Linear(i, o, bias=False)
        self.base.weight.requires_grad_(False)
        self.a, self.b = nn.Linear(i, R, bias=False), nn.Linear(R, o, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + 2.0 * self.b(self.a(x))


class RMS(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(C), requires_grad=False)

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.w


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = RMS(), RMS()
        self.q, self.k, self.v, self.o = (Lora(C, C) for _ in range(4))
        self.gate, self.up, self.down = Lora(C, 3 * C), Lora(C, 3 * C), Lora(3 * C, C)

    def forward(self, x):
        b, t, c = x.shape
        h = self.n1(x)
        q, k, v = (m(h).view(b, t, H, c // H).transpose(1, 2) for m in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.o(y)
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.blocks, self.n = nn.Embedding(V, C), nn.ModuleList(Block() for _ in range(L)), RMS()
        self.head = nn.Linear(C, V, bias=False)
        for p in (self.words.weight, self.head.weight):
            p.requires_grad_(False)

    def forward(self, x, y):
        h = self.words(x).requires_grad_(True)
        for block in self.blocks:
            h = block(h) if CHANGE == "no-recompute" else checkpoint(block, h, use_reentrant=False)
        return F.cross_entropy(self.head(self.n(h)).float().view(-1, V), y.reshape(-1))


torch.manual_seed(0)
model = Decoder().to(DEVICE, TYPE)
run = torch.compile(model) if CHANGE == "compile" else model
how = {"fused": True, "foreach": False} if CHANGE == "fused-optimizer" else {"foreach": False}
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, **how)
data = torch.randint(0, V, (8, B, T + 1)).to(DEVICE)
for step in steps():
    xy = data[step % 8]
    loss = run(xy[:, :-1], xy[:, 1:])
    loss.backward()
    opt.step()
    opt.zero_grad()
