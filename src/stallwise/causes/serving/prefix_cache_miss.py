"""Prompts share a prefix and it is computed anew each time.

## What it means
Blocks of a prompt that was seen before can be taken from the KV cache instead of being prefilled. Only whole blocks match:
a shared prefix shorter than one block, caching that is off, or a changing first token (a date, a user id) gives no hit.

## Why it costs
Every miss is prefill arithmetic for tokens whose result was already in memory, and first-token time.

## What else looks so
The hit rate that an engine prints is averaged over its last thousand requests and weighted by tokens: the first round of any
prompt misses by nature, and identical requests that arrive together miss together. Low is not broken; zero over many repeats
with a known shared prefix is.

## Fix
Make the matching unit smaller than the shared prefix, put what changes at the end of the prompt, turn caching on, route
requests with the same prefix to the same replica.

## How the gain is found
Tokens of the shared prefix that fill whole blocks, over tokens of the prompt: the share of prefill that a hit saves.
"""

from __future__ import annotations

from stallwise.causes.serving._each_run import facts
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_METRICS
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence

CLUES = ()
WORTH = 0.1  # of a prompt: a shorter shared prefix saves too little to look for
ENOUGH_PROMPTS = 8.0  # prompts looked up, so that first-time misses cannot explain the rate
FOUND = 0.3  # of what could be found: above it caching works
DEFAULT_BLOCK = 16.0


@rule(serving.SHARED_PREFIX)
def prefix_cache_miss(evidence: Evidence) -> Finding | None:
    """Counters or rates near zero although prompts are known to share more than a little."""
    value = evidence.value
    shared, prompt = value(serving.SHARED_PREFIX), value(serving.PROMPT_TOKENS, value(serving.SHARED_PREFIX))
    hit = value(serving.HIT_SHARE)
    queries = value(serving.PREFIX_QUERIES)
    off = evidence.get(serving.PREFIX_CACHING)
    disabled = off is not None and not off.number
    if not prompt > 0 or shared < WORTH * prompt or not (hit == hit or disabled):
        return None
    if queries == queries and queries < ENOUGH_PROMPTS * prompt:
        return None
    possible = min(1.0, shared / prompt)
    if not disabled and hit > FOUND * possible:
        return None
    block = value(serving.BLOCK_TOKENS, DEFAULT_BLOCK)
    coarse = block > shared
    confidence = 0.95 if coarse or disabled else 0.7
    why = (
        f"one block has {block:.0f} tokens and only whole blocks match" if coarse
        else "prefix caching is off" if disabled else "something before or in the prefix differs"
    )  # fmt: skip
    return Finding(
        headline=f"Prompts share {shared:.0f} tokens and none of them is reused: {why}.",
        confidence=confidence,
        because=(
            Reason.of(f"{shared:.0f} of {prompt:.0f} prompt tokens are the same in every request", *facts(evidence, serving.SHARED_PREFIX, serving.PROMPT_TOKENS)),
            Reason.of(f"hit rate {0.0 if hit != hit else hit:.1%}" + (f" over {queries:,.0f} tokens looked up" if queries == queries else ""),
                      *facts(evidence, serving.PREFIX_HITS, serving.PREFIX_QUERIES, serving.HIT_SHARE)),
            *((Reason.of(f"block of {block:.0f} tokens > shared {shared:.0f}: {shared:.0f} rounds down to 0", *facts(evidence, serving.BLOCK_TOKENS)),) if coarse else ()),
        ),
        fixes=_fixes(shared, prompt, block, coarse, disabled),
        not_here=(Reason("a low windowed hit rate by itself: it averages over requests that could not hit"),),
        avoid="A bigger KV cache: the blocks are there, they are just never matched.",
        next=(SERVE_METRICS,),
    )  # fmt: skip


def _fixes(shared: float, prompt: float, block: float, coarse: bool, disabled: bool) -> tuple[Fix, ...]:
    saved = f"up to {shared / prompt:.0%} of prefill and of its part in TTFT"
    found = []
    if disabled:
        found.append(Fix("Turn prefix caching on", worth=saved, cost="a restart"))
    if coarse:
        found.append(Fix(f"A matching unit below {shared:.0f} tokens (block size, prefix-match unit, KV cache groups)", worth=saved, cost="a restart",
                         risk="hybrid models tie the block to their state size"))  # fmt: skip
        found.append(
            Fix(f"Or a shared prefix of at least {block:.0f} tokens (examples, tools, instructions first)", worth=saved)
        )
    found.append(Fix("Put what changes (date, user, session) after what repeats", worth="keeps the prefix identical"))
    found.append(Fix("Route requests with the same prefix to the same replica", worth="hits across replicas"))
    return tuple(found)
