"""Message passing over sampled graphs: gathers, scatters, small layers; statistics are read for the log every step."""

import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn

N, E, C, L, GRAPHS = size(20_000, 200), size(160_000, 800), size(128, 16), 6, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.Sequential(nn.Linear(2 * C, C), nn.SiLU(), nn.Linear(C, C))
        self.g, self.n = nn.Linear(C, C), nn.LayerNorm(C)

    def forward(self, x, src, dst):
        m = self.m(torch.cat([x[src], x[dst]], 1))
        out = torch.zeros_like(x).index_add_(0, dst, m)
        return x + torch.sigmoid(self.g(x)) * self.n(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.layers, self.leave = (
            nn.Linear(32, C),
            nn.ModuleList(Layer() for _ in range(L)),
            nn.Linear(C, 10),
        )

    def forward(self, x, src, dst):
        x = self.enter(x)
        for layer in self.layers:
            x = layer(x, src, dst)
        return self.leave(x)


torch.manual_seed(0)
if CHANGE == "tf32":
    torch.set_float32_matmul_precision("high")
model = Net().to(DEVICE)
run = torch.compile(model) if CHANGE == "compile" else model
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
graphs = [
    (
        torch.randn(N, 32).to(DEVICE),
        torch.randint(0, N, (E,)).to(DEVICE),
        torch.randint(0, N, (E,)).to(DEVICE),
        torch.randint(0, 10, (N,)).to(DEVICE),
    )
    for _ in range(GRAPHS)
]
history = []
for step in steps():
    x, src, dst, y = graphs[step % GRAPHS]
    out = run(x, src, dst)
    loss = nn.functional.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if CHANGE != "stale-reads":
        grads = sum(float(p.grad.norm()) for p in model.parameters())
        history.append((loss.item(), grads, (out.argmax(1) == y).float().mean().item()))
