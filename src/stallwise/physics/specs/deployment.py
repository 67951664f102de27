"""How one model is served: on which cards, cut how, in which number formats, by which engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallwise.errors import BadRequest
from stallwise.physics.specs.dtype import bytes_per
from stallwise.physics.specs.hardware import Gpu
from stallwise.physics.specs.model import Model

ENGINES = ("vllm", "sglang", "trtllm")
SMALL_BYTES = 1.1  # a weight of 8 bits or less


@dataclass(frozen=True)
class Deployment:
    """One replica of a service. `dp` is attention data parallelism: replicas of attention that share the experts."""

    model: Model
    gpu: Gpu
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    weights: str = "bf16"
    kv: str = ""  # empty: as the published runs do, 8 bit where the weights are
    engine: str = "vllm"
    engine_version: str = ""  # a release as "0.5.9"; empty: not known
    memory_share: float = 0.9  # what the engine may take of the card

    def __post_init__(self) -> None:
        for axis in ("tp", "pp", "dp", "ep"):
            if getattr(self, axis) < 1:
                raise BadRequest(f"{axis} must be at least 1", hint="tp, pp, dp and ep are counts of GPUs")
        if self.model.heads % self.tp:
            divisors = [t for t in range(1, self.model.heads + 1) if self.model.heads % t == 0]
            near = min(divisors, key=lambda t: abs(t - self.tp))
            raise BadRequest(
                f"TP {self.tp} does not divide the {self.model.heads} heads of {self.model.name}",
                hint=f"the nearest that does is {near}",
            )
        if self.model.layers < self.pp:
            raise BadRequest(f"PP {self.pp} is more than {self.model.layers} layers", hint="fewer stages")
        if self.ep > 1 and not self.model.experts:
            raise BadRequest(f"{self.model.name} has no experts to spread over EP {self.ep}", hint="ep 1")
        if (self.tp * self.dp) % self.ep:
            raise BadRequest(
                f"EP {self.ep} does not divide TP {self.tp} x DP {self.dp}", hint=f"EP {self.tp * self.dp} spreads all"
            )

    @property
    def ranks(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp * self.dp

    @property
    def expert_tp(self) -> int:
        """How many GPUs share one expert."""
        return self.tp * self.dp // self.ep

    @property
    def kv_dtype(self) -> str:
        """Number format of the cache."""
        return self.kv or ("fp8" if bytes_per(self.weights) <= SMALL_BYTES and self.weights != "int4" else "bf16")

    @property
    def attention_dtype(self) -> str:
        """Checkpoints that only store weights in 4 bit leave attention of latent and sparse models in 16 bit."""
        stored = self.weights == "int4" and bool(self.model.mla or self.model.experts)
        return "bf16" if stored else self.weights

    @property
    def label(self) -> str:
        """As people write it."""
        parts = [f"TP{self.tp}"]
        parts += [f"PP{self.pp}"] * (self.pp > 1) + [f"DP{self.dp}"] * (self.dp > 1) + [f"EP{self.ep}"] * (self.ep > 1)
        return f"{' '.join(parts)} {self.weights} KV {self.kv_dtype}"

    def changed(self, **what: object) -> Deployment:
        """The same service with something else."""
        return replace(self, **what)  # type: ignore[arg-type]
