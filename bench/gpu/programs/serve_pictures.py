"""Batched inference: a loader with workers, ResNet-50 in fp32, no gradients, the answer copied back every batch."""

import time

import torch
import torchvision


class Pictures(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64 * 150

    def __getitem__(self, at: int) -> torch.Tensor:
        return torch.full((3, 224, 224), at % 7 / 7)


model = torchvision.models.resnet50().cuda().eval()
begin = time.perf_counter()
with torch.inference_mode():
    for n, batch in enumerate(torch.utils.data.DataLoader(Pictures(), batch_size=64, num_workers=6, pin_memory=True)):
        best = model(batch.cuda(non_blocking=True)).argmax(1).cpu()
        if n % 10 == 9:
            print(f"batch {n + 1} {(time.perf_counter() - begin) / 10 * 1e3:.2f} ms a batch", int(best[0]), flush=True)
            begin = time.perf_counter()
