"""A GPT in bfloat16 autocast that writes its attention out and reads the loss every step."""

import math

import torch
from clock import CHANGE, DEVICE, drain, size, steps
from torch import nn
from torch.nn import functional as F

L, C, H, T, V, B = size(6, 2), size(768, 64), size(12, 4), size(1024, 64), size(32768, 256), size(8, 2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
        self.register_buffer("bias", torch.tril(torch.ones(T, T)).view(1, 1, T, T))

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (m.view(b, t, H, c // H).transpose(1, 2) for m in (q, k, v))
        if CHANGE == "fused-attention":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.h, self.ln = nn.ModuleList(Block() for _ in range(L)), nn.LayerNorm(C)
        self.head = nn.Linear(C, V, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln(x))
        return F.cross_entropy(logits.view(-1, V), targets.reshape(-1))


torch.manual_seed(0)
model = GPT().to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=DEVICE == "cuda")
run = torch.compile(model) if CHANGE == "compile" else model
data = torch.randint(0, V, (200_000,), generator=torch.Generator().manual_seed(1))
for _step in steps():
    at = torch.randint(0, len(data) - T - 1, (B,)).tolist()
    xy = torch.stack([data[i : i + T + 1] for i in at]).to(DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        loss = run(xy[:, :-1], xy[:, 1:])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad(set_to_none=True)
    if CHANGE != "stale-reads":
        lossf = loss.item()
        drain()
