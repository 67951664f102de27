"""Numeric questions that never run out: sizes drawn at random, the answer worked out by the formulas of the cost model."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stallwise.drill.quantity import typed
from stallwise.physics.costs.formulas import all_formulas
from stallwise.units import Unit, show

WITHIN_FACTOR = 1.1  # whiteboard arithmetic: ten percent either way is right


@dataclass(frozen=True, slots=True)
class Question:
    """A generated question. `inputs` are those of the formula, so that anybody can check the answer."""

    id: str
    topic: str
    ask: str
    formula: str
    inputs: Mapping[str, float]
    result: str
    answer: float
    unit: Unit
    equation: str

    def accepts(self, text: str) -> bool:
        """Right to within the factor; units, number words and decimal commas are understood, a bare number is in SI."""
        value = typed(text, self.unit, bare=True)
        if self.answer == 0:
            return abs(value) < 1e-9
        return 1 / WITHIN_FACTOR <= value / self.answer <= WITHIN_FACTOR

    def worked(self) -> str:
        """The equation, the inputs and the result in words."""
        equation = "; ".join(line.strip() for line in self.equation.strip().splitlines())
        return f"{equation}   ->   {show(self.answer, self.unit)}"


@dataclass(frozen=True, slots=True)
class Kind:
    """How to ask one kind of question about a formula."""

    topic: str
    formula: str
    result: str
    draw: Callable[[random.Random], dict[str, Any]]
    ask: str  # a sentence with the inputs in braces
    possible: Callable[[Mapping[str, float], float], bool] = lambda inputs, answer: True  # could a real system be so?


def _choice(**options: list[Any]) -> Callable[[random.Random], dict[str, Any]]:
    return lambda rng: {name: rng.choice(values) for name, values in options.items()}


PARAMS = [n * 1e9 for n in (1.3, 3, 7, 8, 13, 14, 27, 32, 34, 40, 65, 70, 72, 104, 123, 175, 236, 314, 405, 671)]
RANKS = [2**k for k in range(1, 14)] + [24, 48, 96, 192, 384, 768, 1536]
SIZES = [n * 1e6 for n in (1, 2, 4, 8, 16, 25, 32, 50, 64, 100, 128, 256, 400, 512, 800, 1000, 2000, 4000)]
LINKS = [n * 1e9 for n in (12, 25, 47, 100, 150, 300, 370, 450)]
CONTEXTS = [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
LAYERS = [16, 24, 28, 32, 36, 40, 48, 60, 61, 64, 80, 94, 126]

CARDS = {2.039e12: 80e9, 3.35e12: 80e9, 4.8e12: 141e9, 8e12: 192e9}  # memory of the cards with this bandwidth
GPU_PEAKS = [(65e12, 0.32e12), (125e12, 0.9e12), (165e12, 1.008e12), (312e12, 1.555e12), (312e12, 2.039e12), (362e12, 0.864e12),
         (756e12, 2.0e12), (989e12, 3.35e12), (989e12, 4.8e12), (1307e12, 5.3e12), (1979e12, 3.35e12), (2250e12, 8e12),
         (4500e12, 8e12)]  # fmt: skip  # dense peak and bandwidth of cards that exist
REACHED = (0.05, 0.65)  # MFU that trainings report


def _of_cards(rng: random.Random) -> dict[str, Any]:
    peak, rate = rng.choice(GPU_PEAKS)
    return {"peak_flop_per_s": peak, "byte_per_s": rate}


def _fits(inputs: Mapping[str, float], answer: float) -> bool:
    """Weights and KV fit the cards that read them."""
    held = inputs["weights_bytes"] + inputs["requests"] * inputs["kv_bytes"]
    return held / inputs["gpus"] <= 0.9 * CARDS[inputs["byte_per_s"]]


KINDS = (
    Kind("memory", "adam-states", "state_bytes", _choice(params=PARAMS, gradient=[2.0, 4.0]),
         "{params:.4g} parameters under Adam: bf16 weights, {gradient:g}-byte gradients, fp32 moments and master copy. "
         "Bytes of training state in all?"),
    Kind("memory", "adam-states", "optimizer_bytes", _choice(params=PARAMS),
         "Bytes of Adam's moments and the fp32 master copy of a model with {params:.4g} parameters?"),
    Kind("memory", "zero-memory", "bytes_per_rank", _choice(params=PARAMS, ranks=RANKS, stage=[1, 2, 3]),
         "ZeRO stage {stage} over {ranks} ranks, {params:.4g} parameters at 2 + 2 + 12 bytes. State bytes on each rank?"),
    Kind("memory", "kv-cache", "request_bytes",
         _choice(layers=LAYERS, kv_heads=[1, 2, 4, 8, 16], head_dim=[64, 80, 96, 128, 256], context=CONTEXTS,
                 element=[1.0, 2.0], requests=[1]),
         "KV cache of one request: {layers} layers, {kv_heads} KV heads of {head_dim}, {context} tokens, "
         "{element:g} bytes an element. Bytes?"),
    Kind("memory", "minimum-gpus", "gpus", _choice(state_bytes=[p * 16 for p in PARAMS], memory_bytes=[40e9, 80e9, 141e9, 192e9]),
         "{state_bytes:.4g} bytes of state, cards of {memory_bytes:.3g} bytes, everything usable. Fewest cards?"),
    Kind("memory", "attention-scores", "scores_bytes",
         _choice(seq=CONTEXTS[2:], heads=[16, 32, 40, 64, 96, 128], tp=[1, 2, 4, 8], batch=[1, 2, 4]),
         "Attention without fusion: batch {batch}, {heads} heads over TP {tp}, {seq} tokens, 2 bytes. "
         "Bytes of one layer's scores on a rank?"),
    Kind("parallel", "ring-allreduce", "sent_bytes", _choice(size_bytes=SIZES, ranks=RANKS),
         "Ring all-reduce of {size_bytes:.4g} bytes over {ranks} ranks. Bytes each rank sends?"),
    Kind("parallel", "ring-allreduce", "seconds", _choice(size_bytes=SIZES, ranks=RANKS[:8], byte_per_s=LINKS, step_s=[5e-6]),
         "Ring all-reduce of {size_bytes:.4g} bytes over {ranks} ranks at {byte_per_s:.3g} B/s and 5 us a step. Seconds?"),
    Kind("parallel", "pipeline-bubble", "step_share", _choice(stages=[2, 4, 8, 12, 16, 24, 32], microbatches=[4, 8, 12, 16, 24, 32, 48, 64, 96, 128]),
         "1F1B with {stages} stages and {microbatches} microbatches, balanced. Bubble as a share of the step?"),
    Kind("parallel", "pipeline-bubble", "useful_ratio", _choice(stages=[4, 8, 16, 32], microbatches=[8, 16, 32, 64, 128, 256], chunks=[2, 3, 4, 5, 6]),
         "Interleaved 1F1B: {stages} stages, {microbatches} microbatches, {chunks} chunks a rank. Idle over useful time?",
         lambda v, _: v["microbatches"] % v["stages"] == 0),
    Kind("parallel", "zero3-volume", "sharded_bytes", _choice(params=PARAMS, ranks=RANKS),
         "ZeRO-3 in bf16, {params:.4g} parameters over {ranks} ranks, no accumulation. Bytes a rank sends each step?"),
    Kind("parallel", "tensor-parallel-traffic", "sent_bytes",
         _choice(layers=LAYERS, tokens=[2048, 4096, 8192, 16384], hidden=[2048, 4096, 5120, 8192, 12288, 16384], tp=[2, 4, 8]),
         "TP {tp}, {layers} layers, {tokens} tokens of hidden size {hidden} in bf16. "
         "Bytes a rank sends in one microbatch's forward and backward?"),
    Kind("kernels", "ridge-point", "ridge_flop_per_byte",
         _of_cards,
         "Peak {peak_flop_per_s:.4g} FLOP/s, memory {byte_per_s:.4g} B/s. FLOP per byte at the ridge?"),
    Kind("serving", "decode-ceiling", "step_s",
         _choice(weights_bytes=[p * b for p in PARAMS[2:16] for b in (1, 2)], kv_bytes=[0.1e9, 0.33e9, 0.67e9, 1.07e9, 2.7e9],
                 requests=[1, 4, 8, 16, 32, 64], gpus=[1, 2, 4, 8], byte_per_s=[2.039e12, 3.35e12, 4.8e12, 8e12], achieved_share=[1.0]),
         "Decode: {weights_bytes:.4g} bytes of weights, {requests} requests with {kv_bytes:.3g} bytes of KV each, {gpus} cards of "
         "{byte_per_s:.4g} B/s. Shortest possible step in seconds?", _fits),
    Kind("serving", "speculative-gain", "tokens_per_pass", _choice(accept_share=[n / 100 for n in range(40, 96)], guesses=[1, 2, 3, 4, 5, 6, 7, 8]),
         "Speculative decoding: {guesses} guesses, each accepted with probability {accept_share:g}. Tokens per pass of the large model?"),
    Kind("step", "training-flops", "mfu_share",
         _choice(params=PARAMS[2:12], layers=LAYERS[3:11], query_width=[4096, 5120, 8192], seq=[2048, 4096, 8192],
                 token_per_s=[200.0, 400.0, 800.0, 1500.0, 3000.0], peak_flop_per_s=[312e12, 989e12]),
         "{params:.4g} parameters, {layers} layers, attention width {query_width}, {seq} tokens: a GPU of {peak_flop_per_s:.3g} FLOP/s "
         "trains {token_per_s:g} tokens/s. MFU, causal attention counted at half?",
         lambda _, answer: REACHED[0] <= answer <= REACHED[1]),
    Kind("failures", "checkpoint-interval", "young_s",
         _choice(checkpoint_s=[10.0, 20.0, 30.0, 60.0, 98.0, 120.0, 300.0], gpus=RANKS[4:], mtbf_gpu_s=[n * 3600.0 for n in (20_000, 35_000, 50_700)]),
         "Saving takes {checkpoint_s:g} s, {gpus} GPUs each fail every {mtbf_gpu_s:.4g} s. Young's checkpoint interval in seconds?",
         lambda v, answer: answer > 2 * v["checkpoint_s"]),
)  # fmt: skip


def generate(rng: random.Random, topic: str | None = None) -> Question:
    """One question; the same generator state gives the same question."""
    kinds = [k for k in KINDS if topic in (None, k.topic)]
    kind = rng.choice(kinds)
    module = all_formulas()[kind.formula]
    while True:
        inputs = kind.draw(rng)
        answer = float(module.evaluate(**inputs)[kind.result])
        if kind.possible(inputs, answer):
            break
    ask = kind.ask.format(**inputs)
    return Question(
        id=f"{kind.formula}:{kind.result}:" + ",".join(f"{k}={v:g}" for k, v in sorted(inputs.items())),
        topic=kind.topic,
        ask=ask,
        formula=kind.formula,
        inputs=inputs,
        result=kind.result,
        answer=answer,
        unit=module.UNITS.get(kind.result, Unit.COUNT),
        equation=module.EQUATION,
    )


def series(seed: int, count: int, topic: str | None = None) -> list[Question]:
    """Questions of which no two are alike."""
    rng = random.Random(seed)
    found: dict[str, Question] = {}
    for _ in range(count * 50):
        question = generate(rng, topic)
        found.setdefault(question.id, question)
        if len(found) == count:
            break
    return list(found.values())
