"""A second, plain simulation of continuous batching, written from what the papers say and from nothing of `sim`.

Iteration by iteration and request by request, with lists and no shortcuts:

- Orca (Yu et al. 2022): requests join and leave between iterations; everyone who runs makes one token an iteration.
- vLLM's first scheduler (Kwon et al. 2023): waiting prompts go first, whole, as many as fit the token budget and the
  cap; while prompts are computed nobody decodes.
- Sarathi-Serve (Agrawal et al. 2024): every iteration carries all decodes, and prompts fill what is left of a token
  budget, cut wherever it ends.

Only the time of an iteration comes from `costs`: what is checked is the schedule, not the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[int, float, float, float], float]  # decodes, mean context, prompt tokens, query-key pairs -> seconds


@dataclass
class Job:
    arrival_s: float
    prompt: int
    answer: int
    done_prompt: int = 0
    made: int = 0
    first_s: float = -1.0
    end_s: float = -1.0


def serve(jobs: list[Job], clock: Clock, *, chunked: bool, cap: int, budget: int) -> list[Job]:
    """Everything to its end, in place."""
    queue, inside, now = sorted(jobs, key=lambda j: j.arrival_s), list[Job](), 0.0
    while queue or inside:
        decoding = [j for j in inside if j.done_prompt >= j.prompt]
        room = budget - (len(decoding) if chunked else 0)
        work: list[tuple[Job, int]] = []
        for job in [j for j in inside if j.done_prompt < j.prompt]:
            take = min(room, job.prompt - job.done_prompt)
            if take > 0:
                work.append((job, take))
                room -= take
        while queue and queue[0].arrival_s <= now and len(inside) < cap:
            need = queue[0].prompt
            if room <= 0 or (not chunked and work and need > room):
                break
            job = queue.pop(0)
            inside.append(job)
            take = min(room, need) if chunked else need
            work.append((job, take))
            room -= take
        if not work and not decoding:
            now = max(now, queue[0].arrival_s)
            continue
        going = decoding if chunked or not work else []
        context = sum(j.prompt + j.made for j in going) / len(going) if going else 0.0
        tokens = sum(t for _, t in work)
        pairs = sum(t * (j.done_prompt + t / 2) for j, t in work)
        now += clock(len(going), context, float(tokens), pairs)
        for job in going:
            job.made += 1
        for job, take in work:
            job.done_prompt += take
            if job.done_prompt >= job.prompt:
                job.made, job.first_s = 1, now
        for job in [j for j in inside if j.made >= j.answer]:
            job.end_s = now
            inside.remove(job)
    return jobs


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def ttft_s(jobs: list[Job]) -> float:
    return median([j.first_s - j.arrival_s for j in jobs])


def tpot_s(jobs: list[Job]) -> float:
    return median([(j.end_s - j.first_s) / (j.answer - 1) for j in jobs if j.answer > 1])
