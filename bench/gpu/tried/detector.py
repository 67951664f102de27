"""A single-stage detector in float32: strided backbone, feature pyramid, targets made per picture; an image loader in the process."""

import torch
from clock import CHANGE, DEVICE, size, steps
from torch import nn
from torch.nn import functional as F

W, S, B = size(64, 8), size(320, 64), size(8, 2)


class Scenes(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.rand(3, S, S, generator=g)
        if i % 2:
            x = x.flip(-1)
        x = F.avg_pool2d(x[None], 3, stride=1, padding=1)[0]
        boxes = torch.rand(5, 4, generator=g).sort(1).values * S
        return x, boxes


def conv(a, b, stride=1):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(3, W, 2), conv(W, W))
        self.c3 = nn.Sequential(conv(W, 2 * W, 2), conv(2 * W, 2 * W), conv(2 * W, 2 * W))
        self.c4 = nn.Sequential(conv(2 * W, 4 * W, 2), conv(4 * W, 4 * W), conv(4 * W, 4 * W))
        self.c5 = nn.Sequential(conv(4 * W, 8 * W, 2), conv(8 * W, 8 * W))
        self.lat = nn.ModuleList(nn.Conv2d(k * W, 2 * W, 1) for k in (2, 4, 8))
        self.head = nn.Sequential(conv(2 * W, 2 * W), conv(2 * W, 2 * W), nn.Conv2d(2 * W, 5, 1))

    def forward(self, x):
        c3 = self.c3(self.stem(x))
        c4 = self.c4(c3)
        c5 = self.c5(c4)
        p5 = self.lat[2](c5)
        p4 = self.lat[1](c4) + F.interpolate(p5, size=c4.shape[-2:])
        p3 = self.lat[0](c3) + F.interpolate(p4, size=c3.shape[-2:])
        return [self.head(p) for p in (p3, p4, p5)]


def targets(shape, boxes, device):
    h, w = shape[-2:]
    t = torch.zeros(len(boxes), h, w, device=device)
    for n, found in enumerate(boxes):
        scaled = (found * h / S).long().clamp(0, h - 1).tolist()
        for x0, y0, x1, y1 in scaled:
            t[n, y0 : y1 + 1, x0 : x1 + 1] = 1.0
    return t


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Detector().to(DEVICE)
    if CHANGE == "channels-last":
        model = model.to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches, batch = iter(torch.utils.data.DataLoader(Scenes(), batch_size=B)), None
    for _step in steps():
        if batch is None or CHANGE != "last-batch-again":
            batch = next(batches)
        x, boxes = batch
        x = x.to(DEVICE)
        if CHANGE == "channels-last":
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=CHANGE == "bf16-autocast"):
            loss = 0.0
            for out in model(x):
                t = targets(out.shape, boxes, DEVICE)
                loss = loss + F.binary_cross_entropy_with_logits(out[:, 0], t) + out[:, 1:].abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
