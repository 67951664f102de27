"""What the evidence says exists: GPUs, several ranks, several nodes, a serving engine, a training loop, frameworks, cores, the script.

Each answer is yes, no, or not known; only a no keeps advice back. "No" needs evidence of its own (a recorded or traced run that
shows none, a stated number), for a complaint in words leaves most of it open.
"""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.evidence.catalog import distributed, fabric, hang, job, roofline, run, serving, stages, stated
from stallwise.evidence.catalog.hardware import GPU_NAME
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.user_lines import KIND as USER_LINES

LARGEST_NODE_GPUS = 16  # more do not stand in one machine of the common kinds
COUNTS = (distributed.WORLD_SIZE, hang.HANG_WORLD, stated.GPUS, fabric.RUN_CARDS)
ENGINES = ("vLLM", "SGLang", "engine", "load test", "TorchServe", "trtllm")  # words of their formats
COLLECTIVE_FORMATS = ("NCCL", "nccl", "flight recorder", "rank progress", "rank layout")
CARD_FORMATS = ("nvidia-smi", "Nsight", "nsys", "DCGM", "memory snapshot", *COLLECTIVE_FORMATS)
# Recordings of one process: what is not in them, this process did not do.
RECORDINGS = (
    "PyTorch trace", "JAX", "rocprof", "nsys", "Nsight", "profile", "folded stacks", "Triton kernel bandwidth", "memory snapshot",
)  # fmt: skip
STEP_TIMES, STACKS = "step times", "stacks"  # stand beside the formats: any of them may have them
SERVED = (
    serving.ENGINE, serving.OFFERED_RATE, serving.ACHIEVED_RATE, serving.TTFT, serving.TTFT_TAIL, serving.TPOT, serving.OUTPUT_RATE,
    serving.QUEUE_TIME, serving.RUNNING, serving.WAITING, serving.PREEMPTED, serving.KV_MAX, serving.MAX_SEQS,
)  # fmt: skip
EXCHANGES = (stated.ALLREDUCE_TIME, fabric.SCALING_BOUNDARY, distributed.STRAGGLER)


@dataclass(frozen=True, slots=True)
class Presence:
    """True, False, or None where nothing tells."""

    gpu: bool | None = None
    ranks: bool | None = None  # two or more processes that exchange
    nodes: bool | None = None  # two or more
    exchange: bool | None = None  # collectives between GPUs matter to this job
    serving: bool | None = None
    training: bool | None = None
    torch: bool | None = None
    jax: bool | None = None
    rank_count: int | None = None
    command: str = ""  # as the job was started
    script: str = ""
    formats: frozenset[str] = frozenset()  # what was given already
    places: str = ""  # where a framework would show: the command, and the files of sampled stacks

    def has(self, need: str) -> bool | None:
        """Whether what a piece of advice needs is there."""
        answer: bool | None = getattr(self, need)
        return answer


def presence_in(evidence: Evidence) -> Presence:
    """Looks at every witness once."""
    count = _rank_count(evidence)
    serves, trains = _serving(evidence), _training(evidence)
    ranks = None if count is None else count > 1
    exchange = ranks
    if ranks is None and serves and not trains:
        exchange = _exchanges(evidence)
    alone = _one_process(evidence) and not _exchanges(evidence)
    if ranks is None and alone:
        exchange = False
    jax = _any_format(evidence, ("JAX",))
    torch = _any_format(evidence, ("PyTorch", "torch"))
    lines = (str(name) for t in evidence.table("top python lines") for name in t.columns["name"])
    beside = {STEP_TIMES: _knows_steps(evidence), STACKS: bool(evidence.table(USER_LINES))}
    return Presence(
        gpu=_gpu(evidence),
        ranks=ranks,
        nodes=_nodes(evidence, count),
        exchange=exchange,
        serving=serves if serves or ((trains or alone) and not _may_decode(evidence)) else None,
        training=trains if trains or serves else None,
        torch=False if jax and not torch else torch or None,
        jax=False if torch and not jax else jax or None,
        rank_count=count,
        command=evidence.text(job.COMMAND),
        script=evidence.text(job.SCRIPT),
        places="\n".join((evidence.text(job.COMMAND), *lines)),
        formats=frozenset(evidence.formats) | {what for what, there in beside.items() if there},
    )


