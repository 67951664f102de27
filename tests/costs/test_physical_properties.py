"""What every prediction must obey whatever the constants: 2,000 random configurations, each property on all of them.

Faster hardware is never slower, a fused kernel never slower than an eager one, a newer attention never slower than an
older one, more work never quicker, and every byte and second is accounted for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from stallwise.physics.costs.collectives import Op, collective_time
from stallwise.physics.costs.constants import INDEX, NAMES
from stallwise.physics.costs.fitted import constants
from stallwise.physics.costs.flops import step_flops
from stallwise.physics.costs.grid import RECOMPUTE_CODE, Grid
from stallwise.physics.costs.memory import memory
from stallwise.physics.costs.spread import doubt_of
from stallwise.physics.costs.step import Step, time_step
from stallwise.physics.costs.topology import Wiring, fabric_of
from stallwise.physics.costs.work import step_work
from stallwise.physics.specs.cluster import Cluster, cluster_of
from stallwise.physics.specs.hardware import Gpu, all_gpus, gpu
from stallwise.physics.specs.model import Model, find_model
from stallwise.physics.specs.recipe import ATTENTION, NEWEST_ATTENTION, Recipe
from stallwise.physics.specs.workload import Workload

Array = NDArray[np.float64]
GROUPS, EACH = 20, 100  # 2,000 configurations: each group shares model, card, sequence and recipe
SLACK = 1e-9  # relative rounding that no property is about
MODELS = ("llama-3-8b", "llama-3-70b", "llama-3.1-405b", "gpt3-175b", "qwen3-30b-a3b", "deepseek-v3", "mixtral-8x7b")
CARDS = (
    "a100-80gb-sxm",
    "a100-40gb-sxm",
    "h100-sxm",
    "h200",
    "b200",
    "gb200",
    "v100-sxm-32gb",
    "mi300x",
    "l40s",
    "h800-sxm",
)


@dataclass(frozen=True)
class Group:
    """Configurations that share everything but their cut."""

    model: Model
    cluster: Cluster
    workload: Workload
    recipe: Recipe
    grid: Grid


@cache
def groups() -> tuple[Group, ...]:
    rng = np.random.default_rng(20261115)
    found = []
    for _ in range(GROUPS):
        model = find_model(str(rng.choice(MODELS)))
        seq = int(rng.choice([1024, 2048, 4096, 8192, 32768]))
        card = gpu(str(rng.choice(CARDS)))
        power = lambda most: 2 ** rng.integers(0, most + 1, EACH)  # noqa: E731
        tp, pp, cp, dp, mb = power(3), power(3), power(2), power(6), power(2)
        ep = np.minimum(power(3), model.experts) if model.experts else np.ones(EACH, dtype=np.int64)
        many = pp * power(4)
        layers = model.layers // pp
        vp = np.where((pp > 1) & (layers % 2 == 0), power(1), 1)
        grid = Grid(
            tp=tp, pp=pp, dp=dp * ep, cp=cp, ep=ep, etp=np.where(ep > 1, 1, tp), vp=vp, sp=(tp > 1) & (power(1) > 1),
            zero=rng.integers(0, 4, EACH), shards=dp * ep * cp, mb=mb, recompute=rng.integers(0, 5, EACH), micro_batches=many,
        )  # fmt: skip
        recipe = Recipe(
            precision=str(rng.choice(["bf16", "fp8"])),
            attention=str(rng.choice(["", "fa2", "unfused"])),
            fused=bool(rng.integers(2)),
            overlap=bool(rng.integers(2)),
            tp_overlap=str(rng.choice(["none", "async", "ring"])),
            framework=str(rng.choice(["megatron", "pytorch", "deepspeed"])),
            software_year=float(rng.choice([0.0, 2024.0, 2026.3])),
        )
        found.append(Group(model, cluster_of(card, int(grid.gpus.max())), Workload(seq, 1 << 20), recipe, grid))
    return tuple(found)


def timed(group: Group, values: Array | None = None) -> Step:
    work = step_work(group.model, group.cluster, group.workload, group.grid, group.recipe)
    return time_step(work, constants() if values is None else values)


@cache
def base(i: int) -> Step:
    return timed(groups()[i])


def never_slower(change: Callable[[Group], Group | None], than: Callable[[Group], Group | None] | None = None) -> None:
    """The changed world is at most as slow as the other (by default the world as it is)."""
    met = 0
    for i, group in enumerate(groups()):
        quick, slow = change(group), than(group) if than else group
        if quick is None or slow is None:
            continue
        met += 1
        one, other = timed(quick).total, base(i).total if slow is group else timed(slow).total
        assert np.all(one <= other * (1 + SLACK)), (group.model.name, group.cluster.name, float((one / other).max()))
    assert met


def recipe(**changes: object) -> Callable[[Group], Group]:
    return lambda g: replace(g, recipe=replace(g.recipe, **changes))  # type: ignore[arg-type]


def axes(**changes: object) -> Callable[[Group], Group]:
    return lambda g: replace(
        g, grid=replace(g.grid, **{k: np.full(EACH, v) if not callable(v) else v(g.grid) for k, v in changes.items()})
    )


def card(change: Callable[[Gpu], Gpu]) -> Callable[[Group], Group]:
    return lambda g: replace(g, cluster=replace(g.cluster, gpu=change(g.cluster.gpu)))


def cluster(**changes: Callable[[Cluster], object]) -> Callable[[Group], Group]:
    return lambda g: replace(g, cluster=replace(g.cluster, **{k: v(g.cluster) for k, v in changes.items()}))  # type: ignore[arg-type]


def shape(**changes: Callable[[Model], object]) -> Callable[[Group], Group | None]:
    return lambda g: replace(g, model=replace(g.model, **{k: v(g.model) for k, v in changes.items()}))  # type: ignore[arg-type]


def on(name: str) -> Callable[[Group], Group]:
    return lambda g: replace(
        g, cluster=cluster_of(name, g.cluster.gpus, domain=8, gpus_per_node=8, nic_byte_per_s=50e9)
    )


def plugged(wiring: str) -> Callable[[Group], Group]:
    """Cards without NVLink, plugged in so."""
    return lambda g: cluster(host_wiring=lambda c: wiring)(on("l40s")(g))


def faster(kind: str) -> Callable[[Gpu], Gpu]:
    if kind == "peak":
        return lambda c: replace(c, peak_flop_per_s={k: 2 * v for k, v in c.peak_flop_per_s.items()})
    return lambda c: replace(c, **{kind: 2 * getattr(c, kind)})


FULL, NONE, SELECTIVE, OPERATOR = (RECOMPUTE_CODE[n] for n in ("full", "none", "selective", "operator"))
ORDERED: dict[str, tuple[Callable[[Group], Group | None], Callable[[Group], Group | None] | None]] = {
    "fused kernels": (recipe(fused=True), recipe(fused=False)),
    "first fused attention": (recipe(attention="fa1"), recipe(attention="unfused")),
    "second generation of attention": (recipe(attention="fa2"), recipe(attention="fa1")),
    "third generation of attention": (recipe(attention="fa3"), recipe(attention="fa2")),
    "newest attention by default": (recipe(attention=""), recipe(attention="fa1")),
    "one softmax kernel": (
        recipe(attention="unfused", fused=False, fused_softmax=True), recipe(attention="unfused", fused=False),
    ),
    "asynchronous tensor messages": (recipe(tp_overlap="async"), recipe(tp_overlap="none")),
    "ring of tensor messages": (recipe(tp_overlap="ring"), recipe(tp_overlap="async")),
    "data-parallel overlap": (recipe(overlap=True), recipe(overlap=False)),
    "weights kept to the backward": (recipe(gather="pass"), recipe(gather="layer")),
    "weights gathered once a step": (recipe(gather="step"), recipe(gather="pass")),
    "gradients scattered once": (recipe(scatter_once=True), recipe(scatter_once=False)),
    "gradients sent in 16 bit": (recipe(reduce_bytes=2.0), recipe(reduce_bytes=4.0)),
    "gathers over NVLink": (recipe(flat_gather=False), recipe(flat_gather=True)),
    "one scale a tensor, not a row": (recipe(precision="fp8", scaling="tensorwise"), recipe(precision="fp8", scaling="rowwise")),
    "one scale a tensor, not a block": (recipe(precision="fp8", scaling="tensorwise"), recipe(precision="fp8", scaling="blockwise")),
    "half of the layers re-run": (recipe(recompute_layer_share=0.5), recipe(recompute_layer_share=1.0)),
    "optimizer on the card": (recipe(offload="none"), recipe(offload="optimizer")),
    "activations on the card": (recipe(offload="none"), recipe(offload="activations")),
    "fewer activations offloaded": (recipe(offload="activations", offload_share=0.5), recipe(offload="activations")),
    "newer software": (recipe(software_year=2026.5), recipe(software_year=2025.0)),
    # Adapters alone are not in this list: their kernels may cost more than the weight gradients they spare.
    "adapters beside attention alone": (
        recipe(lora_rank=16), recipe(lora_rank=16, lora_targets="all")
    ),
    "a smaller rank": (recipe(lora_rank=8), recipe(lora_rank=64)),
    "weights sent in one byte": (recipe(gather_bytes=1.0), recipe(gather_bytes=2.0)),
    "experts' messages beside other work": (recipe(expert_overlap=True), recipe(expert_overlap=False)),
    "8-bit optimizer states": (recipe(optimizer="adamw-8bit"), recipe(optimizer="adamw")),
    "sgd": (recipe(optimizer="sgd"), recipe(optimizer="adamw")),
    "selective recomputation": (axes(recompute=SELECTIVE), axes(recompute=FULL)),
    "no recomputation": (axes(recompute=NONE), axes(recompute=SELECTIVE)),
    "recomputation by operator": (axes(recompute=OPERATOR), axes(recompute=FULL)),
    "no recomputation by operator": (axes(recompute=NONE), axes(recompute=OPERATOR)),
    "fewer microbatches": (None, axes(micro_batches=lambda g: 2 * g.micro_batches)),  # type: ignore[dict-item]
    "smaller microbatches": (None, axes(mb=lambda g: 2 * g.mb)),  # type: ignore[dict-item]
    "a faster network": (cluster(nic_byte_per_s=lambda c: 2 * c.nic_byte_per_s), None),
    "faster NVLink": (card(faster("nvlink_byte_per_s")), None),
    "faster PCIe": (card(faster("pcie_byte_per_s")), None),
    "faster PCIe under offload": (
        lambda g: card(faster("pcie_byte_per_s"))(recipe(offload="optimizer")(g)), recipe(offload="optimizer"),
    ),
    "more bandwidth": (card(faster("bandwidth_byte_per_s")), None),
    "faster matrix units": (card(faster("peak")), None),
    "more power": (card(faster("power_w")), None),
    "a flat network": (None, cluster(pod_gpus=lambda c: 16, oversubscription_ratio=lambda c: 4.0)),  # type: ignore[dict-item]
    "less oversubscription": (
        cluster(pod_gpus=lambda c: 16, oversubscription_ratio=lambda c: 2.0),
        cluster(pod_gpus=lambda c: 16, oversubscription_ratio=lambda c: 4.0),
    ),
    "B200 after H200": (on("b200"), on("h200")),
    "B200 after H100": (on("b200"), on("h100-sxm")),
    "H200 after H100": (on("h200"), on("h100-sxm")),
    "H100 after H800": (on("h100-sxm"), on("h800-sxm")),
    "A100 after A800": (on("a100-80gb-sxm"), on("a800-80gb-sxm")),
    "A100 80 GB after 40 GB": (on("a100-80gb-sxm"), on("a100-40gb-sxm")),
    "A100 after V100": (on("a100-80gb-sxm"), on("v100-sxm-32gb")),
    "H100 after A100": (on("h100-sxm"), on("a100-80gb-sxm")),
    "H100 SXM after PCIe": (on("h100-sxm"), on("h100-pcie")),
    "GB200 after B200": (on("gb200"), on("b200")),
    "B300 after B200": (on("b300"), on("b200")),
    "MI325X after MI300X": (on("mi325x"), on("mi300x")),
    "a switch between PCIe cards": (
        plugged("switch"), plugged("root"),
    ),
    "one root, not two sockets": (
        plugged("root"), plugged("sockets"),
    ),
    "peer access": (
        lambda g: cluster(peer_access=lambda c: True)(on("l40s")(g)), lambda g: cluster(peer_access=lambda c: False)(on("l40s")(g)),
    ),
    "a smaller vocabulary": (None, shape(vocab=lambda m: 2 * m.vocab)),  # type: ignore[dict-item]
    "narrower MLPs": (None, shape(intermediate=lambda m: 2 * m.intermediate)),  # type: ignore[dict-item]
    "fewer keys and values": (lambda g: None if g.model.mla else replace(g, model=replace(g.model, kv_heads=1)),
                              lambda g: None if g.model.mla else replace(g, model=replace(g.model, kv_heads=g.model.heads))),
    "fewer experts a token": (
        None,  # type: ignore[dict-item]
        lambda g: replace(g, model=replace(g.model, experts_per_token=2 * g.model.experts_per_token)) if g.model.experts else None,
    ),
    "narrower experts": (
        None,  # type: ignore[dict-item]
        lambda g: replace(g, model=replace(g.model, expert_intermediate=2 * g.model.expert_intermediate)) if g.model.experts else None,
    ),
    "balanced experts": (None, lambda g: replace(g, workload=replace(g.workload, moe_imbalance_ratio=1.5))),  # type: ignore[dict-item]
    "shorter sequences": (None, lambda g: replace(g, workload=replace(g.workload, seq=2 * g.workload.seq))),  # type: ignore[dict-item]
    "a schedule that fills its bubble": (recipe(schedule="zb-h1"), recipe(schedule="1f1b")),
    "a schedule without bubbles": (recipe(schedule="zb-h2"), recipe(schedule="zb-h1")),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_never_slower_with(name: str) -> None:
    better, worse = ORDERED[name]
    never_slower(better or (lambda g: g), worse)


@pytest.mark.parametrize("name", NAMES)
def test_each_constant_moves_time_one_way(name: str) -> None:
    """Eight properties: more of a multiplier is never quicker, more hiding never slower."""
    values = constants().copy()
    values[INDEX[name]] *= 1.1
    for i, group in enumerate(groups()):
        change = timed(group, values).total / base(i).total
        assert np.all(change <= 1 + SLACK) if name == "hidden" else np.all(change >= 1 - SLACK)
        assert np.all(change < 1.1 + SLACK)


def no_slower_in_any_unit(card: Gpu, than: Gpu) -> bool:
    """What "faster hardware" means: every promised rate, the power to keep it, the kernels it runs, and the wiring."""
    rates = ("bandwidth_byte_per_s", "nvlink_byte_per_s", "pcie_byte_per_s", "power_w")
    kernels = [ATTENTION.index(NEWEST_ATTENTION.get(c.architecture, "fa2")) for c in (card, than)]
    switched = [fabric_of(cluster_of(c, 64)).wiring is Wiring.SWITCH for c in (card, than)]
    return (
        card.vendor == than.vendor  # vendors reach different shares of what they promise
        and all(card.peak(t) >= than.peak(t) for t in ("bf16", "fp16", "fp8"))
        and all(getattr(card, rate) >= getattr(than, rate) for rate in rates)
        and kernels[0] >= kernels[1]
        and switched[0] >= switched[1]
    )


def test_no_card_of_the_catalogue_is_slower_than_one_it_outdoes_in_every_unit() -> None:
    cards = all_gpus()
    pairs = [(a, b) for a in cards for b in cards if a.name != b.name and no_slower_in_any_unit(a, b)]
    assert len(pairs) > 100
    taken: dict[tuple[int, str], Array] = {}
    for k, (new, old) in enumerate(pairs):
        i = k % GROUPS  # every pair on a hundred configurations, every configuration met by many pairs
        for name in (new.name, old.name):
            if (i, name) not in taken:
                taken[i, name] = timed(on(name)(groups()[i])).total
        assert np.all(taken[i, new.name] <= taken[i, old.name] * (1 + SLACK)), (new.name, old.name, i)


def test_parts_are_never_negative_and_sum_to_the_step() -> None:
    for i, _ in enumerate(groups()):
        parts = base(i).parts()
        assert all(np.all(v >= -1e-12) for v in parts.values())
        assert np.allclose(sum(parts.values()), base(i).total, rtol=0.02)


def test_no_step_beats_the_peak() -> None:
    for i, group in enumerate(groups()):
        grid = group.grid
        for j in range(0, EACH, 8):
            sequences = int(grid.dp[j] * grid.mb[j] * grid.micro_batches[j])
            flops = step_flops(group.model, Workload(group.workload.seq, sequences))
            if group.recipe.lora_rank == 0:
                assert flops / float(base(i).total[j]) < group.cluster.gpu.peak(group.recipe.precision) * int(
                    grid.gpus[j]
                )


def test_twice_the_microbatches_take_no_more_than_twice_the_time() -> None:
    for i, group in enumerate(groups()):
        twice = timed(axes(micro_batches=lambda g: 2 * g.micro_batches)(group)).total
        assert np.all(twice <= 2 * base(i).total * (1 + SLACK))


def test_a_layout_is_timed_alone_as_among_others() -> None:
    for i, group in enumerate(groups()):
        some = np.arange(3, EACH, 17)
        assert np.allclose(timed(replace(group, grid=group.grid.take(some))).total, base(i).total[some], rtol=1e-12)


def test_intervals_hold_the_prediction_and_widen_with_what_is_unknown() -> None:
    for group in groups():
        plain = doubt_of(group.model, group.cluster, group.recipe)
        vague = doubt_of(group.model, group.cluster, group.recipe, knobs=0.2)
        told = doubt_of(group.model, group.cluster, group.recipe, calibrated=True)
        assert 1 < told.factor <= plain.factor < vague.factor


@cache
def bytes_of(i: int) -> Array:
    return memory_of(groups()[i])


def memory_of(group: Group) -> Array:
    return memory(group.model, group.grid, group.workload, group.recipe).device


def _kept(**changes: object) -> Callable[[Group], Group]:
    """The recipe changed, nothing re-run."""
    return lambda g: axes(recompute=NONE)(recipe(**changes)(g))


LEANER: dict[str, tuple[Callable[[Group], Group | None], Callable[[Group], Group | None]]] = {
    "sharded optimizer states": (axes(zero=1), axes(zero=0)),
    "sharded gradients": (axes(zero=2), axes(zero=1)),
    "full recomputation": (axes(recompute=FULL), axes(recompute=NONE)),
    "selective recomputation": (axes(recompute=SELECTIVE), axes(recompute=NONE)),
    "smaller microbatches": (lambda g: g, axes(mb=lambda g: 2 * g.mb)),
    "8-bit optimizer states": (recipe(optimizer="adamw-8bit"), recipe(optimizer="adamw")),
    "16-bit gradients": (recipe(grad_bytes=2.0), recipe(grad_bytes=4.0)),
    "no master copy": (recipe(master=False), recipe(master=True)),
    "optimizer offloaded": (recipe(offload="optimizer"), recipe(offload="none")),
    "activations offloaded": (recipe(offload="activations"), recipe(offload="none")),
    "fused attention": (_kept(attention="fa2"), _kept(attention="unfused")),
    "one forward one backward, not all forward": (recipe(schedule="1f1b"), recipe(schedule="gpipe")),
    "shorter sequences": (lambda g: g, lambda g: replace(g, workload=replace(g.workload, seq=2 * g.workload.seq))),
    "a smaller vocabulary": (lambda g: g, shape(vocab=lambda m: 2 * m.vocab)),
    "sequence parallelism": (axes(sp=True), axes(sp=False)),
}


@pytest.mark.parametrize("name", LEANER)
def test_never_more_memory_with(name: str) -> None:
    for group in groups():
        lean, fat = (change(group) for change in LEANER[name])
        assert lean is not None and fat is not None
        one, other = memory_of(lean), memory_of(fat)
        assert np.all(one <= other * (1 + SLACK)), (group.model.name, float((one / other).max()))


def test_parts_of_memory_sum_to_the_device() -> None:
    for group in groups():
        found = memory(group.model, group.grid, group.workload, group.recipe)
        assert np.allclose(sum(found.parts().values()), found.device, rtol=1e-6)


@pytest.mark.parametrize("op", list(Op))
def test_larger_messages_take_longer(op: Op) -> None:
    for group in groups()[::5]:
        fabric = fabric_of(group.cluster)
        for ranks in (2, 8, 64):
            times = [collective_time(op, size, ranks, fabric).seconds for size in 4.0 ** np.arange(5, 17)]
            assert all(b >= a * (1 - SLACK) for a, b in zip(times, times[1:], strict=False))


def test_there_are_eighty_properties() -> None:
    assert len(ORDERED) + len(LEANER) + len(NAMES) + len(Op) + 7 >= 80
