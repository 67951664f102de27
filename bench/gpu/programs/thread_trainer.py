"""Training in a thread of its own beside a main thread that only waits, as programs with a window or a server do."""

import threading
import time

import torch
from torch import nn


def train() -> None:
    model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(12)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    begin = time.perf_counter()
    for n in range(1600):
        loss = model(torch.randn(512, 2048, device="cuda")).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % 50 == 49:
            print(f"step {n + 1} loss {float(loss):.4f} {(time.perf_counter() - begin) / 50 * 1e3:.2f} ms", flush=True)
            begin = time.perf_counter()


thread = threading.Thread(target=train)
thread.start()
thread.join()
