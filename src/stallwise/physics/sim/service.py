"""A whole service: replicas or separate pools of prefill and decode, and its story as evidence the doctor reads."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stallwise.errors import BadRequest
from stallwise.evidence.catalog import fabric, hardware, serving
from stallwise.evidence.engine_samples import SAMPLE_COLUMNS
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.speculation import NO_SPECULATION, Speculation
from stallwise.physics.sim.meter import Meter
from stallwise.physics.sim.requests import ClosedLoop, Request
from stallwise.physics.sim.serving import Server
from stallwise.physics.specs.deployment import Deployment

SIMULATED = "simulation"
NETWORK_SHARE = 0.8  # of a NIC that a KV transfer reaches


@dataclass(frozen=True)
class Settings:
    """How the engine is configured."""

    policy: str = "chunked"
    max_seqs: int = 256
    budget: int = 8192
    blocks: int | None = None
    speculation: Speculation = NO_SPECULATION
    prefix_caching: bool = True
    sample_s: float = 5.0
    goal: tuple[float, float] | None = None  # TTFT and TPOT of a good request
    pace: float = 1.0  # times what an iteration is computed to take: what was seen of this very engine


@dataclass(frozen=True)
class Served:
    """What came out."""

    deployment: Deployment
    settings: Settings
    meter: Meter
    kv_tokens: float

    @property
    def goodput_per_s(self) -> float:
        """Requests a second that met the goal."""
        return self.meter.good / self.meter.end_s if self.meter.end_s else 0.0

    @property
    def output_token_per_s(self) -> float:
        """Of the whole replica."""
        return self.meter.output_tokens / self.meter.end_s if self.meter.end_s else 0.0

    def evidence(self) -> Evidence:
        """Samples, counters, latencies and settings as a log and a metrics page would give them."""
        return _evidence(self)


def simulate(
    deployment: Deployment,
    arrivals: Iterator[Request] | ClosedLoop,
    settings: Settings | None = None,
    *,
    most_events: float = math.inf,
) -> Served:
    """One replica under this load, to the end of it; a load that takes more events than allowed is refused."""
    settings = settings or Settings()
    server = _server(Engine(deployment), settings, most_events=most_events)
    for _ in server.run(arrivals):
        pass
    return Served(deployment, settings, server.meter, float(server.pool.total * server.pool.block))


def simulate_disaggregated(
    prefill: Deployment,
    decode: Deployment,
    arrivals: Iterator[Request] | ClosedLoop,
    settings: Settings | None = None,
    *,
    prefill_workers: int = 1,
    link_byte_per_s: float = 50e9,
    most_events: float = math.inf,
) -> tuple[Served, list[Meter]]:
    """Prompts on their own workers (round robin), KV over a network, answers on a decode worker."""
    settings = settings or Settings()
    if isinstance(arrivals, ClosedLoop):
        raise BadRequest("disaggregated pools need an open load", hint="give a rate instead of a number of users")
    if prefill_workers < 1 or link_byte_per_s <= 0:
        raise BadRequest("a pool needs workers and a link", hint="at least one worker and some bytes a second")
    shares = _dealt(arrivals, prefill_workers)
    pools = [
        _server(Engine(prefill), settings, decode_here=False, most_events=most_events) for _ in range(prefill_workers)
    ]
    per_token = kv_room(prefill).bytes_per_token * prefill.tp * prefill.pp
    streams = [
        _handed(pool, share, per_token / (NETWORK_SHARE * link_byte_per_s))
        for pool, share in zip(pools, shares, strict=True)
    ]
    answer = _server(Engine(decode), settings, most_events=most_events)
    for _ in answer.run(heapq.merge(*streams, key=lambda r: r.arrival_s)):
        pass
    for pool in pools:
        answer.meter.arrived += pool.meter.refused
        answer.meter.refused += pool.meter.refused
    served = Served(decode, settings, answer.meter, float(answer.pool.total * answer.pool.block))
    return served, [pool.meter for pool in pools]


def _server(engine: Engine, s: Settings, *, decode_here: bool = True, most_events: float = math.inf) -> Server:
    server = Server(
        engine, policy=s.policy, max_seqs=s.max_seqs, budget=s.budget, blocks=s.blocks,
        speculation=s.speculation, prefix_caching=s.prefix_caching,
        decode_here=decode_here, sample_s=s.sample_s, most_events=most_events, pace=s.pace,
    )  # fmt: skip
    server.meter.goal = s.goal
    server.front_s = float(engine.k.alone_s), float(engine.k.first_token_s)
    return server


def _dealt(arrivals: Iterator[Request], workers: int) -> list[Iterator[Request]]:
    """Round robin without keeping what was dealt: each worker pulls, the others' cards wait in their hand."""
    from collections import deque

    hands: list[deque[Request]] = [deque() for _ in range(workers)]
    source = enumerate(arrivals)

    def hand(mine: int) -> Iterator[Request]:
        while True:
            while not hands[mine]:
                dealt = next(source, None)
                if dealt is None:
                    return
                hands[dealt[0] % workers].append(dealt[1])
            yield hands[mine].popleft()

    return [hand(i) for i in range(workers)]


