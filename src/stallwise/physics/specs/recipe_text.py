"""What a run's own words say about how it was run, field by field; what they do not say stays open.

Words are data (`catalog/recipe_words.toml`), and so are the habits by which an open field is weighed
(`catalog/recipe_habits.toml`). Nothing is concluded from who published a run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from stallwise.physics.specs.network_text import network_rate, node_size
from stallwise.physics.specs.states import States
from stallwise.tables import parsed

RELEASE = re.compile(r"(?<![\d.])(2\d)\.(0[1-9]|1[0-2])(?:\.\d+)?(?![\d.])")
MONTH = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (20[12]\d)\b")
YEAR = re.compile(r"\b(20[12]\d)\b")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
ARXIV = re.compile(r"\barxiv[: ]*(\d\d)(0[1-9]|1[0-2])\.\d{4,5}")
GROUP = re.compile(r"(?:group|shard|over|hsdp)[ =]+(\d+)\b")
# "activation offload ratio 0.0", "compile: off": the thing is named to say that it was not used.
DENIED = re.compile(r"(?: ratio| is| was|:|=| =)* ?(?:0(?:\.0+)?|off|false|disabled|not used|unused)(?![\w.])")
OFFLOADED = re.compile(r"offload\w* (?:ratio|share)[ :=]*(0?\.\d+|1(?:\.0)?)")
LORA = re.compile(r"q?lora\b")
RANK = re.compile(r"rank[ =:]*(\d+)|(?<![a-z])r ?= ?(\d+)")
USUAL_RANK = 16  # of adapters whose rank nobody says
PARTIAL = re.compile(r"partial ?\((\d+) ?/ ?(\d+)")


@dataclass(frozen=True)
class StatedRecipe:
    """What the words settle; None is open. `network_byte_per_s` is per GPU and direction."""

    attention: str | None = None  # one of recipe.ATTENTION, or "fused"
    framework: str | None = None
    kernels: str | None = None
    softmax: str | None = None
    tp_overlap: str | None = None
    overlap: str | None = None  # "yes" or "no"
    scaling: str | None = None
    sharding: str | None = None  # none, optimizer, gradients or weights
    gather: str | None = None
    shard_group: int = 0
    recompute: str | None = None
    recompute_modules: tuple[str, ...] = ()
    recompute_layer_share: float = 1.0
    param: str | None = None
    grad: str | None = None
    frozen: str | None = None
    lora_rank: int = 0
    lora_targets: str | None = None
    loss: str | None = None  # "chunked": no logits of a whole microbatch
    optimizer_kernel: str | None = None
    expert_overlap: str | None = None
    offload: str | None = None
    offload_share: float = 1.0
    year: float = 0.0  # of the software, 0: not known
    network_byte_per_s: float | None = None
    node_gpus: int | None = None
    unread: tuple[str, ...] = field(default=(), compare=False)  # cells that say something nobody here understands


@cache
def _words() -> dict[str, dict[str, re.Pattern[str]]]:
    text = (Path(__file__).parent / "catalog" / "recipe_words.toml").read_text(encoding="utf-8")
    return {
        name: {
            value: re.compile("|".join(rf"(?<![a-z0-9])(?:{p})(?![a-z0-9])" for p in patterns))
            for value, patterns in table.items()
        }
        for name, table in parsed(text).items()
    }


def word_for(name: str, text: str) -> str | None:
    """The value of a field that some text settles, or None."""
    plain = text.lower()
    for value, pattern in _words()[name].items():
        for found in pattern.finditer(plain):
            if not DENIED.match(plain, found.end()):
                return value
    return None


def read_recipe(row: dict[str, Any]) -> StatedRecipe:
    """All fields from a row: a column of the field's own name wins, then its special column, then free text."""

    def cell(key: str) -> str:
        return str(row.get(key) or "").strip().lower()

    free = " ; ".join(cell(k) for k in ("notes", "source", "method", "software"))
    everything = f"{cell('sharding')} ; {cell('precision')} ; {free}"

    def found(name: str, text: str) -> str | None:
        own = cell(name)
        return word_for(name, own) or (own if own in _words()[name] else None) or word_for(name, text)

    sharding = word_for("sharding", cell("sharding"))
    recompute, modules, share = _recompute(cell("recompute"))
    if recompute is None and not cell("recompute"):
        recompute = "full" if re.search(r"full (?:activation )?(?:recompute|checkpoint)", free) else None
    # A sharding word names a framework only where nothing else does.
    framework = found("framework", free) or word_for("framework", cell("sharding"))
    remarks = " ; ".join(str(row.get(k) or "") for k in ("nic", "network", "notes"))
    unread = [k for k, v in (("sharding", sharding), ("recompute", recompute)) if cell(k) and v is None]
    group = GROUP.search(cell("sharding"))
    return StatedRecipe(
        attention=found("attention", free),
        framework=framework,
        kernels=found("kernels", everything),
        softmax=found("softmax", everything),
        tp_overlap=found("tp_overlap", everything),
        overlap=found("overlap", everything),
        scaling=found("scaling", everything) or word_for("scaling", cell("precision")),
        sharding=sharding,
        gather=found("gather", cell("sharding")),
        shard_group=int(group[1]) if group else 0,
        recompute=recompute,
        recompute_modules=modules,
        recompute_layer_share=share,
        param=found("param", everything),
        grad=found("grad", everything),
        frozen=found("frozen", everything),
        lora_rank=_rank(f"{free} ; {cell('tflops_kind')}"),
        lora_targets=found("lora_targets", free),
        loss=found("loss", everything),
        optimizer_kernel=found("optimizer_kernel", free),
        expert_overlap=found("expert_overlap", f"{cell('schedule')} ; {free}"),
        offload=found("offload", everything),
        offload_share=_share(everything),
        year=software_year(f"{cell('release')} {cell('source')}", f"{free} {cell('citation')}"),
        network_byte_per_s=network_rate(remarks),
        node_gpus=node_size(remarks),
        unread=tuple(unread),
    )


