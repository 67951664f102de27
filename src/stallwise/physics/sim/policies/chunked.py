"""vLLM v1: decodes first, then as much prefill as the token budget leaves, in order of arrival."""

from __future__ import annotations

from stallwise.physics.sim.policies import Plan
from stallwise.physics.sim.requests import Request
from stallwise.physics.sim.serving import Server

NAME = "chunked"


def plan(server: Server) -> Plan:
    """One token for each running request; chunks of prompts fill the rest of the budget."""
    left = server.budget - server.decoding
    chosen: list[tuple[Request, int]] = []
    for request in server.prefilling:
        if left <= 0:
            break
        tokens = min(left, request.to_prefill - request.prefilled)
        chosen.append((request, tokens))
        left -= tokens
    while left > 0 and server.waiting:
        request = server.waiting[0]
        if not server.admit(request):
            break
        tokens = min(left, request.to_prefill - request.prefilled)
        chosen.append((request, tokens))
        left -= tokens
    return Plan(tuple(chosen), decode=True)
