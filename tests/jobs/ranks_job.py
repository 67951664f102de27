"""One rank of a small real training job on CPU (gloo): replicas of a pipeline, with one planted fault.

torchrun --nproc-per-node WORLD ranks_job.py FOLDER STAGES FAULT STYLE [STEPS]

FAULT: well, worker (the passes of the last rank take longer), stage (those of the last stage of every replica do), sequence
(microbatches differ in length). STYLE: library (torch.distributed.pipelining, 1F1B), spans (own loop with named spans), plain
(own loop without names), ddp (DistributedDataParallel, one stage). FOLDER "-": somebody else records.
A layer waits as long as a device would compute, so that a busy machine does not change what is planted.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from planted import LONG, MICROBATCHES, SLOW, STEPS, TOKEN_S, WIDTH
from torch.profiler import ProfilerActivity, profile, record_function, schedule


class Waits(torch.autograd.Function):
    """A layer whose passes take their time: backward twice as long as forward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, seconds: float) -> torch.Tensor:
        ctx.seconds = seconds
        time.sleep(seconds)
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        time.sleep(2 * ctx.seconds)
        return grads[0], None


class Stage(torch.nn.Module):
    """A part of the model; the first number of a microbatch is its length."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.layer, self.factor = torch.nn.Linear(WIDTH, WIDTH), factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = float(x.detach()[0, 0])
        out = Waits.apply(self.layer(x), TOKEN_S * self.factor * length)
        return torch.cat((x[:, :1].detach(), out[:, 1:]), dim=1)


def batch(step: int, replica: int, fault: str) -> torch.Tensor:
    """Microbatches of two rows each."""
    x = torch.randn(2 * MICROBATCHES, WIDTH)
    x[:, 0] = 1.0
    if fault == "sequence":
        for at in range(MICROBATCHES):
            x[2 * at : 2 * at + 2, 0] = LONG[(at + step + 2 * replica) % MICROBATCHES]
    return x


class OwnPipeline:
    """1F1B as people write it: sends and receives between neighbours."""

    def __init__(
        self, module: Stage, stage: int, stages: int, group: Any, first: int, stride: int, spans: bool
    ) -> None:
        self.module, self.stage, self.stages, self.group, self.spans = module, stage, stages, group, spans
        self.sent: list[Any] = []
        self.before, self.after = first + (stage - 1) * stride, first + (stage + 1) * stride

    def span(self, name: str) -> AbstractContextManager[Any]:
        return record_function(name) if self.spans else nullcontext()

    def forward(self, parts: list[torch.Tensor], kept: list[Any]) -> None:
        x = parts[len(kept)] if self.stage == 0 else torch.empty(2, WIDTH)
        if self.stage > 0:
            dist.recv(x, self.before)
            x.requires_grad_()
        with self.span("forward"):
            y = self.module(x)
        if self.stage < self.stages - 1:
            self.sent.append(dist.isend(y.detach(), self.after))
        kept.append((x, y))

    def backward(self, kept: list[Any], at: int) -> None:
        x, y = kept[at]
        grad = torch.ones(2, WIDTH)
        if self.stage < self.stages - 1:
            dist.recv(grad, self.after)
        with self.span("backward"):
            y.backward(grad)
        if self.stage > 0:
            self.sent.append(dist.isend(x.grad, self.before))

    def step(self, x: torch.Tensor) -> None:
        parts, kept = list(x.split(2)), list[Any]()
        ahead = min(self.stages - 1 - self.stage, MICROBATCHES)
        for _ in range(ahead):
            self.forward(parts, kept)
        for at in range(MICROBATCHES):
            if len(kept) < MICROBATCHES:
                self.forward(parts, kept)
            self.backward(kept, at)
        for request in self.sent:
            request.wait()
        self.sent.clear()


def library_pipeline(module: Stage, stage: int, stages: int, group: Any) -> Any:
    """The schedule of the library."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    given, made = torch.ones(2, WIDTH, requires_grad=stage > 0), torch.ones(2, WIDTH, requires_grad=True)
    whole = PipelineStage(
        module, stage, stages, torch.device("cpu"), input_args=(given,), output_args=(made,), group=group
    )
    return Schedule1F1B(whole, MICROBATCHES, loss_fn=lambda y, _: y.sum(), scale_grads=False)


def main(folder: str, stages: int, fault: str, style: str, steps: int) -> None:
    """Ranks count replicas first: rank = stage * replicas + replica, as Megatron does."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    replicas = world // stages
    stage, replica = divmod(rank, replicas)
    pipes = [dist.new_group([s * replicas + r for s in range(stages)]) for r in range(replicas)]
    peers = [dist.new_group([s * replicas + r for r in range(replicas)]) for s in range(stages)]
    slow = (fault == "worker" and rank == world - 1) or (fault == "stage" and stage == stages - 1)
    module = Stage(SLOW if slow else 1.0)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    library = library_pipeline(module, stage, stages, pipes[replica]) if style == "library" else None
    own = OwnPipeline(module, stage, stages, pipes[replica], replica, replicas, style == "spans")

    ddp = torch.nn.parallel.DistributedDataParallel(module) if style == "ddp" else None

    def one_step(step: int) -> None:
        x = batch(step, replica, fault)
        if ddp is not None:
            for at, part in enumerate(x.split(2)):
                with nullcontext() if at == MICROBATCHES - 1 else ddp.no_sync():
                    ddp(part).sum().backward()
        elif library is None:
            own.step(x)
        elif stage == 0:
            library.step(x, **({"target": x} if stages == 1 else {}))
        else:
            library.step(target=x)
        for parameter in module.parameters() if ddp is None else ():
            dist.all_reduce(parameter.grad, group=peers[stage])
        optimizer.step()
        optimizer.zero_grad()

    if folder == "-":  # somebody else records
        for step in range(steps):
            one_step(step)
    else:
        plan = schedule(wait=1, warmup=1, active=steps - 2)
        with profile(
            activities=[ProfilerActivity.CPU], schedule=plan, record_shapes=True,
            on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank{rank}.json.gz"),
        ) as profiler:  # fmt: skip
            for step in range(steps):
                one_step(step)
                profiler.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]) if len(sys.argv) > 5 else STEPS)
