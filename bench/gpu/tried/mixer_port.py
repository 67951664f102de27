"""An MLP-Mixer carried over from JAX: parameters in a dict, Adam written by hand, no optimizer object."""

import torch
from clock import CHANGE, DEVICE, size, steps
from torch.nn import functional as F

L, T, C, B = size(8, 2), size(196, 16), size(512, 16), size(64, 4)
if CHANGE == "tf32":
    torch.set_float32_matmul_precision("high")


class Mixer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        made = {"in": torch.randn(768, C) * 0.02, "out": torch.randn(C, 1000) * 0.02}
        for i in range(L):
            made.update({f"t1_{i}": torch.randn(T, 256) * 0.02, f"t2_{i}": torch.randn(256, T) * 0.02})
            made.update({f"c1_{i}": torch.randn(C, 4 * C) * 0.02, f"c2_{i}": torch.randn(4 * C, C) * 0.02})
        self.p = torch.nn.ParameterDict(made)

    def forward(self, x):
        p, x = self.p, x @ self.p["in"]
        for i in range(L):
            h = F.layer_norm(x, (C,)).transpose(1, 2)
            x = x + (F.gelu(h @ p[f"t1_{i}"]) @ p[f"t2_{i}"]).transpose(1, 2)
            x = x + F.gelu(F.layer_norm(x, (C,)) @ p[f"c1_{i}"]) @ p[f"c2_{i}"]
        return x.mean(1) @ p["out"]


torch.manual_seed(0)
model = Mixer().to(DEVICE)
run = torch.compile(model) if CHANGE == "compile" else model
m = {k: torch.zeros_like(v) for k, v in model.p.items()}
v = {k: torch.zeros_like(w) for k, w in model.p.items()}
data = torch.randn(4, B, T, 768, device=DEVICE)
label = torch.randint(0, 1000, (4, B), device=DEVICE)
for step in steps():
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=CHANGE == "bf16-autocast"):
        loss = F.cross_entropy(run(data[step % 4]), label[step % 4])
    grads = torch.autograd.grad(loss, list(model.p.values()))
    with torch.no_grad():
        for (k, w), g in zip(model.p.items(), grads, strict=False):
            m[k] = 0.9 * m[k] + 0.1 * g
            v[k] = 0.999 * v[k] + 0.001 * g * g
            w -= 1e-4 * m[k] / (v[k].sqrt() + 1e-8)
