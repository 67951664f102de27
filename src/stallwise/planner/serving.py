"""Sizing: which layouts hold a latency target at a rate, what each costs, and what would change the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from stallwise.errors import BadRequest
from stallwise.physics.costs.closed_loop import steady_times
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.kv_room import KvRoom, kv_room
from stallwise.physics.costs.serving_constants import spread
from stallwise.physics.specs.deployment import ENGINES, Deployment
from stallwise.physics.specs.hardware import Gpu
from stallwise.physics.specs.model import Model
from stallwise.units import Unit, show

GROUPS = (1, 2, 4, 8)
STAGES = (1, 2)
MOST_BATCH = 4096.0
ALONE = 1e-3  # requests inside on average: whoever comes meets nobody
BISECTIONS = 22  # a batch to a thousandth of a percent
LATENCY_TOKENS = 100.0  # of an answer that a reader waits for: first token and these make one latency
MOST_HEADROOM = 100.0
NEAREST = 4  # cheaper layouts that are explained
TOO_SLOW = "too slow"
MISFIT = 1e3  # a target can be relaxed, the memory of a card cannot: what does not fit is farther off than what is late
ALIKE = 0.01  # of a capacity: less than any prediction resolves, and far inside the headroom
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
    sort: str = "price"  # what the options are ordered by
    engine_version: str = ""

    def __post_init__(self) -> None:
        for name in ("isl", "osl", "rate_per_s", "ttft_s", "tpot_s"):
            if not getattr(self, name) > 0:
                raise BadRequest(
                    f"{name.removesuffix('_s').removesuffix('_per')} must be above 0", hint="see --help for an example"
                )
        if not 0 <= self.hit_share < 1:
            raise BadRequest("the prefix hit rate lies between 0 and 1", hint="--prefix-hit 40%")
        if not 0.0 <= self.headroom_share <= MOST_HEADROOM:
            raise BadRequest("headroom is capacity beyond the rate, at most a hundred times it", hint="--headroom 10%")
        if self.sort not in SORTS:
            raise BadRequest(f"nothing is sorted by '{self.sort}'", hint="one of " + ", ".join(SORTS))
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
        stated = bool(self.deployment.engine_version)
        t, f = spread("tpot", stated=stated), spread("ttft", stated=stated)
        return (self.now.tpot_s * t[0], self.now.tpot_s * t[1]), (self.now.ttft_s * f[0], self.now.ttft_s * f[1])


@dataclass(frozen=True)
class Refusal:
    """A layout that does not hold the target: why, with the number that says so."""

    deployment: Deployment
    replicas: int
    why: str  # the same words for all layouts that fail alike
    detail: str
    off: float = math.inf  # times: what it has over what it should have

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.replicas * self.deployment.ranks

    @property
    def dollar_per_hour(self) -> float | None:
        """None where no price is known."""
        price = self.deployment.gpu.price_dollar_per_hour
        return None if price is None else price * self.gpus


@dataclass(frozen=True)
class Sizing:
    """The answer: options in the order that was asked for, why the others fell out, and why the cheaper ones fail."""

    question: Question
    options: tuple[Option, ...]
    tried: int
    refused: dict[str, int]
    cheaper: tuple[Refusal, ...] = ()


SORTS: dict[str, Callable[[Option], tuple[float, ...]]] = {
    "price": lambda o: (_known(o.dollar_per_hour), o.gpus, -o.headroom_share),
    "gpus": lambda o: (o.gpus, _known(o.dollar_per_hour), -o.headroom_share),
    "latency": lambda o: (o.now.ttft_s + o.now.tpot_s * LATENCY_TOKENS, _known(o.dollar_per_hour)),
    "ttft": lambda o: (o.now.ttft_s, _known(o.dollar_per_hour)),
    "tpot": lambda o: (o.now.tpot_s, _known(o.dollar_per_hour)),
    "headroom": lambda o: (-o.headroom_share, _known(o.dollar_per_hour)),
}


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)


def _known(dollar: float | None) -> float:
    return math.inf if dollar is None else dollar


def size_service(question: Question) -> Sizing:
    """Every layout, sized, in the order that was asked for."""
    found: list[Option] = []
    failed: list[Refusal] = []
    refused: dict[str, int] = {}
    tried = 0
    for deployment in layouts(question):
        tried += 1
        option = fit(deployment, question)
        if isinstance(option, Refusal):
            refused[option.why] = refused.get(option.why, 0) + 1
            failed.append(option)
        else:
            found.append(option)
    found.sort(key=SORTS[question.sort])
    return Sizing(question, tuple(found), tried, refused, cheaper_than(found, failed, question))


def cheaper_than(found: list[Option], failed: list[Refusal], q: Question) -> tuple[Refusal, ...]:
    """Those that miss by least: one replica less of the first option, and layouts that cost less; of all where none holds."""
    if not found:
        return tuple(sorted(failed, key=lambda f: (f.off, _cost(f)))[:NEAREST])
    best = found[0]
    below = [f for f in failed if _cost(f) < _cost(best)]
    if best.replicas > 1:
        below.append(_one_fewer(best, q))
    return tuple(sorted(below, key=lambda f: (f.off, -_cost(f)))[:NEAREST])


def _one_fewer(best: Option, q: Question) -> Refusal:
    """Why the first option with a replica less does not do, in numbers that differ as printed."""
    fewer = best.replicas - 1
    takes, needs = fewer * best.limit.rate_per_s, q.rate_per_s * (1 + q.headroom_share)
    held = f"within the target ({best.limited_by})"
    kept = f" with {q.headroom_share:.0%} of headroom" if q.headroom_share else ""
    off = needs / takes
    if off <= 1 + ALIKE:  # the mean request would hold: the simulated ones do not
        detail = f"holds the mean request at {q.rate_per_s:.4g} requests a second, but too few of the simulated ones"
    else:
        detail = f"takes {takes:.4g} requests a second {held}; {needs:.4g} needed{kept}, {off - 1:.1%} more"
    return Refusal(best.deployment, fewer, TOO_SLOW, detail, off)


def replicas_for(q: Question, limit_per_s: float) -> int:
    """As few as take the rate with its headroom; a hair less of headroom does not cost a replica, of the rate it does."""
    wanted = q.rate_per_s * (1 + q.headroom_share) / limit_per_s
    return max(math.ceil(wanted * (1 - ALIKE)), math.ceil(q.rate_per_s / limit_per_s))


def _cost(what: Option | Refusal) -> float:
    return what.dollar_per_hour if what.dollar_per_hour is not None else float(what.gpus)


def layouts(question: Question) -> Iterator[Deployment]:
    """TP, PP, attention DP with EP, number formats and engines that can be."""
    model = question.model
    for gpu in question.gpus:
        groups = (*GROUPS, 16, 32) if gpu.name.startswith("gb") else GROUPS
        for engine in question.engines:
            for weights in question.weights or _formats(gpu):
                for kv in question.kv or ("bf16", "fp8"):
                    for size in groups:
                        plain = Deployment(
                            model, gpu, weights=weights, kv=kv, engine=engine, engine_version=question.engine_version
                        )
                        yield from _cut(plain, size)


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


def fit(deployment: Deployment, q: Question) -> Option | Refusal:
    """The option this layout makes, or why it makes none."""

    def no(why: str, detail: str, off: float = math.inf) -> Refusal:
        return Refusal(deployment, 1, why, detail, off)

    room = kv_room(deployment)
    if not room.fits:
        needs, has = room.weight_bytes / 1e9, (room.usable_bytes - room.reserved_bytes) / 1e9
        return no(
            "the weights do not fit",
            f"weights need {needs:.0f} GB of a card, {has:.0f} GB are there",
            MISFIT * needs / max(has, 1e-9),
        )
    curve = Curve(deployment, q, room)
    if curve.most < 1:
        return no(
            "not one request fits the KV cache", f"{room.tokens:,.0f} tokens fit, one request has {q.isl + q.osl:,.0f}",
            MISFIT / max(curve.most, 1e-9),
        )  # fmt: skip
    first = curve.at(ALONE)
    if first.tpot_s > q.tpot_s:
        return no(
            "time per token is missed even by one request",
            f"a token takes {_s(first.tpot_s)} even alone, target {_s(q.tpot_s)}",
            first.tpot_s / q.tpot_s,
        )
    if first.ttft_s > q.ttft_s:
        return no(
            "time to first token is missed even by one request",
            f"the first token takes {_s(first.ttft_s)} even alone, target {_s(q.ttft_s)}",
            first.ttft_s / q.ttft_s,
        )
    limit, why = curve.limit()
    if not limit.rate_per_s > 0:
        return no("the targets leave no rate at all", f"{why} at any rate")
    replicas = replicas_for(q, limit.rate_per_s)
    if replicas * deployment.ranks > q.max_gpus:
        return no(f"more than {q.max_gpus} GPUs", f"{replicas * deployment.ranks} GPUs needed",
                  replicas * deployment.ranks / q.max_gpus)  # fmt: skip
    return Option(deployment, replicas, curve.at_rate(q.rate_per_s / replicas), limit, curve.knee(), room, why)


class Curve:
    """One replica's latency against its rate."""

    def __init__(self, deployment: Deployment, q: Question, room: KvRoom | None = None) -> None:
        self.engine, self.q = Engine(deployment), q
        room = room or kv_room(deployment)
        self.most = min(MOST_BATCH, room.tokens * self.engine.k.kv_room_share / (q.isl + q.osl))
        self.new = max(1.0, q.isl * (1 - q.hit_share))
        self.prefill_s = self.engine.prefill_s(self.new, q.isl - self.new) / deployment.dp
        self.kv_read_bytes = self.engine.kv_read_bytes(q.isl + q.osl / 2)

    def at(self, batch: float) -> Point:
        """The steady state with so many inside, arriving at random; the rate is what Little's law makes of it."""
        q = self.q
        tpot, ttft, _, _ = steady_times(
            self.engine.work, self.engine.k, isl=self.new, cached=q.isl - self.new, osl=q.osl, running=max(batch, 1.0),
            concurrency=max(batch, 1.0), kv_read_bytes=self.kv_read_bytes, crowd_share=0.0, at_random=True, inside=batch,
        )  # fmt: skip
        rate = batch / (ttft + (q.osl - 1) * tpot)
        return Point(batch, rate, tpot, ttft, min(rate * self.prefill_s, 0.999))

    def limit(self) -> tuple[Point, str]:
        """The largest batch that holds the target, and what stops the next."""
        if self._holds(self.most):
            return self.at(self.most), "KV cache" if self.most < MOST_BATCH else "batch of 4096"
        low, high = ALONE, self.most
        for _ in range(2 * BISECTIONS):
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
