"""The pools of a disaggregated run: as stated, or every layout that what was stated leaves open, with its weight.

A table that names workers without their number, or a worker's GPUs without how attention is cut among them, leaves a
mixture, weighed as runs that were described in full are laid out: decode pools of any size up to a rack alike, prefill
pools as small as keep up, attention cut among a worker's GPUs while each has few requests and replicated beyond.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallwise.physics.costs.pools import PoolTimes
from stallwise.physics.costs.speculation import NO_SPECULATION, Speculation
from stallwise.physics.specs.deployment import Deployment
from stallwise.planner.stated_words import stated

MOST_GPUS = 80  # of one service where nobody says: the largest of 206 described in full, a rack or ten nodes
REPLICATED_BATCH = (
    16.0  # requests on each GPU where half of those 206 replicate attention (nearly none at 4, all at 64)
)
COUNTS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 18.0, 36.0, 72.0)  # of workers, where they are not stated
UNEVEN_WEIGHT = 0.25  # of pools over which the users do not divide: loads are set as so many for each worker
DRAFT_SHARE = 0.5  # of runs whose model brings a layer that drafts, when nobody says whether it was used
DRAFT_TOKENS = (1, 3)  # drafted; engines' recipes use one at high load and three at low
DRAFT_ACCEPTANCE = 0.75  # of DeepSeek-V3's second token 0.85 to 0.9 was published, later ones are right less often
BEHIND_LOAD, BEHIND_WEIGHT = 0.95, 0.01  # of layouts whose prompts' pool falls behind: pools are sized not to
_WORKER = re.compile(
    r"(?:(?P<workers>\d{0,9})x )?bs(?P<batch>\d{0,9}) tp(?P<tp>\d{1,9}) pp(?P<pp>\d{1,9}) dp(?P<dp>\d{1,9}) "
    r"moe_tp(?P<moe_tp>\d{1,9}) moe_ep(?P<ep>\d{1,9})"
)


@dataclass(frozen=True)
class Worker:
    """One pool's worker in each cut that may be meant, and how many there are if that was said."""

    cuts: tuple[Deployment, ...]
    count: float | None
    batch: float | None  # of one attention replica

    @property
    def gpus(self) -> int:
        """Of one worker."""
        return self.cuts[0].ranks


@dataclass(frozen=True)
class Layouts:
    """A cut of both pools with every count of workers that it leaves open; weights are relative."""

    prefill: Deployment
    decode: Deployment
    prefill_workers: Any
    decode_workers: Any
    weight: Any


def worker_of(text: str, like: Deployment, count: float | None) -> Worker | None:
    """What a cell says of a pool; None if it does not name a worker."""
    match = _WORKER.match(text or "")
    if not match:
        return None
    tp, pp, dp, ep = (max(int(match[n]), 1) for n in ("tp", "pp", "dp", "ep"))
    whole = float(match["workers"]) if match["workers"] else None
    batch = float(match["batch"]) if match["batch"] else None
    if whole is not None and batch is not None:  # said in full: the cut is meant as written
        spread = ep if like.model.experts and (tp * dp) % ep == 0 else 1
        return Worker((like.changed(tp=tp, pp=pp, dp=dp, ep=spread),), max(whole, 1.0), max(batch, 1.0))
    return Worker(tuple(_cuts(like, tp * dp, pp)), whole or count, batch)


def _cuts(like: Deployment, gpus: int, pp: int) -> Iterator[Deployment]:
    """Attention cut among a worker's GPUs, or one replica on each where experts are spread over all."""
    model = like.model
    if model.heads % gpus == 0:
        yield like.changed(tp=gpus, pp=pp, dp=1, ep=gpus if model.experts and gpus > 1 else 1)
    if model.experts and gpus > 1:
        yield like.changed(tp=1, pp=pp, dp=gpus, ep=gpus)


def users_of(row: dict[str, str], decode: Worker) -> float | None:
    """All requests in flight: stated in words, or as many as the decode pool's batches hold."""
    if decode.batch is not None and decode.count is not None:
        return decode.batch * decode.cuts[0].dp * decode.count
    return stated(row, "concurrency")


def layouts(prefill: Worker, decode: Worker, users: float, gpus: float | None) -> Iterator[Layouts]:
    """Every layout that may be meant."""
    total = gpus or max(MOST_GPUS, prefill.gpus * (prefill.count or 1) + decode.gpus * (decode.count or 1))
    choices = COUNTS if gpus is None else tuple(map(float, range(1, int(total) + 1)))
    p, d = np.meshgrid(_counts(prefill, total, choices), _counts(decode, total, choices), indexing="ij")
    used = p * prefill.gpus + d * decode.gpus
    fits = used <= total if gpus is None else used == total
    if not fits.any():  # the stated total contradicts the workers: their counts are open again
        fits = used == used.min()
    p, d = p[fits], d[fits]
    weight = _gap(p, choices) / p**2 * _gap(d, choices) * np.where(users % d == 0, 1.0, UNEVEN_WEIGHT)
    batch = users / (d * decode.gpus)
    replicated = batch / (batch + REPLICATED_BATCH)
    for prompts in prefill.cuts:
        for tokens in decode.cuts:
            chance = (replicated if tokens.dp > 1 else 1 - replicated) if len(decode.cuts) > 1 else 1.0
            yield Layouts(prompts, tokens, p, d, weight * chance / len(prefill.cuts))


def _counts(worker: Worker, total: float, choices: tuple[float, ...]) -> Any:
    """The stated one, or all that fit."""
    if worker.count is not None:
        return np.array([worker.count])
    most = max(total // worker.gpus, 1.0)
    return np.array([n for n in choices if n <= most])


def _gap(counts: Any, choices: tuple[float, ...]) -> Any:
    """How many counts one of a thinned list stands for."""
    nexts = dict(zip(choices, (*choices[1:], choices[-1] + 1), strict=True))
    return np.array([nexts.get(n, n + 1) - n for n in counts])


def drafts(decode: Worker) -> Iterator[tuple[Speculation, float]]:
    """Whether a draft is checked, where the model brings one and the run is not described in full."""
    if not decode.cuts[0].model.mtp_layers or decode.batch is not None:
        yield NO_SPECULATION, 1.0
        return
    yield NO_SPECULATION, 1 - DRAFT_SHARE
    for tokens in DRAFT_TOKENS:
        yield Speculation(tokens, DRAFT_ACCEPTANCE), DRAFT_SHARE / len(DRAFT_TOKENS)


def keeping_up(at: PoolTimes) -> Any:
    """How likely anyone runs each layout: not with a prompts' pool that falls behind."""
    return np.where(at.prefill_load > BEHIND_LOAD, BEHIND_WEIGHT, 1.0)
