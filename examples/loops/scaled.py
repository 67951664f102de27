"""Mixed precision with a gradient scaler, accumulation, clipping in the right order and an honest timer."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import stallwise

ACCUMULATE = 4


def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> float:
    """Mean loss on held-out data; one read at the end."""
    model.eval()
    total = torch.zeros((), device=device)
    with torch.inference_mode():
        for x, y in loader:
            total += F.cross_entropy(model(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
    model.train()
    return total.item() / len(loader)


def train(model: nn.Module, loader: DataLoader, held_out: DataLoader, device: torch.device) -> None:
    """One epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=device.type == "cuda")
    scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
    for step, (x, y) in enumerate(stallwise.steps(loader)):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.float16, enabled=device.type == "cuda"):
            loss = F.cross_entropy(model(x), y) / ACCUMULATE
        scaler.scale(loss).backward()
        if (step + 1) % ACCUMULATE == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
        log_now = step % 100 == 0
        if log_now:
            print(step, loss.item() * ACCUMULATE, evaluate(model, held_out, device))


def main() -> None:
    """Small data, so that it runs anywhere."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(2048, 64), torch.randint(0, 10, (2048,)))
    loaders = [DataLoader(data, batch_size=32, num_workers=1, pin_memory=device.type == "cuda") for _ in range(2)]
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    train(model, loaders[0], loaders[1], device)


if __name__ == "__main__":
    main()
