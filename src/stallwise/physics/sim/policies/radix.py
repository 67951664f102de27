"""SGLang-like: prefill first, prompts with the longest cached prefix before the others, cached tokens not computed."""

from __future__ import annotations

from stallwise.physics.sim.policies import Plan
from stallwise.physics.sim.requests import Request
from stallwise.physics.sim.serving import Server

NAME = "radix"
LOOK_AHEAD = 64  # waiting requests that are compared; everyone behind keeps the order of arrival
PATIENCE_S = 5.0  # a request that waited this long is next, so that nobody starves


def plan(server: Server) -> Plan:
    """Chunks of whole prompts within the budget, best match first."""
    left = server.budget
    chosen: list[tuple[Request, int]] = [(r, min(left, r.to_prefill - r.prefilled)) for r in server.prefilling]
    left -= sum(tokens for _, tokens in chosen)
    while left > 0 and server.waiting:
        at = _best(server)
        request = server.waiting[at]
        if at:
            del server.waiting[at]
            server.waiting.appendleft(request)
        if not server.admit(request):
            break
        tokens = min(left, request.to_prefill - request.prefilled)
        chosen.append((request, tokens))
        left -= tokens
    return Plan(tuple(chosen), decode=not chosen)


def _best(server: Server) -> int:
    first = server.waiting[0]
    if server.now_s - first.arrival_s > PATIENCE_S or first.preemptions:
        return 0
    cached = [server.pool.match(server.waiting[i].prefix) for i in range(min(LOOK_AHEAD, len(server.waiting)))]
    return cached.index(max(cached))
