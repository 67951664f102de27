"""What people do to models, optimizers and loaders: copied, saved, compiled, traced, quantised, sharded, freed."""

from __future__ import annotations

import copy
import gc
import io
import multiprocessing
import os
import pickle
import signal
import sys
import weakref

import torch
from torch import nn
from training_jobs import batch, fit, sgd, small

torch.set_num_threads(1)
torch.manual_seed(0)


class Data(torch.utils.data.Dataset):
    """A little data; `fault` happens at item 100."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def __len__(self) -> int:
        return 160

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        if at == 100 and self.fault == "raise":
            raise KeyError("no such sample")
        if at == 100 and self.fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if at == 100 and self.fault == "exit":
            os._exit(3)
        return torch.full((8,), at / 160), at % 4


def over(loader: torch.utils.data.DataLoader) -> float:
    model = small()
    optimizer = sgd(model)
    loss = torch.zeros(())
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def trained() -> nn.Module:
    model = small()
    fit(model, sgd(model), 12)
    return model


def loader_in_process() -> None:
    print(over(torch.utils.data.DataLoader(Data(), batch_size=8)))


def loader_fork() -> None:
    print(over(torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2)))


def loader_spawn() -> None:
    print(over(torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=1, multiprocessing_context="spawn")))


def loader_persistent() -> None:
    loader = torch.utils.data.DataLoader(Data(), batch_size=16, num_workers=1, persistent_workers=True)
    print([over(loader) for _ in range(2)])


def loader_raises() -> None:
    print(over(torch.utils.data.DataLoader(Data("raise"), batch_size=8)))


def worker_raises() -> None:
    # One worker: of two, the later batch may come first, and PyTorch then raises from another line of its own.
    print(over(torch.utils.data.DataLoader(Data("raise"), batch_size=8, num_workers=1)))


def worker_killed() -> None:
    print(over(torch.utils.data.DataLoader(Data("die"), batch_size=8, num_workers=2)))


def worker_exits() -> None:
    print(over(torch.utils.data.DataLoader(Data("exit"), batch_size=8, num_workers=1)))


def loader_from_iterable() -> None:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> object:
            return ((torch.full((8,), n / 64), n % 4) for n in range(128))

    print(over(torch.utils.data.DataLoader(Stream(), batch_size=8)))


def loader_iterator_pickled() -> None:
    loader = torch.utils.data.DataLoader(Data(), batch_size=8)
    print(over(pickle.loads(pickle.dumps(loader))))


def deep_copy() -> None:
    print(float(copy.deepcopy(trained())[0].weight.sum()))


def pickle_model() -> None:
    model = trained()
    print(float(pickle.loads(pickle.dumps(model))[0].weight.sum()), len(pickle.dumps(model)))


def save_whole_model() -> None:
    model, file = trained(), io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    print(float(torch.load(file, weights_only=False)[0].weight.sum()), len(file.getvalue()))


def save_and_resume() -> None:
    model = small()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        print(fit(model, optimizer, 6))
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
        optimizer.load_state_dict(torch.load("checkpoint.pt")["optimizer"])
    print(os.path.getsize("checkpoint.pt"))


def pickle_functions() -> None:
    names = [torch.save, torch.Tensor.to, torch.Tensor.backward, torch.autograd.backward, nn.Module.__call__]
    fit(model := small(), sgd(model), 3)
    print([pickle.loads(pickle.dumps(f)) is f for f in names])


def script() -> None:
    print(float(torch.jit.script(trained())(batch()[0]).sum()))


def trace() -> None:
    print(float(torch.jit.trace(trained(), batch()[0])(batch()[0]).sum()))


def fx() -> None:
    graph = torch.fx.symbolic_trace(trained())
    print([n.op for n in graph.graph.nodes], float(graph(batch()[0]).sum()))


def export() -> None:
    program = torch.export.export(trained().eval(), (batch()[0],))
    print(float(program.module()(batch()[0]).sum()))


def quantise() -> None:
    import warnings

    warnings.simplefilter("ignore")
    torch.backends.quantized.engine = torch.backends.quantized.supported_engines[-1]
    print(tuple(torch.ao.quantization.quantize_dynamic(trained(), {nn.Linear})(batch()[0]).shape))


def compile_eager() -> None:
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    model = torch.compile(small(), backend=counter)
    print(fit(model, sgd(model)), counter.frame_count, counter.op_count)


def compile_in_place() -> None:
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    model = small()
    model.compile(backend=counter)
    print(fit(model, sgd(model)), counter.frame_count, counter.op_count)


def compile_whole_step() -> None:
    from torch._dynamo.testing import CompileCounter

    counter, model = CompileCounter(), small()

    @torch.compile(backend=counter)
    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(x), y)

    optimizer = sgd(model)
    for n in range(16):
        loss = loss_of(*batch(n))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(float(loss), counter.frame_count, counter.op_count)


def compile_optimizer() -> None:
    from torch._dynamo.testing import CompileCounter

    counter, model = CompileCounter(), small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    step = torch.compile(optimizer.step, backend=counter)
    for n in range(14):
        x, y = batch(n)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        step()
    print(float(loss), counter.frame_count)


def freed_model() -> None:
    model = small()
    optimizer = sgd(model)
    fit(model, optimizer, 20)
    gone = [weakref.ref(model), weakref.ref(model[0].weight), weakref.ref(optimizer)]
    del model, optimizer
    gc.collect()
    print([ref() is None for ref in gone])


def freed_without_collector() -> None:
    gc.disable()
    model = small()
    fit(model, optimizer := sgd(model), 20)
    gone = weakref.ref(model)
    del model, optimizer
    print(gone() is None)


def freed_batches() -> None:
    alive = []
    model = small()
    optimizer = sgd(model)
    for x, y in torch.utils.data.DataLoader(Data(), batch_size=8):
        alive.append(weakref.ref(x))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    del x, y, loss
    gc.collect()
    print(sum(ref() is not None for ref in alive))


def tensors_left() -> None:
    def count() -> int:
        gc.collect()
        return sum(isinstance(o, torch.Tensor) for o in gc.get_objects())

    before = count()
    fit(model := small(), sgd(model), 20)
    del model
    print(count() - before)


def model_attributes() -> None:
    model = trained()
    print(sorted(vars(model)), [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()])


def collector_settings() -> None:
    trained()
    print(gc.get_threshold(), gc.isenabled(), torch.get_num_threads(), torch.is_grad_enabled())


def _in_child(model: nn.Module, queue: multiprocessing.Queue) -> None:
    queue.put(float(model(batch()[0]).sum()))


def model_to_spawned_child() -> None:
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(trained(), queue))
    child.start()
    print(queue.get(timeout=60))
    child.join()
    print(child.exitcode)


def _train_in_child(queue: multiprocessing.Queue) -> None:
    queue.put(fit(model := small(), sgd(model), 20))


def train_in_forked_child() -> None:
    queue = multiprocessing.get_context("fork").Queue()
    fit(model := small(), sgd(model), 12)
    child = multiprocessing.get_context("fork").Process(target=_train_in_child, args=(queue,))
    child.start()
    print(queue.get(timeout=60))
    child.join()
    print(child.exitcode)


def _gloo(kind: str) -> None:
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    model: nn.Module = small()
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard

        mesh = torch.distributed.init_device_mesh("cpu", (1,))
        fully_shard(model[0], mesh=mesh)
        fully_shard(model, mesh=mesh)
    loss = fit(model, sgd(model), 14)
    total = torch.ones(2)
    dist.all_reduce(total)
    dist.barrier()
    print(loss, total.tolist())
    dist.destroy_process_group()


def ddp_gloo() -> None:
    _gloo("ddp")


def fsdp_gloo() -> None:
    _gloo("fsdp")


def pruning_and_parametrisation() -> None:
    from torch.nn.utils import parametrizations, prune

    model = trained()
    prune.l1_unstructured(model[0], "weight", amount=0.5)
    parametrizations.weight_norm(model[2])
    print(fit(model, sgd(model), 4), len(model[0]._forward_pre_hooks))


if __name__ == "__main__":
    if os.environ.get("RECORD_INTO"):
        import stallwise

        stallwise.start(os.environ["RECORD_INTO"])
    globals()[sys.argv[1]]()
