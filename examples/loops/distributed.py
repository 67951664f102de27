"""Data-parallel training where every rank makes the same calls, with recompute and checkpoints off the main path."""

import copy
import os
import threading

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.backends.cuda.matmul.allow_tf32 = True


class Net(nn.Module):
    """Blocks without dropout, recomputed in the backward pass."""

    def __init__(self, width: int = 256, depth: int = 4) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores."""
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
        return self.head(x)


def save_later(state: dict[str, torch.Tensor]) -> threading.Thread:
    """Writes a copy of the state from a thread."""
    thread = threading.Thread(target=torch.save, args=(copy.deepcopy(state), "model.pt"))
    thread.start()
    return thread


def main() -> None:
    """torchrun --nproc-per-node 2 distributed.py"""
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    data = TensorDataset(torch.randn(4096, 256), torch.randint(0, 10, (4096,)))
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=32, sampler=sampler, num_workers=1, pin_memory=device.type == "cuda")
    model = DistributedDataParallel(Net().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), fused=device.type == "cuda")
    seen = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        seen += loss.detach()
        if step % 50 == 0:
            mean = seen.clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(step, (mean / dist.get_world_size() / (step + 1)).item())
    if rank == 0:
        save_later(model.module.state_dict()).join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
