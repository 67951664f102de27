"""Whisper-like: a convolutional stem, encoder and decoder with attention written out, bfloat16 autocast, pageable inputs."""

import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn
from torch.nn import functional as F

L, C, H, M, TA, TT, V, B = (
    size(4, 1),
    size(512, 32),
    size(8, 2),
    size(80, 8),
    size(1500, 48),
    size(224, 12),
    size(16000, 100),
    size(16, 2),
)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = nn.Linear(C, C), nn.Linear(C, C, bias=False), nn.Linear(C, C), nn.Linear(C, C)

    def forward(self, x, source=None, mask=None):
        source = x if source is None else source
        b, t, c = x.shape
        q, k, v = self.q(x), self.k(source), self.v(source)
        q, k, v = (m.view(b, -1, H, c // H).permute(0, 2, 1, 3) for m in (q, k, v))
        if CHANGE == "fused-attention":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)
        else:
            scale = (c // H) ** -0.25
            qk = (q * scale) @ (k * scale).transpose(-1, -2)
            if mask is not None:
                qk = qk + mask[:t, :t]
            y = F.softmax(qk.float(), dim=-1).to(q.dtype) @ v
        return self.o(y.permute(0, 2, 1, 3).flatten(2))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.a, self.na = Attention(), nn.LayerNorm(C)
        self.x, self.nx = (Attention(), nn.LayerNorm(C)) if cross else (None, None)
        self.mlp, self.nm = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C)), nn.LayerNorm(C)

    def forward(self, x, source=None, mask=None):
        x = x + self.a(self.na(x), mask=mask)
        if self.x is not None:
            x = x + self.x(self.nx(x), source)
        return x + self.mlp(self.nm(x))


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(M, C, 3, padding=1), nn.Conv1d(C, C, 3, stride=2, padding=1)
        self.encoder = nn.ModuleList(Layer(False) for _ in range(L))
        self.words, self.places = nn.Embedding(V, C), nn.Parameter(torch.zeros(TT, C))
        self.decoder = nn.ModuleList(Layer(True) for _ in range(L))
        self.register_buffer("mask", torch.full((TT, TT), float("-inf")).triu_(1))

    def forward(self, mel, text):
        x = F.gelu(self.c2(F.gelu(self.c1(mel)))).transpose(1, 2)
        for layer in self.encoder:
            x = layer(x)
        y = self.words(text) + self.places
        for layer in self.decoder:
            y = layer(y, x, self.mask)
        return y @ self.words.weight.t()


torch.manual_seed(0)
model = Speech().to(DEVICE)
run = torch.compile(model) if CHANGE == "compile" else model
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
pin = CHANGE == "pinned-copies" and DEVICE == "cuda"
mels = [torch.randn(B, M, 2 * TA) for _ in range(4)]
texts = [torch.randint(0, V, (B, TT + 1)) for _ in range(4)]
for step in steps():
    mel, text = mels[step % 4], texts[step % 4]
    if pin:
        mel, text = mel.pin_memory(), text.pin_memory()
    mel, text = mel.to(DEVICE, non_blocking=pin), text.to(DEVICE, non_blocking=pin)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        logits = run(mel, text[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, V), text[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