def _any_format(evidence: Evidence, words: tuple[str, ...]) -> bool:
    return any(word in name for name in evidence.formats for word in words)


def _numbers(evidence: Evidence, quantity: Quantity) -> list[float]:
    return [f.number for f in evidence.all(quantity) if f.scope.run != "before" and f.number >= 1]


def _rank_count(evidence: Evidence) -> int | None:
    """The most that anybody tells of; one where a whole step was measured and nothing in it exchanges."""
    counts = [n for q in COUNTS for n in _numbers(evidence, q)]
    seen = {scope.rank for scope in evidence.scopes("rank")}
    most = max([*counts, float(len(seen))], default=0.0)
    if most > 1 or _exchanges(evidence):
        return int(most) if most > 1 else None
    measured = [x for x in evidence.ledgers if x.unit == "step"]
    alone = bool(counts) or (bool(measured) and all(x.share(Category.COMMUNICATION) == 0.0 for x in measured))
    return 1 if alone else None


def _one_process(evidence: Evidence) -> bool:
    """Whether nothing but recordings of a process was given."""
    return bool(evidence.formats) and all(any(word in name for word in RECORDINGS) for name in evidence.formats)


def _exchanges(evidence: Evidence) -> bool:
    """Whether collectives were seen, or are spoken of in numbers."""
    return (
        _any_format(evidence, COLLECTIVE_FORMATS)
        or any(t.kind.startswith("collective") and len(t) for t in evidence.tables)
        or any(evidence.all(q) for q in EXCHANGES)
        or evidence.value(fabric.TP_SIZE, 1.0) > 1
    )


def _gpu(evidence: Evidence) -> bool | None:
    recorded = [f.number for f in evidence.all(stages.ON_DEVICE)]
    shown = (
        bool(evidence.all(GPU_NAME) or evidence.all(stated.GPU))
        or _any_format(evidence, CARD_FORMATS)
        or any(recorded)
        or any(
            f.scope.gpu is not None or f.scope.kernel is not None
            for facts in evidence.facts.values()
            for f in facts[:1]
        )
        or bool(_numbers(evidence, stated.GPUS))
    )
    return True if shown else False if recorded else None


def _nodes(evidence: Evidence, count: int | None) -> bool | None:
    counts = [n for q in (fabric.NODES, fabric.FABRIC_NODES) for n in _numbers(evidence, q)]
    hosts = {scope.node for scope in evidence.scopes("node")}
    if any(n > 1 for n in counts) or len(hosts) > 1 or (count or 0) > LARGEST_NODE_GPUS:
        return True
    return False if counts or count == 1 else None


def _serving(evidence: Evidence) -> bool:
    """An engine's own numbers, or those of its users; what a model would need if it were served says nothing."""
    return _any_format(evidence, ENGINES) or any(f.scope.run != "before" for q in SERVED for f in evidence.all(q))


def _may_decode(evidence: Evidence) -> bool:
    """A trace in which attention reads a cache: its steps may be tokens of an answer."""
    return bool(evidence.all(roofline.ATTENTION_BYTES_SHARE))


def _knows_steps(evidence: Evidence) -> bool:
    return bool(evidence.all(run.STEP_TIME) or evidence.series(run.STEP_TIME))


def _training(evidence: Evidence) -> bool:
    """A loop of steps: traced, recorded, logged or spoken of."""
    return (
        any(x.unit in ("step", "window") for x in evidence.ledgers)
        or _knows_steps(evidence)
        or bool(evidence.series(run.LOSS))
        or bool(evidence.all(run.MFU) or evidence.all(job.RECORDED_STEPS))
        or _any_format(evidence, ("training log", "stallwise record", "PyTorch trace", "JAX"))
    )
