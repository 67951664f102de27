"""Training loops of many kinds; each prints its numbers, and they must be the same with and without a recorder."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import sys
import threading
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def batch(n: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return torch.randn(8, 8, generator=generator), torch.randint(0, 4, (8,), generator=generator)


def fit(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 20) -> float:
    loss = torch.zeros(())
    for n in range(steps):
        x, y = batch(n)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def plain_loop() -> None:
    model = small()
    print(fit(model, sgd(model)), sum(float(p.sum()) for p in model.parameters()))


def adamw_scheduler_clip() -> None:
    model = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for n in range(16):
        x, y = batch(n)
        nn.functional.cross_entropy(model(x), y).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    print(float(norm), schedule.get_last_lr())


def lbfgs() -> None:
    model = small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x, y = batch()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    print([float(optimizer.step(closure)) for _ in range(14)])


def by_hand() -> None:
    model = small()
    for n in range(20):
        x, y = batch(n)
        loss = nn.functional.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
    print(float(loss))


def autograd_grad_only() -> None:
    weight = torch.ones(8, 4, requires_grad=True)
    for n in range(20):
        x, y = batch(n)
        (gradient,) = torch.autograd.grad(nn.functional.cross_entropy(x @ weight, y), weight)
        weight = (weight - 0.1 * gradient).detach().requires_grad_()
    print(float(weight.sum()))


def gan() -> None:
    maker, judge = nn.Linear(4, 8), nn.Linear(8, 1)
    first, second = sgd(maker), sgd(judge)
    for n in range(16):
        fake = maker(torch.randn(8, 4))
        loss = judge(fake.detach()).mean() - judge(batch(n)[0]).mean()
        second.zero_grad()
        loss.backward()
        second.step()
        first.zero_grad()
        (-judge(fake).mean()).backward()
        first.step()
    print(float(loss), float(maker.weight.sum()))


def accumulate() -> None:
    model = small()
    optimizer = sgd(model)
    for n in range(48):
        x, y = batch(n)
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
        if n % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    print(float(model[0].weight.sum()))


def two_models_in_turn() -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        model = small()
        print(fit(model, sgd(model), 12))


def mixed_precision() -> None:
    model = small()
    optimizer = sgd(model)
    for n in range(16):
        x, y = batch(n)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(float(loss))


def activation_checkpointing() -> None:
    from torch.utils.checkpoint import checkpoint

    model = small()
    optimizer = sgd(model)
    for n in range(16):
        x, y = batch(n)
        loss = nn.functional.cross_entropy(checkpoint(model, x, use_reentrant=n % 2 == 0), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(float(loss))


def evaluate_in_between() -> None:
    model = small()
    optimizer = sgd(model)
    for n in range(4):
        print(fit(model, optimizer, 5))
        model.eval()
        with torch.no_grad():
            print(float(model(batch(n)[0]).sum()))
        model.train()


def inference_loop() -> None:
    model = small().eval()
    with torch.inference_mode():
        print(sum(float(model(batch(n)[0]).sum()) for n in range(60)))


def recurrent() -> None:
    model = nn.LSTM(8, 8, 2)
    state, total = None, 0.0
    for _ in range(20):
        out, state = model(torch.ones(5, 2, 8), state)
        state = tuple(s.detach() for s in state)
        out.sum().backward()
        total += float(out.sum())
        model.zero_grad()
    print(total)


def hooks_of_the_user() -> None:
    model, seen = small(), []
    model[0].register_forward_hook(lambda m, i, o: seen.append("forward"))
    model[2].register_full_backward_hook(lambda m, i, o: seen.append("backward"))
    model.register_forward_pre_hook(lambda m, i: seen.append("pre"))
    fit(model, sgd(model), 12)
    print(len(seen), len(model._forward_hooks), len(model._forward_pre_hooks), seen[:3])


def global_hooks_of_the_user() -> None:
    calls: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: calls.append(type(m).__name__))
    fit(model := small(), sgd(model), 12)
    handle.remove()
    print(len(calls), calls[:4])


def optimizer_hooks_of_the_user() -> None:
    model, seen = small(), []
    optimizer = sgd(model)
    optimizer.register_step_post_hook(lambda o, a, k: seen.append(1))
    fit(model, optimizer, 12)
    print(len(seen), len(optimizer._optimizer_step_post_hooks))


def exponential_average() -> None:
    from torch.optim.swa_utils import AveragedModel

    model = small()
    optimizer = sgd(model)
    fit(model, optimizer, 3)
    average = AveragedModel(model)
    for _ in range(6):
        fit(model, optimizer, 3)
        average.update_parameters(model)
    print(float(average.module[0].weight.sum()))


def best_model_copy() -> None:
    model = small()
    optimizer = sgd(model)
    best = model
    for _ in range(5):
        fit(model, optimizer, 4)
        best = copy.deepcopy(model)
    print(float(best[0].weight.sum()), type(copy.deepcopy(optimizer)).__name__)


def subclassed_call() -> None:
    class Loud(nn.Linear):
        def __call__(self, *args: object, **kwargs: object) -> torch.Tensor:
            return super().__call__(*args, **kwargs) * 2

    model = Loud(8, 4)
    print(fit(model, sgd(model)))


def forward_raises() -> None:
    class Picky(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("shape is wrong")

    model = small()
    fit(model, sgd(model), 12)
    with contextlib.suppress(ValueError):
        Picky()(batch()[0])
    print(fit(model, sgd(model), 3))
    Picky()(batch()[0])


def optimizer_raises_once() -> None:
    class Moody(torch.optim.SGD):
        count = 0

        def step(self, closure: object = None) -> None:
            Moody.count += 1
            if Moody.count == 5:
                raise RuntimeError("not today")
            super().step()

    model = small()
    optimizer = Moody(model.parameters(), lr=0.1)
    for n in range(14):
        try:
            fit(model, optimizer, 1)
        except RuntimeError as error:
            print(n, error)
    print(float(model[0].weight.sum()))


def in_one_thread() -> None:
    model, found = small(), []
    thread = threading.Thread(target=lambda: found.append(fit(model, sgd(model), 30)))
    thread.start()
    thread.join()
    print(found)


def in_one_thread_beyond_the_window() -> None:
    model, found = small(), []
    thread = threading.Thread(target=lambda: found.append(fit(model, sgd(model), 150)))
    thread.start()
    thread.join()
    print(found)


def in_a_daemon_thread() -> None:
    model, found, done = small(), [], threading.Event()

    def work() -> None:
        found.append(fit(model, sgd(model), 30))
        done.set()
        threading.Event().wait()  # it is there when the job ends

    threading.Thread(target=work, daemon=True).start()
    done.wait()
    print(found)


def in_threads_one_after_another() -> None:
    model = small()
    optimizer = sgd(model)
    for _ in range(4):
        thread = threading.Thread(target=fit, args=(model, optimizer, 6))
        thread.start()
        thread.join()
    print(float(model[0].weight.sum()))


def in_four_threads_at_once() -> None:
    models = [small() for _ in range(4)]
    threads = [threading.Thread(target=fit, args=(m, sgd(m), 40)) for m in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print([float(m[0].weight.sum()) for m in models])


def inference_threads_beside_training() -> None:
    model, quit_ = small(), threading.Event()

    def serve() -> None:
        with torch.no_grad():
            while not quit_.is_set():
                model(batch()[0])

    thread = threading.Thread(target=serve)
    thread.start()
    other = small()
    print(fit(other, sgd(other), 40))
    quit_.set()
    thread.join()


def in_asyncio() -> None:
    async def train() -> float:
        model = small()
        optimizer, loss = sgd(model), 0.0
        for _ in range(20):
            loss = fit(model, optimizer, 1)
            await asyncio.sleep(0)
        return loss

    async def main() -> None:
        print(await asyncio.gather(train(), train()))

    asyncio.run(main())


def executor_steps() -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = small()
    optimizer = sgd(model)
    with ThreadPoolExecutor(2) as pool:
        print([pool.submit(fit, model, optimizer, 1).result() for _ in range(20)])


def anomaly_mode() -> None:
    model = small()
    with torch.autograd.set_detect_anomaly(True):
        print(fit(model, sgd(model)))


def function_transforms() -> None:
    from torch.func import functional_call, grad, vmap

    model = small()
    parameters = dict(model.named_parameters())

    def loss(p: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(functional_call(model, p, (x[None],)), y[None])

    x, y = batch()
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    print({k: tuple(v.shape) for k, v in gradients.items()}, float(gradients["0.weight"].sum()))


def tensor_subclass() -> None:
    class Tagged(torch.Tensor):
        pass

    x = torch.randn(4, 4).as_subclass(Tagged).requires_grad_()
    y = (x.to(torch.float64) * 2).sum()
    y.backward()
    print(type(y).__name__, x.grad.dtype, torch.Tensor.to.__name__)


def meta_and_lazy() -> None:
    with torch.device("meta"):
        model = small()
    model = model.to_empty(device="cpu")
    for p in model.parameters():
        nn.init.constant_(p, 0.01)
    lazy = nn.LazyLinear(3)
    print(fit(model, sgd(model), 12), tuple(lazy(torch.ones(2, 5)).shape))


def long_pause() -> None:
    model = small()
    fit(model, sgd(model), 11)
    time.sleep(0.3)
    print(fit(model, sgd(model), 11))


if __name__ == "__main__":
    if os.environ.get("RECORD_INTO"):
        import stallwise

        stallwise.start(os.environ["RECORD_INTO"])
    globals()[sys.argv[1]]()
