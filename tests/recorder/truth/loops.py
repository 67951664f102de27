"""Training loops with known sleeps, each with a clock of its own around every stage: what the recorder must find.

A loop takes the hand clock and returns how many steps it took. Names on the hand clock are the recorder's stages, "side", or
"span NAME" for the row of a span.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
from torch import nn

import stallwise

COUNT = 16
LOAD_S, COPY_S, FORWARD_S, BACKWARD_S, SYNC_S, OPTIMIZER_S, REST_S = 0.005, 0.003, 0.007, 0.009, 0.006, 0.004, 0.003

Hand = Callable[[str], "HandClock"]
LOOPS: dict[str, Callable[[Hand], int]] = {}


class HandClock:
    """`with hand("forward")`: seconds by name, outside of all that the recorder does."""

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self.seconds, self.name = seconds, name

    def __enter__(self) -> None:
        self.begin_s = time.perf_counter()

    def __exit__(self, *problem: object) -> None:
        took_s = time.perf_counter() - self.begin_s
        self.seconds[self.name] = self.seconds.get(self.name, 0.0) + took_s


def loop(run: Callable[[Hand], int]) -> Callable[[Hand], int]:
    LOOPS[run.__name__] = run
    return run


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context: object, x: torch.Tensor) -> torch.Tensor:
        time.sleep(FORWARD_S)
        return x.clone()

    @staticmethod
    def backward(context: object, grad: torch.Tensor) -> torch.Tensor:
        time.sleep(BACKWARD_S)
        return grad


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Slow.apply(self.linear(x))


class Optimizer(torch.optim.SGD):
    def step(self, closure: object = None) -> None:
        time.sleep(OPTIMIZER_S)
        super().step()


def pair() -> tuple[Model, Optimizer]:
    model = Model()
    return model, Optimizer(model.parameters(), lr=0.01)


def batches(count: int = COUNT) -> Iterator[torch.Tensor]:
    for _ in range(count):
        time.sleep(LOAD_S)
        yield torch.ones(1, 8)


class Samples(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, at: int) -> torch.Tensor:
        time.sleep(LOAD_S)
        return torch.ones(8)


def train(hand: Hand, model: Model, optimizer: Optimizer, batch: torch.Tensor) -> None:
    """A step without anything of ours in it."""
    with hand("forward"):
        loss = model(batch).sum()
    with hand("backward"):
        loss.backward()
    with hand("optimizer"):
        optimizer.step()
        optimizer.zero_grad()


@loop
def readme_loop(hand: Hand) -> int:
    model, optimizer = pair()
    for batch in stallwise.steps(batches()):
        with stallwise.span("forward"), hand("forward"):
            loss = model(batch).sum()
        with hand("backward"):
            loss.backward()
        with hand("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
    return COUNT


@loop
def steps_of_a_loader(hand: Hand) -> int:
    model, optimizer = pair()
    loader = iter(torch.utils.data.DataLoader(Samples(), batch_size=1))

    def timed() -> Iterator[torch.Tensor]:
        while True:
            with hand("batch_wait"):
                batch = next(loader, None)
            if batch is None:
                return
            yield batch

    for batch in stallwise.steps(timed()):
        train(hand, model, optimizer, batch)
    return COUNT


@loop
def a_loader_alone(hand: Hand) -> int:
    model, optimizer = pair()
    loader = iter(torch.utils.data.DataLoader(Samples(), batch_size=1))
    while True:
        with hand("batch_wait"):
            batch = next(loader, None)
        if batch is None:
            return COUNT
        train(hand, model, optimizer, batch)


def timed_train_step(model: Model, optimizer: Optimizer, batch: torch.Tensor, timer: Callable[[str], object]) -> None:
    """A step with a timer around every stage, as tutorials have it."""
    with timer("h2d"):
        time.sleep(COPY_S)
        batch = batch.to("cpu")
    with timer("forward"):
        loss = model(batch).sum()
    with timer("backward"):
        loss.backward()
    with timer("grad_sync"):
        time.sleep(SYNC_S)
    with timer("optimizer"):
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


STAGE = {"grad_sync": "gradient_sync"}


@loop
def a_timer_around_every_stage(hand: Hand) -> int:
    model, optimizer = pair()

    class Timer:
        def __init__(self, name: str) -> None:
            self.both = stallwise.span(name), hand(STAGE.get(name, name))

        def __enter__(self) -> None:
            for one in self.both:
                one.__enter__()

        def __exit__(self, *problem: object) -> None:
            for one in reversed(self.both):
                one.__exit__(*problem)

    for batch in batches():
        timed_train_step(model, optimizer, batch, Timer)
    return COUNT


@loop
def a_timer_that_is_a_generator(hand: Hand) -> int:
    model, optimizer = pair()

    @contextmanager
    def timer(name: str) -> Iterator[None]:
        with stallwise.span(name), hand(STAGE.get(name, name)):
            yield

    for batch in stallwise.steps(batches()):
        timed_train_step(model, optimizer, batch, timer)
    return COUNT


@loop
def names_of_ones_own(hand: Hand) -> int:
    model, optimizer = pair()
    for batch in stallwise.steps(batches()):
        with stallwise.span("Fwd"), hand("forward"):
            loss = model(batch).sum()
        with stallwise.span("backward pass"), hand("backward"):
            loss.backward()
        with stallwise.span("all-reduce"), hand("gradient_sync"):
            time.sleep(SYNC_S)
        with stallwise.span("opt"), hand("optimizer"):
            optimizer.step()
    return COUNT


@loop
def one_span_around_all(hand: Hand) -> int:
    model, optimizer = pair()
    for batch in stallwise.steps(batches()):
        with stallwise.span("train_step"), hand("span train_step"):
            train(hand, model, optimizer, batch)
    return COUNT


@loop
def one_span_around_the_loop(hand: Hand) -> int:
    model, optimizer = pair()
    with stallwise.span("epoch"), hand("span epoch"):
        for batch in batches():
            train(hand, model, optimizer, batch)
    return COUNT


@loop
def accumulation(hand: Hand) -> int:
    model, optimizer = pair()
    for _ in range(COUNT // 2):
        for batch in batches(3):
            with hand("forward"):
                loss = model(batch).sum()
            with hand("backward"):
                loss.backward()
        with hand("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
    return COUNT // 2


@loop
def two_optimizers(hand: Hand) -> int:
    (one, first), (other, second) = pair(), pair()
    for batch in stallwise.steps(batches(COUNT // 2)):
        train(hand, one, first, batch)
        train(hand, other, second, batch)
    return COUNT // 2


@loop
def nested_spans(hand: Hand) -> int:
    for _ in stallwise.steps(batches()):
        with stallwise.span("forward"), hand("forward"):
            with stallwise.span("attention"), hand("span attention"):
                time.sleep(FORWARD_S)
            with stallwise.span("mlp"), hand("span mlp"):
                time.sleep(FORWARD_S)
        with stallwise.span("backward"), hand("span backward"):
            with hand("backward"):
                time.sleep(BACKWARD_S)
            with stallwise.span("grad_sync"), hand("gradient_sync"):
                time.sleep(SYNC_S)
        with stallwise.span("log"), hand("span log"), stallwise.span("log"):
            time.sleep(REST_S)
    return COUNT


@loop
def spans_of_threads(hand: Hand) -> int:
    over = threading.Event()

    def decode() -> None:
        while not over.is_set():
            with stallwise.span("forward"):
                time.sleep(FORWARD_S)

    threads = [threading.Thread(target=decode) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in stallwise.steps(range(COUNT)):
        with stallwise.span("forward"), hand("forward"):
            time.sleep(FORWARD_S)
        with hand("side"):
            time.sleep(REST_S)
    over.set()
    for thread in threads:
        thread.join()
    return COUNT


@loop
def exceptions_inside_a_span(hand: Hand) -> int:
    for _ in stallwise.steps(batches()):
        try:
            with stallwise.span("forward"), hand("forward"):
                time.sleep(FORWARD_S)
                raise ValueError("skip this batch")
        except ValueError:
            pass
        with hand("side"):
            time.sleep(REST_S)
    return COUNT


@loop
def an_optimizer_that_raises(hand: Hand) -> int:
    class Bad(torch.optim.SGD):
        turns = 0

        def step(self, closure: object = None) -> None:
            self.turns += 1
            time.sleep(OPTIMIZER_S)
            if self.turns % 4 == 0:
                raise FloatingPointError("inf")
            super().step()

    model = Model()
    optimizer = Bad(model.parameters(), lr=0.01)
    for batch in batches():
        with hand("forward"):
            loss = model(batch).sum()
        with hand("backward"):
            loss.backward()
        with hand("optimizer"):
            with suppress(FloatingPointError):
                optimizer.step()
            optimizer.zero_grad()
    return COUNT


@loop
def a_scaler_that_skips(hand: Hand) -> int:
    model, optimizer = pair()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for at, batch in enumerate(batches()):
        with hand("forward"):
            loss = model(batch).sum()
        with hand("backward"):
            scaler.scale(loss).backward()
        if at % 4 == 3:
            model.linear.weight.grad.fill_(float("inf"))
        with hand("optimizer"):
            scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return COUNT


@loop
def a_yield_inside_a_span(hand: Hand) -> int:
    def forwards() -> Iterator[torch.Tensor]:
        for batch in batches():
            with stallwise.span("forward"):
                with hand("forward"):
                    time.sleep(FORWARD_S)
                yield batch
            stallwise.step()

    for _ in forwards():
        time.sleep(REST_S)
    return COUNT


@loop
def breaks_out_of_steps(hand: Hand) -> int:
    for _ in range(COUNT // 4):
        for at, _ in enumerate(stallwise.steps(batches(100))):
            with stallwise.span("forward"), hand("forward"):
                time.sleep(FORWARD_S)
            if at == 3:
                break
    return COUNT // 4 * 4


@loop
def a_compiled_function(hand: Hand) -> int:
    model = nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    @torch.compile(backend="eager")
    def compute(x: torch.Tensor) -> torch.Tensor:
        return model(x).pow(2).mean()

    batch = torch.ones(2048, 256)
    for _ in range(COUNT):
        with hand("forward"):
            loss = compute(batch)
        with hand("backward"):
            loss.backward()
        with hand("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
    return COUNT
