"""Numbers that commands print, worked out again from the physics: plain arithmetic that imports nothing of the product.

Each row is what one types (`plan formula NAME input=value ...`) and the results by hand. Inputs differ from the worked examples,
so that no number can be read off a page.
"""

from __future__ import annotations

from math import ceil, floor, sqrt

GB = 1e9

# A 70B-class model as its paper gives it.
LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD = 80, 8192, 64, 8, 128


def _binomial_tokens(accept: float, guesses: int) -> float:
    """Tokens of one pass: the first is certain, each further one needs all guesses before it."""
    return sum(accept**i for i in range(guesses + 1))


_FAILS = 200e6 / 4096
_YOUNG = sqrt(2 * 90 * _FAILS)

FORMULAS: list[tuple[list[str], dict[str, float]]] = [
    (["kv-cache", "layers=80", "kv_heads=8", "head_dim=128", "context=4096", "requests=32", "element=2B", "tp=8"],
     {"token_bytes": LAYERS * KV_HEADS * HEAD * 2 * 2 / 8, "request_bytes": 4096 * LAYERS * KV_HEADS * HEAD * 4 / 8,
      "total_bytes": 32 * 4096 * LAYERS * KV_HEADS * HEAD * 4 / 8}),
    (["kv-cache", "layers=80", "kv_heads=1", "head_dim=128", "context=4096", "requests=32", "element=2B", "tp=8"],
     {"token_bytes": LAYERS * 1 * HEAD * 2 * 2}),  # multi-query: one head, copied to every rank
    (["kv-cache", "layers=80", "kv_heads=64", "head_dim=128", "context=4096", "requests=32", "element=2B", "tp=8"],
     {"token_bytes": LAYERS * HEADS * HEAD * 2 * 2 / 8}),  # without grouping
    (["adam-states", "params=405B"],
     {"bytes_per_param": 2 + 2 + 4 + 4 + 4, "state_bytes": 405e9 * 16, "optimizer_bytes": 405e9 * 12}),
    (["attention-scores", "seq=16384", "batch=2", "heads=64", "tp=8", "element=2B"],
     {"scores_bytes": 2 * (64 / 8) * 16384**2 * 2}),
    (["activation-memory", "seq=4096", "batch=2", "hidden=8192", "heads=64", "tp=4"],
     {"fused_bytes": 34 * 4096 * 2 * 8192 / 4, "all_bytes": 4096 * 2 * 8192 * (34 + 5 * 64 * 4096 / 8192) / 4,
      "recompute_bytes": 2 * 4096 * 2 * 8192 / 4,
      "no_sp_bytes": 10 * 4096 * 2 * 8192 + (24 + 5 * 64 * 4096 / 8192) * 4096 * 2 * 8192 / 4}),
    (["checkpoint-interval", "checkpoint_s=90s", "gpus=4096", "mtbf_gpu_s=200000000s"],
     {"mtbf_s": _FAILS, "young_s": _YOUNG,
      "daly_s": _YOUNG * (1 + sqrt(90 / (2 * _FAILS)) / 3 + 90 / (2 * _FAILS) / 9) - 90}),
    (["decode-ceiling", "weights_bytes=140GB", "kv_bytes=1GB", "requests=64", "gpus=8", "byte_per_s=4.8TB/s", "achieved_share=0.8"],
     {"step_s": (140 * GB + 64 * GB) / (8 * 4.8e12 * 0.8), "user_token_per_s": 8 * 4.8e12 * 0.8 / (204 * GB),
      "total_token_per_s": 64 * 8 * 4.8e12 * 0.8 / (204 * GB)}),
    (["expert-traffic", "tokens=8192", "hidden=4096", "experts_per_token=2", "ranks=8", "element=2B", "network_byte_per_s=400GB/s"],
     {"sent_bytes": 2 * 7 / 8 * 8192 * 2 * 4096 * 2, "network_s": 2 * 7 / 8 * 8192 * 2 * 4096 * 2 / 400e9}),
    (["matrix-product", "m=4096", "n=4096", "k=4096", "element=2B", "flop_per_s=180TFLOPS"],
     {"flop": 2 * 4096**3, "flop_per_byte": 2 * 4096**3 / (3 * 4096**2 * 2), "seconds": 2 * 4096**3 / 180e12}),
    (["minimum-gpus", "state_bytes=6480GB", "memory_bytes=141GB", "usable_share=0.9"], {"gpus": ceil(6480 / (141 * 0.9))}),
    (["pipeline-bubble", "stages=8", "microbatches=32", "chunks=2"],
     {"useful_ratio": 7 / 64, "step_share": 7 / (64 + 7)}),
    (["pipeline-bubble", "stages=16", "microbatches=64"], {"useful_ratio": 15 / 64, "step_share": 15 / 79}),
    (["recompute-cost", "plain_s=30ms", "recompute_s=41ms", "mfu_share=0.45"],
     {"flop_ratio": 4 / 3, "time_ratio": 41 / 30, "hfu_share": 0.45 * 4 / 3}),
    (["ridge-point", "peak_flop_per_s=1979TFLOPS", "byte_per_s=4.8TB/s", "element=1B"],
     {"ridge_flop_per_byte": 1979e12 / 4.8e12, "batch": 1979 / 4.8 / 2}),
    (["ring-allreduce", "size_bytes=2GB", "ranks=512", "byte_per_s=40GB/s", "step_s=5us"],
     {"sent_bytes": 2 * 511 / 512 * 2 * GB, "seconds": 2 * 511 * 5e-6 + 2 * 511 / 512 * 2 * GB / 40e9,
      "bus_byte_per_s": 2 * 511 / 512 * 2 * GB / (2 * 511 * 5e-6 + 2 * 511 / 512 * 2 * GB / 40e9)}),
    (["scaling-efficiency", "gpus=64", "speedup_ratio=40"],
     {"efficiency_share": 40 / 64, "exposed_share": 1 - 40 / 64, "half_removed_ratio": 40 / (1 - (1 - 40 / 64) / 2)}),
    (["serving-memory", "params=70B", "kv_bytes=20GB", "element=1B", "prefill_tokens=8192", "hidden=8192", "ffn=28672",
      "vocab=128256", "requests=64", "context_bytes=1.5GB"],
     {"weights_bytes": 70e9, "work_bytes": 8192 * 4 * (8192 + 28672) * 1 + 64 * 128256 * 4 + 1.5e9}),
    (["speculative-gain", "accept_share=0.7", "guesses=3", "draft_share=0.1"],
     {"tokens_per_pass": _binomial_tokens(0.7, 3), "speedup_ratio": _binomial_tokens(0.7, 3) / 1.3}),
    (["tensor-parallel-traffic", "layers=80", "tokens=8192", "hidden=8192", "tp=4", "element=2B", "link_byte_per_s=370GB/s"],
     {"sent_bytes": 4 * 80 * 2 * 3 / 4 * 8192 * 8192 * 2, "link_s": 4 * 80 * 2 * 3 / 4 * 8192 * 8192 * 2 / 370e9}),
    (["three-d-shard", "params=405B", "gpus=512", "tp=8", "pp=8"],
     {"replicas": 512 / 64, "params_per_rank": 405e9 / 64, "weights_bytes": 2 * 405e9 / 64,
      "replicated_state_bytes": 16 * 405e9 / 64, "sharded_state_bytes": (2 + 2 + 12 / 8) * 405e9 / 64}),
    (["training-flops", "params=70B", "layers=80", "query_width=8192", "seq=8192", "token_per_s=900", "peak_flop_per_s=989TFLOPS"],
     {"token_flop": 6 * 70e9 + 6 * 80 * 8192 * 8192, "mfu_share": 900 * (6 * 70e9 + 6 * 80 * 8192 * 8192) / 989e12}),
    (["zero3-volume", "params=8B", "ranks=16", "weight_bytes=2", "gradient_bytes=4"],
     {"replicated_bytes": 2 * 15 / 16 * 8e9 * 4, "sharded_bytes": 15 / 16 * (8e9 * 4 + 2 * 8e9 * 2)}),
    (["zero-bubble", "stages=4", "forward_s=10ms", "input_grad_s=12ms", "weight_grad_s=8ms"],
     {"one_f_one_b_s": 3 * 0.030, "zb_h1_s": 3 * (0.010 + 0.012 - 0.008), "zb_h2_s": 3 * (0.010 + 0.012 - 0.016)}),
    (["zero-memory", "params=13B", "ranks=8", "stage=1"],
     {"bytes_per_rank": 13e9 * (2 + 2 + 12 / 8), "saving_ratio": 16 / (4 + 12 / 8)}),
    (["zero-memory", "params=13B", "ranks=8", "stage=2"], {"bytes_per_rank": 13e9 * (2 + 14 / 8)}),
    (["learning-rate-scaling", "batch=4096", "base_batch=512"],
     {"adam_rate_ratio": 8**0.5, "sgd_rate_ratio": 8, "steps_ratio": 1 / 8}),
    (["jumbo-frames", "mtu=4096B", "headers=44B", "byte_per_s=50GB/s"],
     {"goodput_byte_per_s": 50e9 * (4096 - 44) / (4096 + 8 + 14 + 4 + 12), "packet_per_s": 50e9 / 4134,
      "packet_ratio": 4134 / 1538}),
    (["gpu-sharing", "busy_share=0.1", "memory_bytes=18GB", "card_bytes=80GB", "dollar_per_hour=3"],
     {"mig_slices": 2, "mig_workloads": 3, "mps_workloads": floor(80 / 18), "mig_dollar": 1.0, "mps_dollar": 0.75}),
    (["dead-rail", "rails=4", "exposed_share=0.3"],
     {"spread_ratio": 4 / 3, "step_spread_ratio": 0.7 + 0.3 * 4 / 3, "step_pinned_ratio": 0.7 + 0.6}),
]  # fmt: skip

