"""vLLM v0's default: whole prompts as soon as they fit, while running requests stand still."""

from __future__ import annotations

from stallwise.physics.sim.policies import Plan
from stallwise.physics.sim.requests import Request
from stallwise.physics.sim.serving import Server

NAME = "prefill-first"


def plan(server: Server) -> Plan:
    """All waiting prompts that fit the budget and the cache, or else a decode."""
    left = server.budget
    chosen: list[tuple[Request, int]] = [(r, r.to_prefill - r.prefilled) for r in server.prefilling]
    while server.waiting:
        request = server.waiting[0]
        if chosen and request.to_prefill > left:
            break
        if not server.admit(request):
            break
        tokens = request.to_prefill - request.prefilled
        chosen.append((request, tokens))
        left -= tokens
    return Plan(tuple(chosen), decode=not chosen)