def _handed(pool: Server, arrivals: Iterator[Request], s_per_token: float) -> Iterator[Request]:
    """Requests as they reach the decode worker: their KV is there, their first token was made."""
    for request in pool.run(arrivals):
        if request.remaining <= 0:
            request.remaining, request.output = 1, max(request.output, 2)  # one-token answers end at the decoder's door
        request.ready = True
        request.to_prefill, request.prefilled = request.prompt + 1, 0
        request.arrival_s, request.scheduled_s = pool.now_s + request.prompt * s_per_token, request.scheduled_s
        yield request


def _evidence(served: Served) -> Evidence:
    m, d = served.meter, served.deployment
    source = Source(SIMULATED)
    evidence = Evidence(inputs=[SIMULATED], formats=[SIMULATED])

    def say(quantity: Quantity, value: float | str) -> None:
        if isinstance(value, str) or value == value:
            evidence.add([Fact(quantity, value, source, samples=max(1, m.completed))])

    say(serving.ENGINE, d.engine)
    say(serving.MODEL, d.model.name)
    say(serving.WEIGHTS, d.weights)
    say(fabric.TP_SIZE, float(d.tp))
    say(hardware.GPU_NAME, d.gpu.name)
    say(serving.KV_TOKENS, served.kv_tokens)
    say(serving.MAX_SEQS, float(served.settings.max_seqs))
    say(serving.MAX_BATCHED_TOKENS, float(served.settings.budget))
    say(serving.CHUNKED_PREFILL, float(served.settings.policy == "chunked"))
    say(serving.PREEMPTED, float(m.preemptions))
    say(serving.REQUESTS_DONE, float(m.completed))
    if m.end_s > 0 and m.completed:
        say(serving.ACHIEVED_RATE, m.completed / m.end_s)
        say(serving.OUTPUT_RATE, m.output_tokens / m.end_s)
        say(serving.PROMPT_TOKENS, m.prompt_tokens / m.completed)
        say(serving.OUTPUT_TOKENS, m.output_tokens / m.completed)
        say(serving.QUEUE_TIME, m.queue_s / m.completed)
        say(serving.PREFILL_TIME, m.prefill_s / m.completed)
        say(serving.DECODE_TIME, m.decode_s / m.completed)
        say(serving.PREEMPTED_TIME, m.preempted_s / m.completed)
        say(serving.REQUEST_TIME, m.whole.mean)
    say(serving.TTFT, m.ttft.quantile(0.5))
    say(serving.TTFT_TAIL, m.ttft.quantile(0.99))
    say(serving.TPOT, m.tpot.quantile(0.5))
    say(serving.TPOT_TAIL, m.token.quantile(0.99))
    if m.hit_tokens or served.settings.policy == "radix":
        say(serving.PREFIX_QUERIES, float(m.looked_up_tokens))
        say(serving.PREFIX_HITS, float(m.hit_tokens))
    evidence.add(_tables(m, source))
    return evidence


def _tables(m: Meter, source: Source) -> list[Table]:
    found = []
    if m.samples:
        values = np.array(m.samples, dtype=np.float64).T
        columns = {name: np.full(len(m.samples), np.nan) for name in SAMPLE_COLUMNS}
        names = ("time_s", "running", "waiting", "kv_share", "prompt_token_per_s", "generation_token_per_s")
        columns |= dict(zip(names, values, strict=True))
        found.append(Table(serving.ENGINE_SAMPLES, columns, source, meta={"engine": SIMULATED}))
    if m.token.count:
        edges, counts = m.token.buckets()
        columns = {"edge_s": np.array(edges), "count": np.array(counts)}
        found.append(Table(serving.LATENCIES, columns, source, meta={"name": "tpot", "sum_s": m.token.total}))
    return found