# Scenarios of examples/scenarios: facts of `diagnose`, by name and (where there are several) by layer or run.
_STEP = (61e-3 - 45e-3) / (2 * (256 - 64))  # the trend of a ring: two steps of latency for each further rank
_WIRE = 61e-3 - 2 * 255 * _STEP
_EXPECTED = 61e-3 + 2 * 256 * _STEP
_IDEAL = 7 / (2 * 32 + 7)
_MEASURED = 0.41 / 1.41  # of the step; the document counts it over useful time, as its formula does
_RATIO = (1 - _IDEAL) / (1 - _MEASURED)
_LAYER_405B = 2 * 16384**2 + 2 * 16384 * 8 * 128 + 3 * 16384 * 53248 + 2 * 16384
_PARAMETERS_405B = 126 * _LAYER_405B + 2 * 128256 * 16384 + 16384
_LAYER_70B = 2 * HIDDEN**2 + 2 * HIDDEN * KV_HEADS * HEAD + 3 * HIDDEN * 28672 + 2 * HIDDEN
_PARAMETERS_70B = LAYERS * _LAYER_70B + 2 * 128256 * HIDDEN + HIDDEN  # one byte each in FP8
SCENARIOS: list[tuple[str, dict[tuple[str, str], float]]] = [
    ("06_allreduce_cliff", {
        ("expected.ring_time", ""): _EXPECTED, ("expected.cliff_ratio", ""): 340e-3 / _EXPECTED,
        ("expected.narrower", ""): (_WIRE + 340e-3 - _EXPECTED) / _WIRE,
    }),
    ("08_pipeline_bubble", {
        ("expected.bubble_1f1b", ""): 7 / 39, ("expected.bubble_schedule", ""): _IDEAL,
        ("expected.bubble_doubled", ""): 7 / (4 * 32 + 7),
        ("expected.stage_ratio", ""): _RATIO, ("expected.stage_idle", "the slowest stage"): _IDEAL,
        ("expected.stage_idle", "each of the other 7"): 1 - (8 - _RATIO) / 7 * (1 - _MEASURED),
        ("expected.recompute_stage_ratio", ""): 4 / ((4 + 7 * 3) / 8),
    }),
    ("05_oom_smaller_tp", {  # 405B in 126 layers of 16384, 128 heads, 8 for keys and values, 8192 tokens
        ("expected.layer_scores", ""): 5 * 128 / 4 * 8192**2, ("expected.layer_scores", "before"): 5 * 128 / 8 * 8192**2,
        ("expected.state_bytes", ""): 16 * _PARAMETERS_405B / 512, ("expected.gathered_layer", ""): 2 * 2 * _LAYER_405B / 4,
        ("expected.layer_inputs", ""): 126 * 8192 * 16384 * 2,
    }),
    ("03_serving_collapse", {
        ("expected.kv_bytes_per_token", ""): 2 * LAYERS * KV_HEADS * HEAD * 2, ("expected.weight_bytes", ""): _PARAMETERS_70B,
        ("expected.speculative_gain", ""): _binomial_tokens(0.7, 4),
    }),
]  # fmt: skip