def _recompute(text: str) -> tuple[str | None, tuple[str, ...], float]:
    kind = word_for("recompute", text) if text else None
    if kind == "modules":
        inside = text[text.index("(") + 1 :].rstrip(")")
        names = tuple(m for m, pattern in _words()["module"].items() if pattern.search(inside))
        return ("none", names, 1.0) if names else (None, (), 1.0)
    if kind == "partial":
        part = PARTIAL.search(text)
        return ("full", (), int(part[1]) / max(int(part[2]), 1)) if part else (None, (), 1.0)
    return kind, (), 1.0


def _rank(text: str) -> int:
    """Of the adapters that the words name; 0 where they name none."""
    if not LORA.search(text):
        return 0
    found = RANK.search(text)
    return int(next(g for g in found.groups() if g)) if found else USUAL_RANK


def _share(text: str) -> float:
    """The part that "offload ratio 0.2" names; all of it where none is named."""
    found = OFFLOADED.search(text)
    return float(found[1]) if found else 1.0


def software_year(*texts: str) -> float:
    """When the software was released: a calendar release, a month, the paper's number, a year; 0 where none is named."""
    for text in texts:
        plain = text.lower()
        if found := RELEASE.search(plain):
            return 2000 + int(found[1]) + (int(found[2]) - 0.5) / 12
        if found := MONTH.search(plain):
            return int(found[2]) + (MONTHS.index(found[1]) + 0.5) / 12
        if found := ARXIV.search(plain):
            return 2000 + int(found[1]) + (int(found[2]) - 0.5) / 12
        if years := YEAR.findall(plain):
            return int(min(years)) + 0.5
    return 0.0


def usual_states(framework: str, precision: str, year: float = 0.0, **stated: str) -> States:
    """Types of a job whose owner says no more: the likeliest of what people run, where `stated` leaves it open."""

    def taken(name: str) -> str:
        weights = habit(name, year=year, framework=framework, precision=precision)
        return stated.get(name) or max(weights, key=lambda k: weights[k])

    return States(param=taken("param"), grad=taken("grad"), frozen=taken("frozen"))


@cache
def _habits() -> dict[str, list[dict[str, Any]]]:
    text = (Path(__file__).parent / "catalog" / "recipe_habits.toml").read_text(encoding="utf-8")
    return parsed(text)


def habit(name: str, *, year: float = 0.0, **known: str | None) -> dict[str, float]:
    """Weights of the choices of an open field, given what is known of the run."""
    for entry in _habits()[name]:
        conditions = {k: v for k, v in entry.items() if k not in ("weights", "before", "since")}
        holds = all(known.get(k) in v for k, v in conditions.items())
        holds = holds and ("before" not in entry or 0 < year < entry["before"])
        if holds and ("since" not in entry or year >= entry["since"]):
            weights: dict[str, float] = entry["weights"]
            total = sum(weights.values())
            return {choice: w / total for choice, w in weights.items()}
    return {}
