"""ResNet-50 under Lightning; decoding and transforms in the main process."""

import time

import torch
import torchvision
from torchvision.transforms import v2

try:
    import lightning
except ImportError:  # the same under its older name
    import pytorch_lightning as lightning

torch.set_float32_matmul_precision("high")
look = v2.Compose(
    [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]
)


class Pictures(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 32 * 36

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        return look(torch.randint(0, 256, (3, 256, 256), dtype=torch.uint8)), at % 1000


class Net(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torchvision.models.resnet50()
        self.begin = time.perf_counter()

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        if index % 4 == 3:
            now = time.perf_counter()
            print(f"batch {index} {(now - self.begin) / 4 * 1e3:.1f} ms", flush=True)
            self.begin = now
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


trainer = lightning.Trainer(
    max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, precision="bf16-mixed"
)
trainer.fit(Net(), torch.utils.data.DataLoader(Pictures(), batch_size=32, num_workers=0))
