"""Requests and where they come from: lengths, arrival processes, shared prefixes. One at a time, never a list of all."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from stallwise.errors import BadRequest

Lengths = Callable[[random.Random], int]
MOST_VARIATION = 1000.0  # of the gaps between requests: beyond it all come at once


class Request:
    """One request on its way through a server. Times are seconds since the start."""

    __slots__ = (
        "arrival_s",
        "asked_s",
        "cached",
        "epoch",
        "first_token_s",
        "front_s",
        "last_preempted_s",
        "number",
        "output",
        "preempted_s",
        "preemptions",
        "prefilled",
        "prefix",
        "prompt",
        "queue_s",
        "ready",
        "remaining",
        "scheduled_s",
        "shared",
        "start_context",
        "start_tick",
        "to_prefill",
        "user",
    )  # fmt: skip

    def __init__(
        self, number: int, arrival_s: float, prompt: int, output: int, prefix: int = -1, shared: int = 0
    ) -> None:
        self.number, self.arrival_s, self.prompt, self.output = number, arrival_s, max(1, prompt), max(1, output)
        self.asked_s = arrival_s  # of the user; arrival is at this worker
        self.prefix, self.shared = prefix, min(shared, self.prompt - 1)
        self.remaining = self.output
        self.to_prefill, self.prefilled, self.cached = self.prompt, 0, 0
        self.scheduled_s = self.first_token_s = self.last_preempted_s = -1.0
        self.queue_s = self.preempted_s = 0.0
        self.front_s = 0.0  # HTTP, tokenising and streaming around the engine
        self.preemptions = self.epoch = 0
        self.start_tick = self.start_context = 0
        self.ready = False  # its KV came from a prefill worker
        self.user = -1


def fixed(tokens: int) -> Lengths:
    """Always the same."""
    return lambda rng: tokens


def uniform(low: int, high: int) -> Lengths:
    """Any length between, equally likely."""
    return lambda rng: rng.randint(low, high)


def lognormal(mean: float, spread: float = 0.6) -> Lengths:
    """A long tail, as chats have; `spread` is the standard deviation of the logarithm."""
    middle = math.log(mean) - spread * spread / 2
    return lambda rng: max(1, round(rng.lognormvariate(middle, spread)))


@dataclass(frozen=True)
class Traffic:
    """What requests look like. With `prefixes`, each starts with one of so many shared prefixes."""

    prompt: Lengths
    output: Lengths
    prefixes: int = 0
    shared: int = 0

    def request(self, number: int, at_s: float, rng: random.Random) -> Request:
        """The next one."""
        prefix = rng.randrange(self.prefixes) if self.prefixes else -1
        return Request(number, at_s, self.prompt(rng), self.output(rng), prefix, self.shared if self.prefixes else 0)


def poisson(rate_per_s: float, traffic: Traffic, requests: int, seed: int = 0) -> Iterator[Request]:
    """Independent users: exponential gaps."""
    return bursty(rate_per_s, traffic, requests, seed, variation=1.0)


def bursty(
    rate_per_s: float, traffic: Traffic, requests: int, seed: int = 0, variation: float = 3.0
) -> Iterator[Request]:
    """Gamma gaps; `variation` is their standard deviation over their mean (1: Poisson, more: bursts)."""
    if not 0 < rate_per_s < math.inf or not 0 < variation <= MOST_VARIATION:
        raise BadRequest(
            f"a rate above 0 and a variation from 0 to {MOST_VARIATION:.0f} are needed", hint="for example 16/s and 3"
        )
    rng, at_s = random.Random(seed), 0.0
    shape = 1 / (variation * variation)
    for number in range(requests):
        at_s += rng.gammavariate(shape, 1 / (shape * rate_per_s)) if variation != 1 else rng.expovariate(rate_per_s)
        yield traffic.request(number, at_s, rng)


def trace(entries: Iterable[tuple[float, int, int]]) -> Iterator[Request]:
    """Recorded requests: (arrival second, prompt tokens, output tokens), in order of arrival."""
    last_s = -math.inf
    for number, (at_s, prompt, output) in enumerate(entries):
        if at_s < last_s:
            raise BadRequest(f"request {number} arrives before the one before it", hint="sort the trace by time")
        last_s = at_s
        yield Request(number, at_s, prompt, output)


class ClosedLoop:
    """Users who each wait for their answer (and think) before asking again."""

    def __init__(self, users: int, traffic: Traffic, requests: int, seed: int = 0, think_s: float = 0.0) -> None:
        self.users, self.traffic, self.left, self.think_s = users, traffic, requests, think_s
        self._rng, self._number = random.Random(seed), 0

    def first(self) -> list[Request]:
        """One of each user, at the start."""
        return [r for _ in range(self.users) if (r := self._next(0.0)) is not None]

    def after(self, done: Request, now_s: float) -> list[Request]:
        """What is asked because this one is done."""
        asked = self._next(now_s + self.think_s)
        return [asked] if asked is not None else []

    def _next(self, at_s: float) -> Request | None:
        if self.left <= 0:
            return None
        self.left -= 1
        self._number += 1
        return self.traffic.request(self._number - 1, at_s, self._rng)


class Waves(ClosedLoop):
    """Users who all ask at once, and again when the last of them has its answer."""

    def __init__(self, users: int, traffic: Traffic, requests: int, seed: int = 0, think_s: float = 0.0) -> None:
        super().__init__(users, traffic, requests, seed, think_s)
        self._out = 0

    def first(self) -> list[Request]:
        """The first wave."""
        wave = super().first()
        self._out = len(wave)
        return wave

    def after(self, done: Request, now_s: float) -> list[Request]:
        """Nothing until the wave is over, then the next one."""
        self._out -= 1
        if self._out:
            return []
        wave = [r for _ in range(self.users) if (r := self._next(now_s + self.think_s)) is not None]
        self._out = len(wave)
        return wave
