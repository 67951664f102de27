"""Sizing: which layouts hold a latency target at a rate, what each costs, and what would change the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stallwise.costs.inference import Engine
from stallwise.costs.kv_room import KvRoom, kv_room
from stallwise.costs.serving_constants import spread
from stallwise.errors import BadRequest
from stallwise.specs.deployment import ENGINES, Deployment
from stallwise.specs.hardware import Gpu
from stallwise.specs.model import Model

GROUPS = (1, 2, 4, 8)
STAGES = (1, 2)
RACK = 72  # GPUs that a GB200 or GB300 rack joins by NVLink; elsewhere eight
MOST_BATCH = 4096.0
BISECTIONS = 22  # a batch to a thousandth of a percent
MOST_PREFILL_LOAD = 0.9  # of the engine's time: beyond it the wait for prefill has no bound


@dataclass(frozen=True)
class Question:
    """What is asked of a service. `hit_share` of each prompt comes from the prefix cache."""

    model: Model
    gpus: tuple[Gpu, ...]
    isl: float
    osl: float
    rate_per_s: float
    ttft_s: float
    tpot_s: float
    engines: tuple[str, ...] = ("vllm",)
    weights: tuple[str, ...] = ()
    kv: tuple[str, ...] = ()
    max_gpus: int = 1024
    hit_share: float = 0.0
    headroom_share: float = 0.1  # capacity beyond the rate: traffic is not as even as a mean

    def __post_init__(self) -> None:
        for name in ("isl", "osl", "rate_per_s", "ttft_s", "tpot_s"):
            if not getattr(self, name) > 0:
                raise BadRequest(
                    f"{name.removesuffix('_s').removesuffix('_per')} must be above 0", hint="see --help for an example"
                )
        if not 0 <= self.hit_share < 1:
            raise BadRequest("the prefix hit rate lies between 0 and 1", hint="--prefix-hit 40%")
        if not self.gpus or any(e not in ENGINES for e in self.engines):
            raise BadRequest("no GPU, or an unknown engine", hint=f"engines: {', '.join(ENGINES)}")


@dataclass(frozen=True)
class Point:
    """One replica at one batch."""

    batch: float
    rate_per_s: float
    tpot_s: float
    ttft_s: float
    prefill_load: float

    @property
    def power(self) -> float:
        """Throughput over latency: its maximum is the knee (Kleinrock)."""
        return self.rate_per_s / (self.tpot_s * (1 + self.ttft_s))


@dataclass(frozen=True)
class Option:
    """A layout that holds the target."""

    deployment: Deployment
    replicas: int
    now: Point  # one replica at its share of the rate
    limit: Point  # the most that holds the target
    knee: Point
    room: KvRoom
    limited_by: str

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.replicas * self.deployment.ranks

    @property
    def headroom_share(self) -> float:
        """How much more than asked it could take."""
        return self.limit.rate_per_s / self.now.rate_per_s - 1

    @property
    def dollar_per_hour(self) -> float | None:
        """Of the whole service; None where no price is known."""
        price = self.deployment.gpu.price_dollar_per_hour
        return None if price is None else price * self.gpus

    def dollar_per_million_tokens(self, osl: float) -> float | None:
        """Of output."""
        price = self.dollar_per_hour
        return None if price is None else price / (self.now.rate_per_s * self.replicas * osl * 3600) * 1e6

    @property
    def interval(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """80% intervals of TPOT and TTFT."""
        t, f = spread("tpot"), spread("ttft")
        return (self.now.tpot_s * t[0], self.now.tpot_s * t[1]), (self.now.ttft_s * f[0], self.now.ttft_s * f[1])


@dataclass(frozen=True)
class Sizing:
    """The answer: options from cheap to dear, and why the others fell out."""

    question: Question
    options: tuple[Option, ...]
    tried: int
    refused: dict[str, int]


def size_service(question: Question) -> Sizing:
    """Every layout, sized; the cheapest first."""
    found: list[Option] = []
    refused: dict[str, int] = {}
    tried = 0
    for deployment in layouts(question):
        tried += 1
        option = fit(deployment, question)
        if isinstance(option, str):
            refused[option] = refused.get(option, 0) + 1
        else:
            found.append(option)
    found.sort(
        key=lambda o: (o.dollar_per_hour if o.dollar_per_hour is not None else math.inf, o.gpus, -o.headroom_share)
    )
    return Sizing(question, tuple(found), tried, refused)


def layouts(question: Question) -> Iterator[Deployment]:
    """TP, PP, attention DP with EP, number formats and engines that can be."""
    model = question.model
    for gpu in question.gpus:
        groups = (*GROUPS, 16, 32) if gpu.name.startswith("gb") else GROUPS
        for engine in question.engines:
            for weights in question.weights or _formats(gpu):
                for kv in question.kv or ("bf16", "fp8"):
                    for size in groups:
                        yield from _cut(Deployment(model, gpu, weights=weights, kv=kv, engine=engine), size)


def _formats(gpu: Gpu) -> tuple[str, ...]:
    """16 bit, what the card multiplies natively below it, and 4-bit weights that are only stored so."""
    native = tuple(f for f in ("fp8", "fp4") if f in gpu.peak_flop_per_s)
    return ("bf16", *native, *(() if "fp4" in native else ("int4",)))


def _cut(plain: Deployment, size: int) -> Iterator[Deployment]:
    model = plain.model
    choices: list[dict[str, int]] = [{"tp": size, "pp": p} for p in STAGES]
    if model.experts and size > 1 and model.experts % size == 0:
        choices += [{"tp": size, "ep": size}, {"dp": size, "ep": size}]
    for axes in choices:
        if model.heads % axes.get("tp", 1) == 0 and axes.get("pp", 1) <= model.layers:
            yield plain.changed(**axes)


def fit(deployment: Deployment, q: Question) -> Option | str:
    """The option this layout makes, or why it makes none."""
    room = kv_room(deployment)
    if not room.fits:
        return "the weights do not fit"
    curve = Curve(deployment, q, room)
    if curve.most < 1:
        return "not one request fits the KV cache"
    first = curve.at(1.0)
    if first.tpot_s > q.tpot_s:
        return "time per token is missed even by one request"
    if first.ttft_s > q.ttft_s:
        return "time to first token is missed even by one request"
    limit, why = curve.limit()
    replicas = math.ceil(q.rate_per_s * (1 + q.headroom_share) / limit.rate_per_s)
    if replicas * deployment.ranks > q.max_gpus:
        return f"more than {q.max_gpus} GPUs"
    return Option(deployment, replicas, curve.at_rate(q.rate_per_s / replicas), limit, curve.knee(), room, why)


class Curve:
    """One replica's latency against its rate."""

    def __init__(self, deployment: Deployment, q: Question, room: KvRoom | None = None) -> None:
        self.engine, self.q = Engine(deployment), q
        room = room or kv_room(deployment)
        self.most = min(MOST_BATCH, room.tokens * self.engine.k.kv_room_share / (q.isl + q.osl))
        new = max(1.0, q.isl * (1 - q.hit_share))
        self.prefill_s = self.engine.prefill_s(new, q.isl - new) / deployment.dp

    def at(self, batch: float) -> Point:
        """The steady state with so many running: each of them prefills once while the others decode."""
        q, k = self.q, self.engine.k
        decode = self.engine.decode_s(batch, q.isl + q.osl / 2)
        tpot = decode + k.contention * self.prefill_s * batch / q.osl
        rate = batch / (q.osl * tpot)
        load = min(rate * self.prefill_s, 0.999)
        alone = self.prefill_s * self.engine.deployment.dp
        wait = self.prefill_s * load / (2 * (1 - load))  # one server, one length of job: Pollaczek-Khinchine
        ttft = k.first_token_s + decode / 2 + k.prefill_factor * alone + wait
        return Point(batch, rate, tpot, ttft, load)

    def limit(self) -> tuple[Point, str]:
        """The largest batch that holds the target, and what stops the next."""
        if self._holds(self.most):
            return self.at(self.most), "KV cache" if self.most < MOST_BATCH else "batch of 4096"
        low, high = 1.0, self.most
        for _ in range(BISECTIONS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._holds(middle) else (low, middle)
        beyond = self.at(high)
        why = (
            "time per token"
            if beyond.tpot_s > self.q.tpot_s
            else "time to first token"
            if beyond.ttft_s > self.q.ttft_s
            else "prefill arithmetic"
        )
        return self.at(low), why

    def _holds(self, batch: float) -> bool:
        point = self.at(batch)
        return (
            point.tpot_s <= self.q.tpot_s and point.ttft_s <= self.q.ttft_s and point.prefill_load <= MOST_PREFILL_LOAD
        )

    def at_rate(self, rate_per_s: float) -> Point:
        """The batch that this rate makes."""
        low, high = 1e-3, self.most
        for _ in range(2 * BISECTIONS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.at(middle).rate_per_s < rate_per_s else (low, middle)
        return self.at(high)

    def points(self, count: int = 24) -> list[Point]:
        """From one request to the fullest cache, for a plot."""
        step = self.most ** (1 / max(1, count - 1))
        return [self.at(step**i) for i in range(count)]

    def knee(self) -> Point:
        """Where more load begins to cost more latency than it brings rate."""
        return max(self.points(), key=lambda p: p.power)


def with_replicas(option: Option, question: Question, replicas: int) -> Option:
    """The same layout with the rate spread over so many."""
    now = Curve(option.deployment, question, option.room).at_rate(question.rate_per_s / replicas)
    return replace(option, replicas=replicas, now=now)


def what_if(question: Question) -> list[tuple[str, Question]]:
    """The same question a little different."""
    q = question
    return [
        ("half of each prompt comes from the prefix cache", replace(q, hit_share=max(q.hit_share, 0.5))),
        ("the first token may take twice as long", replace(q, ttft_s=2 * q.ttft_s)),
        ("tokens may come half as fast", replace(q, tpot_s=2 * q.tpot_s)),
        ("twice the rate", replace(q, rate_per_s=2 * q.rate_per_s)),
        ("answers half as long", replace(q, osl=q.osl / 2)),
        ("16-bit weights and KV only", replace(q, weights=("bf16",), kv=("bf16",))),
    ]
