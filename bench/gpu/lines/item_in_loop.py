"""A small transformer; the loss of every sample is read back for a running mean."""

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, BATCH, SEQ, STEPS = 8192, 16, 128, 200


def read(losses: torch.Tensor, mean: float) -> float:
    for one in losses:
        mean = 0.99 * mean + 0.01 * one.item()  # LINE
    return mean


model = nn.Sequential(
    nn.Embedding(VOCAB, 512),
    nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0), 4),
    nn.Linear(512, VOCAB),
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
mean = 0.0
for step in range(STEPS):
    ids = torch.randint(0, VOCAB, (BATCH, SEQ), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(ids)
    losses = F.cross_entropy(logits.float().flatten(0, 1), ids.flatten(), reduction="none").view(BATCH, SEQ)
    mean = read(losses.flatten()[:512], mean)
    optimizer.zero_grad(set_to_none=True)
    losses.mean().backward()
    optimizer.step()
    if step % 50 == 0:
        print("step", step, flush=True)
