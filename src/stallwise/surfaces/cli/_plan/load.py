"""Simulate a service under a load and let the doctor read the result."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan load --model llama-3.1-70b --gpu h100-sxm --tp 8 --weights fp8 --rate 16 --isl 1250 --osl 300 "
    "--policy prefill-first; stallwise plan load --model llama-3.1-8b --users 64"
)
@click.option("--model", "model_name", required=True, help="Catalogue name, config.json, or its folder.")
@click.option("--gpu", "gpu_name", default="h100-sxm", show_default=True, help="Kind of GPU.")
@click.option("--tp", default=1, show_default=True)
@click.option("--pp", default=1, show_default=True)
@click.option("--dp", default=1, show_default=True, help="Attention replicas that share the experts.")
@click.option("--ep", default=1, show_default=True)
@click.option("--weights", default="bf16", show_default=True)
@click.option("--kv", default="", help="Format of the KV cache; default: as the weights.")
@click.option("--engine", default="vllm", show_default=True)
@click.option("--engine-version", help="Its release, for example 0.11.0; unset: not known, and the interval is wider.")
@click.option("--rate", default="1/s", show_default=True, help="Requests a second.")
@click.option("--burst", default=1.0, show_default=True, help="Variation of the gaps: 1 Poisson, 3 bursts.")
@click.option("--users", type=int, help="Instead of a rate: users who wait for each answer.")
@click.option("--waves", is_flag=True, help="With --users: all ask at once, and again when the last has its answer.")
@click.option(
    "--prefill-workers",
    default=0,
    show_default=True,
    help="Prefill on so many workers of its own, with --rate or --trace.",
)
@click.option(
    "--trace", type=click.Path(dir_okay=False), help="Instead of a rate: a file of recorded requests (CSV, JSON lines)."
)
@click.option("--isl", default=1000.0, show_default=True, help="Tokens of a prompt, mean.")
@click.option("--osl", default=300.0, show_default=True, help="Tokens of an answer, mean.")
@click.option("--spread", default=0.6, show_default=True, help="Of the lengths' logarithm; 0: all alike.")
@click.option("--shared", default=0, show_default=True, help="Tokens of a prompt that many share.")
@click.option("--policy", default="chunked", show_default=True, help="chunked, prefill-first or radix.")
@click.option("--max-seqs", default=256, show_default=True)
@click.option("--budget", default=8192, show_default=True, help="Tokens an iteration may hold.")
@click.option("--draft", default=0, show_default=True, help="Speculative tokens.")
@click.option("--acceptance", default=0.7, show_default=True, help="Chance that a draft token is right.")
@click.option("--ttft", default="1s", show_default=True, help="A good request's first token.")
@click.option("--tpot", default="50ms", show_default=True, help="And its later ones.")
@click.option("--requests", default=2000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@answer_options
def command(model_name: str, gpu_name: str, out: Output, **given: object) -> None:
    """TTFT, token times and goodput of one replica, cache and queue over time, and what stalls it."""
    from stallwise.doctor.examine import examine
    from stallwise.render.blocks import plain
    from stallwise.render.documents.load import document
    from stallwise.render.verdict import verdict

    served = _simulate(model_name, gpu_name, given)
    m = served.meter
    diagnosis = examine(served.evidence())
    figures = {
        "requests": m.completed, "refused": m.refused, "seconds": m.end_s, "output_token_per_s": served.output_token_per_s,
        **{f"{name}_{word}_s": kind.quantile(q)
           for name, kind in (("ttft", m.ttft), ("tpot", m.tpot), ("token", m.token), ("request", m.whole))
           for word, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))},
        "good_share": m.good / max(1, m.completed), "goodput_per_s": served.goodput_per_s, "preemptions": m.preemptions,
        "ranked": list(diagnosis.ranked),
    }  # fmt: skip
    samples = [{"time_s": s[0], "running": s[1], "waiting": s[2], "kv_share": s[3]} for s in m.samples]
    over_time = {name: [s[i] for s in m.samples] for i, name in enumerate(("running", "waiting", "KV cache"), 1)}
    laid = partial(document, figures, over_time, plain(verdict(diagnosis).line))
    out.give(laid, lambda: {**figures, "samples": samples})


def _simulate(model_name: str, gpu_name: str, given: dict[str, object]):  # type: ignore[no-untyped-def]
    from stallwise.errors import BadRequest
    from stallwise.physics.costs.speculation import Speculation
    from stallwise.physics.sim.requests import ClosedLoop, Traffic, Waves, bursty, fixed, lognormal
    from stallwise.physics.sim.service import Settings, simulate, simulate_disaggregated
    from stallwise.physics.specs.deployment import Deployment
    from stallwise.physics.specs.dtype import dtype
    from stallwise.physics.specs.hardware import gpu
    from stallwise.physics.specs.model import find_model
    from stallwise.progress import Progress, shown
    from stallwise.units import Unit, parse

    g = dict(given)
    axes = {k: int(str(g[k])) for k in ("tp", "pp", "dp", "ep")}
    kv = dtype(str(g["kv"])) if g["kv"] else ""
    deployment = Deployment(
        find_model(model_name), gpu(gpu_name), weights=dtype(str(g["weights"])), kv=kv, engine=str(g["engine"]),
        engine_version=str(g["engine_version"] or ""), tp=axes["tp"], pp=axes["pp"], dp=axes["dp"], ep=axes["ep"],
    )  # fmt: skip
    spread, isl, osl, shared = (float(str(g[k])) for k in ("spread", "isl", "osl", "shared"))
    if min(isl, osl) < 1:
        raise BadRequest("prompts and answers have at least one token", hint="--isl 1000 --osl 250")
    prompt, output = (lognormal(x, spread) if spread else fixed(round(x)) for x in (isl, osl))
    if shared < 0:
        raise BadRequest("a shared prefix has no fewer than 0 tokens", hint="--shared 1024")
    traffic = Traffic(prompt, output, prefixes=4 if shared else 0, shared=int(shared))
    requests, seed = int(str(g["requests"])), int(str(g["seed"]))
    if g["trace"]:
        from stallwise.physics.sim.requests import trace
        from stallwise.planner.traffic_file import recorded

        recording = trace(recorded(str(g["trace"])))
    arrivals = (
        recording
        if g["trace"]
        else (Waves if g["waves"] else ClosedLoop)(int(str(g["users"])), traffic, requests, seed)
        if g["users"]
        else bursty(parse(str(g["rate"]), Unit.PER_S), traffic, requests, seed, float(str(g["burst"])))
    )
    goal = (parse(str(g["ttft"]), Unit.SECOND), parse(str(g["tpot"]), Unit.SECOND))
    draft = Speculation(int(str(g["draft"])), float(str(g["acceptance"])))
    settings = Settings(str(g["policy"]), int(str(g["max_seqs"])), int(str(g["budget"])), speculation=draft, goal=goal)
    workers = int(str(g["prefill_workers"]))
    if not isinstance(arrivals, ClosedLoop):
        asked = shown(arrivals, requests, "simulating", "requests")
        if workers:
            return simulate_disaggregated(deployment, deployment, asked, settings, prefill_workers=workers)[0]
        return simulate(deployment, asked, settings)
    with Progress("simulating", requests, things="requests", position=lambda: float(requests - arrivals.left)):
        if workers:
            return simulate_disaggregated(deployment, deployment, arrivals, settings, prefill_workers=workers)[0]
        return simulate(deployment, arrivals, settings)
