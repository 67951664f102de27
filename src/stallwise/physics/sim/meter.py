"""What a simulated server would tell: samples over time, latencies, counters. Memory does not grow with requests."""

from __future__ import annotations

from collections import deque

from stallwise.physics.sim.latency import Latencies
from stallwise.physics.sim.requests import Request

MOST_SAMPLES = 4096  # beyond it every second sample goes and the interval doubles

State = tuple[float, float, float]  # running, waiting, KV share


class Meter:
    """Counts and averages."""

    def __init__(self, sample_s: float) -> None:
        self.sample_s = sample_s
        self.samples: list[tuple[float, float, float, float, float, float]] = []
        self.ttft, self.tpot, self.token, self.whole = Latencies(), Latencies(), Latencies(), Latencies()
        self.queue_s = self.prefill_s = self.decode_s = self.preempted_s = 0.0
        self.arrived = self.refused = self.completed = self.preemptions = 0
        self.recomputed_tokens = 0
        self.looked_up_tokens = self.hit_tokens = 0
        self.prompt_tokens = self.output_tokens = 0
        self.done: deque[Request] = deque()
        self.goal: tuple[float, float] | None = None  # TTFT and TPOT that count as good
        self.good = 0
        self.busy_request_s = 0.0  # integral of requests in the engine, for Little's law
        self.inside_s = 0.0  # the same, summed over requests
        self.end_s = 0.0
        self._window_s = 0.0
        self._generated = self._prompted = 0.0
        self._stalled_s = 0.0

    def passed(self, start_s: float, end_s: float, generated: float, prompted: float, state: State) -> None:
        """A stretch of time with constant state."""
        self.busy_request_s += (state[0] + state[1]) * (end_s - start_s)
        self.end_s = end_s
        span_s = end_s - start_s
        while end_s >= self._window_s + self.sample_s:
            edge_s = self._window_s + self.sample_s
            share = min(1.0, max(0.0, (edge_s - start_s) / span_s)) if span_s > 0 else 0.0
            self._close_window(edge_s, self._generated + generated * share, self._prompted + prompted * share, state)
            generated, prompted = generated * (1 - share), prompted * (1 - share)
            start_s, span_s = edge_s, end_s - edge_s
            self._generated = self._prompted = 0.0
        self._generated += generated
        self._prompted += prompted

    def _close_window(self, edge_s: float, generated: float, prompted: float, state: State) -> None:
        self.samples.append((edge_s, *state, prompted / self.sample_s, generated / self.sample_s))
        self._window_s = edge_s
        if len(self.samples) >= MOST_SAMPLES:
            self.samples = [_pair(a, b) for a, b in zip(self.samples[::2], self.samples[1::2], strict=True)]
            self.sample_s *= 2

    def close(self, end_s: float) -> None:
        """The end; a run shorter than one interval still gives a sample."""
        self.end_s = max(self.end_s, end_s)
        if not self.samples and end_s > 0:
            self.samples.append((end_s, 0.0, 0.0, 0.0, self._prompted / end_s, self._generated / end_s))

    def decoded(self, seconds: float, tokens: int, batch: int) -> None:
        """Tokens and the time each took; the first ones after a prefill waited for it too."""
        if self._stalled_s > 0:
            self.token.add(seconds + self._stalled_s, batch)
            self._stalled_s = 0.0
            tokens -= batch
        if tokens > 0:
            self.token.add(seconds, tokens)

    def stalled(self, seconds: float) -> None:
        """A prefill in which nobody decoded."""
        self._stalled_s += seconds

    def preempted(self, tokens: int) -> None:
        """One request thrown out, with so many tokens to compute again."""
        self.preemptions += 1
        self.recomputed_tokens += tokens

    def looked_up(self, tokens: int, hits: int) -> None:
        """A prompt that was compared with the prefix cache."""
        self.looked_up_tokens += tokens
        self.hit_tokens += hits

    def finished(self, request: Request, now_s: float) -> None:
        """A request that is done."""
        self.completed += 1
        ttft_s = request.first_token_s - request.asked_s + request.front_s
        decode_s = now_s - request.first_token_s
        tpot_s = decode_s / (request.output - 1) if request.output > 1 else 0.0
        self.ttft.add(ttft_s)
        self.inside_s += now_s - request.arrival_s
        if request.output > 1:
            self.tpot.add(tpot_s)
        self.whole.add(now_s - request.asked_s + request.front_s)
        self.queue_s += request.queue_s
        self.prefill_s += ttft_s - request.queue_s - request.front_s
        self.preempted_s += request.preempted_s
        self.decode_s += decode_s - request.preempted_s
        self.prompt_tokens += request.prompt
        self.output_tokens += request.output
        if self.goal and ttft_s <= self.goal[0] and tpot_s <= self.goal[1]:
            self.good += 1


def _pair(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, float, float, float, float, float]:
    mixed = [(x + y) / 2 for x, y in zip(a[1:], b[1:], strict=True)]
    return (b[0], mixed[0], mixed[1], mixed[2], mixed[3], mixed[4])
