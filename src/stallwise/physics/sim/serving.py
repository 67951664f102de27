"""A discrete-event simulation of continuous batching.

Time jumps from event to event. Between events the same requests decode: such a stretch of iterations is advanced at
once (a tick is one token of every running request), so the cost of simulating does not grow with the length of answers.
Iteration times come from `costs`; scheduling from a policy; memory from a pool of blocks with preemption by recompute.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator

from stallwise.errors import BadRequest
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.kv_room import BLOCK_TOKENS, kv_room
from stallwise.physics.costs.speculation import NO_SPECULATION, Speculation
from stallwise.physics.sim.kv_pool import KvPool
from stallwise.physics.sim.meter import Meter
from stallwise.physics.sim.policies import Planner, policy_named
from stallwise.physics.sim.requests import ClosedLoop, Request

LONG_STRETCH = 4096  # ticks; longer stretches are cut so that the growing context is felt
WATERMARK = 0.01  # of the blocks that admission leaves free, as vLLM does


class Server:
    """One replica."""

    def __init__(
        self,
        engine: Engine,
        *,
        policy: str = "chunked",
        max_seqs: int = 256,
        budget: int = 8192,
        blocks: int | None = None,
        speculation: Speculation = NO_SPECULATION,
        prefix_caching: bool = True,
        decode_here: bool = True,
        sample_s: float = 5.0,
        most_events: float = math.inf,
        pace: float = 1.0,
    ) -> None:
        if blocks is None:
            room = kv_room(engine.deployment)
            if not room.fits:
                raise BadRequest(
                    f"the weights of {engine.deployment.model.name} do not fit {engine.deployment.label}",
                    hint="more GPUs, or fewer bits",
                )
            blocks = int(min(room.tokens, 1e12)) // BLOCK_TOKENS
        self.events_left, self.pace = most_events, pace
        self.front_s = (0.0, 0.0)  # around the engine, of a request that finds nobody and of one among others
        self.engine, self.max_seqs, self.budget = engine, max_seqs, budget
        self.pool = KvPool(blocks, BLOCK_TOKENS)
        self.speculation, self.decode_here, self.prefix_caching = speculation, decode_here, prefix_caching
        self.waiting: deque[Request] = deque()
        self.prefilling: list[Request] = []
        self.running: dict[int, Request] = {}  # decoding, in order of admission
        self.now_s, self.tick, self.context = 0.0, 0, 0
        self.meter = Meter(sample_s)
        self.handed_over: deque[Request] = deque()
        self._finish: list[tuple[int, int, int, Request]] = []  # (tick, number, epoch, request)
        self._plan: Planner = policy_named(policy)
        self._watermark = int(WATERMARK * blocks)

    @property
    def decoding(self) -> int:
        """Requests that get a token every tick."""
        return len(self.running)

    # --- the loop ---

    def run(self, arrivals: Iterator[Request] | ClosedLoop) -> Iterator[Request]:
        """Serves everything and yields requests as they finish."""
        loop = arrivals if isinstance(arrivals, ClosedLoop) else None
        source = iter(sorted(loop.first(), key=lambda r: r.arrival_s)) if loop else iter(arrivals)  # type: ignore[arg-type]
        later: list[tuple[float, int, Request]] = []  # closed-loop users who think
        following = next(source, None)
        while True:
            self.events_left -= 1
            if self.events_left < 0:
                raise BadRequest("this load thrashes: its simulation does not come to an end", hint="a smaller load")
            if loop and following is None and later:
                following = heapq.heappop(later)[2]
            while following is not None and following.arrival_s <= self.now_s:
                self._arrive(following)
                following = next(source, None)
                if loop and following is None and later:
                    following = heapq.heappop(later)[2]
            next_s = following.arrival_s if following is not None else math.inf
            if not self._advance(next_s):
                if following is None:
                    break
                self._idle_until(next_s)
            for done in self._finished():
                for asked in loop.after(done, self.now_s) if loop else ():
                    heapq.heappush(later, (asked.arrival_s, asked.number, asked))
                yield done
        self.meter.close(self.now_s)

    def _arrive(self, request: Request) -> None:
        self.meter.arrived += 1
        if self.pool.blocks_of(request.prompt + request.output) > self.pool.total:
            self.meter.refused += 1  # no engine accepts what its cache can never hold
            return
        self.waiting.append(request)

    def _idle_until(self, until_s: float) -> None:
        self.meter.passed(self.now_s, until_s, 0.0, 0.0, self._state())
        self.now_s = until_s

    def _advance(self, next_arrival_s: float) -> bool:
        """One iteration with prefill, or a stretch of decodes; False when there is nothing to do."""
        plan = self._plan(self) if self.waiting or self.prefilling else None
        if plan is not None and plan.prefill:
            self._mixed(plan.prefill, plan.decode and self.decode_here)
            return True
        if self.running:
            self._stretch(next_arrival_s)
            return True
        assert not self.waiting, "a waiting request that fits an empty cache is admitted"
        return False

    # --- iterations ---

    def _seconds(self, decodes: int, prefill: float = 0.0, pairs: float = 0.0, ahead: float = 0.0) -> float:
        """One tick: an iteration over the tokens it yields."""
        return self.pace * self._modelled(decodes, prefill, pairs, ahead)

    def _modelled(self, decodes: int, prefill: float, pairs: float, ahead: float) -> float:
        mean = (self.context / decodes + ahead) if decodes else 0.0
        spec = self.speculation
        if not spec.tokens or not decodes:
            return float(self.engine.parts(decodes, mean, prefill, pairs).total_s)
        checking = decodes * spec.tokens
        verified = float(self.engine.parts(decodes, mean, checking).total_s)
        token = spec.token_s(float(self.engine.parts(decodes, mean).total_s), verified)
        if not prefill:
            return token
        # A draft yields tokens, not prompts: what the prompts add is paid in full.
        return token + float(self.engine.parts(decodes, mean, checking + prefill, pairs).total_s) - verified

    def _mixed(self, prefill: tuple[tuple[Request, int], ...], decode: bool) -> None:
        tokens = sum(t for _, t in prefill)
        pairs = sum(t * (r.cached + r.prefilled + t / 2) for r, t in prefill)
        if decode and self.running:
            self._make_room()
        decodes = self.decoding if decode else 0
        seconds = self._seconds(decodes, tokens, pairs)
        self.meter.passed(self.now_s, self.now_s + seconds, float(decodes), float(tokens), self._state())
        if decodes:
            self._tick(1, seconds)
        else:
            self.meter.stalled(seconds)
        self.now_s += seconds
        for request, count in prefill:
            request.prefilled += count
            if request.prefilled >= request.to_prefill and request in self.prefilling:
                self.prefilling.remove(request)
                self._first_token(request)

    def _stretch(self, next_arrival_s: float) -> None:
        self._make_room()
        if not self.running:
            return
        ticks = min(self._finish_tick() - self.tick, LONG_STRETCH)
        ticks = max(1, self.pool.room(self.tick, ticks))
        if self.decoding < self.max_seqs and not self.waiting and next_arrival_s < math.inf:
            # An arrival could join: stop at the iteration in which it comes.
            once = self._seconds(self.decoding)
            ticks = max(1, min(ticks, math.ceil((next_arrival_s - self.now_s) / once)))
        seconds = ticks * self._seconds(self.decoding, ahead=ticks / 2)
        self.meter.passed(self.now_s, self.now_s + seconds, float(self.decoding * ticks), 0.0, self._state())
        self._tick(ticks, seconds)
        self.now_s += seconds

    def _tick(self, ticks: int, seconds: float) -> None:
        self.pool.grow(self.tick, ticks)
        self.tick += ticks
        self.context += self.decoding * ticks
        self.meter.decoded(seconds / ticks, self.decoding * ticks, self.decoding)

    # --- requests ---

    def admit(self, request: Request) -> bool:
        """Takes blocks for the first waiting request and moves it into prefill; False if it must wait."""
        if self.decoding + len(self.prefilling) >= self.max_seqs:
            return False
        cached = 0  # a hit saves arithmetic; its blocks are counted again, since they must stay while it runs
        if self.prefix_caching and request.prefix >= 0 and not request.ready and request.to_prefill > request.shared:
            cached = min(self.pool.match(request.prefix), request.shared // self.pool.block * self.pool.block)
        keep = self._watermark if self.running or self.prefilling else 0
        need = self.pool.blocks_of(request.to_prefill)
        if self.pool.free + sum(self.pool.prefixes.values()) < need + keep or not self.pool.take(need):
            return False
        self.waiting.popleft()
        if request.scheduled_s < 0:
            request.scheduled_s = self.now_s
            request.front_s = self.front_s[bool(self.running or self.prefilling)]
            request.queue_s = self.now_s - request.arrival_s
        if request.last_preempted_s >= 0:
            request.preempted_s += self.now_s - request.last_preempted_s
            request.last_preempted_s = -1.0
        request.cached = cached
        request.prefilled = cached if not request.ready else request.to_prefill - 1
        self.meter.looked_up(request.to_prefill if not request.ready else 0, cached)
        self.prefilling.append(request)
        return True

    def _first_token(self, request: Request) -> None:
        """Its prefill is over, which yields a token."""
        if request.first_token_s < 0:
            request.first_token_s = self.now_s
        if self.prefix_caching and request.prefix >= 0 and request.shared:
            self.pool.keep(request.prefix, request.shared)
        request.remaining -= 1
        request.start_context, request.start_tick = request.to_prefill, self.tick
        request.ready = False
        if request.remaining <= 0 or not self.decode_here:
            self._release(request, request.to_prefill)
            (self._done if self.decode_here or request.remaining <= 0 else self.handed_over).append(request)
            return
        self.running[request.number] = request
        self.pool.join(request.to_prefill, self.tick)
        self.context += request.to_prefill
        heapq.heappush(self._finish, (self.tick + request.remaining, request.number, request.epoch, request))

    @property
    def _done(self) -> deque[Request]:
        return self.meter.done

    def _finish_tick(self) -> int:
        while self._finish[0][2] != self._finish[0][3].epoch:
            heapq.heappop(self._finish)
        return self._finish[0][0]

    def _finished(self) -> Iterator[Request]:
        while self._finish and (self._finish[0][0] <= self.tick or self._finish[0][2] != self._finish[0][3].epoch):
            _, _, epoch, request = heapq.heappop(self._finish)
            if epoch == request.epoch:
                self._leave(request)
                self._release(request, request.start_context + self.tick - request.start_tick)
                request.remaining = 0
                self._done.append(request)
        while self.handed_over:
            yield self.handed_over.popleft()
        while self._done:
            request = self._done.popleft()
            self.meter.finished(request, self.now_s)
            yield request

    def _leave(self, request: Request) -> None:
        del self.running[request.number]
        self.pool.leave(request.start_context, request.start_tick)
        self.context -= request.start_context + self.tick - request.start_tick

    def _release(self, request: Request, tokens: int) -> None:
        self.pool.give(self.pool.blocks_of(tokens))

    def _make_room(self) -> None:
        """Preempts the youngest until everyone else can store a token."""
        while self.running and self.pool.room(self.tick, 1) < 1:
            number = next(reversed(self.running))
            victim = self.running[number]
            self._leave(victim)
            made = self.tick - victim.start_tick
            held = victim.start_context + made
            self._release(victim, held)
            victim.remaining -= made
            victim.epoch += 1
            victim.to_prefill, victim.prefilled, victim.cached = held + 1, 0, 0
            victim.preemptions += 1
            victim.last_preempted_s = self.now_s
            self.waiting.appendleft(victim)
            self.meter.preempted(held)

    def _state(self) -> tuple[float, float, float]:
        kv = self.pool.used / self.pool.total if self.pool.total else 1.0
        return float(self.decoding + len(self.prefilling)), float(len(self.waiting)), kv
