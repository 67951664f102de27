"""Columns of the table of kind `engine_samples`: the state of a serving engine, one row a moment, NaN where a log is silent."""

SAMPLE_COLUMNS = (
    "time_s", "running", "waiting", "kv_share", "prompt_token_per_s", "generation_token_per_s", "hit_share",
    "iteration_s", "device_s", "paused", "line",
)  # fmt: skip
