"""Logs of serving engines: their own lines are no training and no trouble, each phase is said, and each number has its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.findings.diagnosis import State
from tests.own_subject.asked import asked, words

LLAMA_START = """ggml_cuda_init: found 1 CUDA devices:
build: 7780 (7dee9ff59) with GNU 13.3.0 for Linux x86_64
main: loading model
srv    load_model: loading model '/models/coder-7b-q8_0.gguf'
llama_model_loader: loaded meta data with 30 key-value pairs and 339 tensors from /models/coder-7b-q8_0.gguf
llama_context:  CUDA_Host  output buffer size =     0.58 MiB
llama_kv_cache:      CUDA0 KV buffer size =  1792.00 MiB
llama_kv_cache: size = 1792.00 MiB ( 32768 cells,  28 layers,  1/1 seqs), K (f16):  896.00 MiB, V (f16):  896.00 MiB
sched_reserve: graph nodes  = 959
srv    load_model: initializing slots, n_slots = 1
slot   load_model: id  0 | task -1 | new slot, n_ctx = 32768
srv    load_model: prompt cache is enabled, size limit: 8192 MiB
srv    load_model: use `--cache-ram 0` to disable the prompt cache
main: model loaded
main: server is listening on http://0.0.0.0:8000
srv  update_slots: all slots are idle
"""


def llama_request(task: int, prompt: int, made: int) -> str:
    """A request as llama-server times it."""
    return f"""slot launch_slot_: id  0 | task {task} | processing task, is_child = 0
slot update_slots: id  0 | task {task} | new prompt, n_ctx_slot = 32768, n_keep = 0, task.n_tokens = {prompt}
srv  log_server_r: done request: POST /v1/chat/completions 192.168.1.93 200
slot print_timing: id  0 | task {task} |
prompt eval time =    {2.7 * prompt:.2f} ms /  {prompt} tokens (    2.70 ms per token,   370.37 tokens per second)
       eval time =    {55 * made:.2f} ms /    {made} tokens (   55.00 ms per token,    18.18 tokens per second)
      total time =    {2.7 * prompt + 55 * made:.2f} ms /  {prompt + made} tokens
srv  update_slots: all slots are idle
"""


def test_a_ggml_server_decodes_and_never_evaluates(tmp_path: Path) -> None:
    served = "".join(llama_request(at, 900 + 7 * at, 200 + at) for at in range(40))
    answer = asked(tmp_path, "llama.log", LLAMA_START + served)
    said = words(answer)
    assert answer.state is State.HEALTHY and "40 served" in said and "18.2 tokens/s each" in said
    assert "eval-in-loop" not in answer.ranked


def test_requests_that_do_not_fit_are_counted_with_both_lengths(tmp_path: Path) -> None:
    refused = (
        "slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 32768, n_keep = 0, task.n_tokens = 44496\n"
        "srv    send_error: task id = 0, error: request (44496 tokens) exceeds the available context size (32768 tokens), "
        "try increasing it\nsrv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 400\n"
    )
    answer = asked(tmp_path, "llama.log", LLAMA_START + 2 * refused)
    said = words(answer)
    assert answer.state is State.UNCLEAR and "2 requests were refused as too long" in said
    assert "44,496 tokens where 32,768 fit (line 18)" in said and "prefix-cache-miss" not in said
    assert "llama-server -m MODEL" in said


def vllm_lines(rows: list[tuple[float, float, int, int, float]]) -> str:
    """Status lines: prompt rate, token rate, running, waiting, KV in percent."""
    return "".join(
        f"(APIServer pid=7) INFO 08-02 09:{at // 6:02d}:{at % 6 * 10:02d} [loggers.py:259] Engine 000: Avg prompt throughput: {prompt} "
        f"tokens/s, Avg generation throughput: {made} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: "
        f"{kv}%, Prefix cache hit rate: 41.0%\n"
        for at, (prompt, made, running, waiting, kv) in enumerate(rows)
    )


BENCH = [(2.0, 71.0, 2, 0, 0.1), (3.0, 96.0, 2, 0, 0.1), (5.0, 160.0, 4, 0, 0.2), (4.0, 162.0, 4, 0, 0.2)]
LONG_PROMPTS = [(4915.1, 2.4, 1, 0, 0.9), (0.0, 0.0, 1, 0, 1.6), (6630.8, 0.8, 1, 0, 0.9), (6441.7, 0.8, 1, 0, 0.9)]


def test_a_lone_requests_prompt_stops_nobody(tmp_path: Path) -> None:
    answer = asked(tmp_path, "vllm.log", vllm_lines([*BENCH, *LONG_PROMPTS * 3]))
    assert answer.ranked[0] == "client-limited" and answer.state is State.UNCLEAR
    assert "hardly loaded (" in words(answer) and "under load" in words(answer)


def test_a_few_at_once_over_many_samples_are_the_clients_pace(tmp_path: Path) -> None:
    answer = asked(tmp_path, "vllm.log", vllm_lines(BENCH * 8))
    assert answer.ranked[0] == "client-limited" and "at most 4 requests at once" in words(answer)


def test_prompts_between_running_answers_still_do(tmp_path: Path) -> None:
    crowd = [(3.0, 800.0, 20, 0, 30.0)] * 10 + [(6000.0, 20.0, 21, 0, 31.0), (3.0, 790.0, 20, 0, 30.0)] * 6
    assert asked(tmp_path, "vllm.log", vllm_lines(crowd)).ranked[0] == "prefill-decode-contention"


def test_an_engine_nobody_uses_is_idle_and_its_warnings_name_no_cause(tmp_path: Path) -> None:
    start = (
        "(EngineCore pid=9) WARNING 08-02 08:59:00 [fused_moe.py:727] Using default MoE config. Performance might be sub-optimal!\n"
        "(APIServer pid=7) INFO 08-02 08:59:10 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: model='m'\n"
        "(APIServer pid=7) INFO:     Application startup complete.\n"
    )
    answer = asked(tmp_path, "vllm.log", start + vllm_lines([(0.0, 0.0, 0, 0, 0.0)] * 30))
    said = words(answer)
    assert answer.state is State.UNCLEAR and "idle (0 running, 0 waiting" in said
    assert max(h.probability for h in answer.hypotheses if h.cause != "something-else") < 0.2


@pytest.mark.parametrize(
    "after", ["", "(EngineCore pid=9) ERROR 08-02 09:20:00 [core.py:1] EngineCore encountered a fatal error.\n"]
)
def test_requests_without_a_token_are_not_in_line(tmp_path: Path, after: str) -> None:
    rows = [*BENCH * 3, *([(0.0, 0.0, 3, 0, 0.4)] * 12 if not after else [])]
    answer = asked(tmp_path, "vllm.log", vllm_lines(rows) + after)
    assert answer.state is not State.HEALTHY
    assert after or "no token is read or made in the last 12 samples" in words(answer)


def test_what_is_raised_while_it_is_taken_down_is_no_trouble(tmp_path: Path) -> None:
    down = """(APIServer pid=7) INFO 08-02 09:34:51 [core_client.py:655] [shutdown] MPClient: start timeout=0s
(APIServer pid=7) ERROR 08-02 09:34:51 [async_llm.py:704] AsyncLLM output_handler failed.
(APIServer pid=7) ERROR 08-02 09:34:51 [async_llm.py:704] Traceback (most recent call last):
(APIServer pid=7) ERROR 08-02 09:34:51 [async_llm.py:704]   File "/venv/vllm/v1/engine/async_llm.py", line 660, in output_handler
(APIServer pid=7) ERROR 08-02 09:34:51 [async_llm.py:704]     outputs = await engine_core.get_output_async()
(APIServer pid=7) ERROR 08-02 09:34:51 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
(APIServer pid=7) INFO:     Shutting down
(APIServer pid=7) INFO:     Application shutdown complete.
"""
    rows = vllm_lines([(900.0, 1000.0, 40, 0, 40.0)] * 20)
    assert asked(tmp_path, "vllm.log", rows + down).state is State.HEALTHY
    died = "".join(line for line in down.splitlines(keepends=True) if "hut" not in line)
    assert asked(tmp_path, "died.log", rows + died).state is not State.HEALTHY


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    bar = (
        "\r".join(f"Capturing CUDA graphs:  {n}%|#         | {n}/67 [00:00<00:05, 11.5it/s]" for n in range(60)) + "\n"
    )
    error = (
        "(APIServer pid=7) ERROR 08-02 09:16:20 [serving_chat.py:251] Error in preprocessing prompt inputs\n"
        "(APIServer pid=7) ERROR 08-02 09:16:20 [serving_chat.py:251] Traceback (most recent call last):\n"
        "(APIServer pid=7) ERROR 08-02 09:16:20 [serving_chat.py:251] ValueError: This model's maximum context length is 6144 tokens. "
        "However, your request has 18244677 input tokens. Please reduce the length of the input messages.\n"
    )
    loaded = vllm_lines([(900.0, 1000.0, 40, 0, 40.0)] * 10)
    answer = asked(tmp_path, "vllm.log", bar + loaded + error + loaded)
    said = words(answer)
    assert answer.state is State.HEALTHY and "1 requests were refused as too long" in said
    assert "up to 18,244,677 tokens where 6,144 fit (line 14)" in said


SGLANG_CUT = """[2026-08-01 22:25:20] Max running requests is reset to 48 for speculative decoding. You can override this.
[2026-08-01 22:25:30] Init torch distributed begin.
[2026-08-01 22:25:30] Init torch distributed ends. elapsed=0.24 s, mem usage=0.02 GB
[2026-08-01 22:25:31] Load weight begin. avail mem=97.74 GB
[2026-08-01 22:25:31] Using CompressedTensorsW4A4Nvfp4MoE
Multi-thread loading shards:   0% Completed | 0/49 [00:00<?, ?it/s]\rMulti-thread loading shards:   2% Completed | 1/49 [00:02<02:17,  2.85s/it]
"""
TGI_CUT = """2026-02-27T10:15:03.123456Z  INFO text_generation_launcher: Args { model_id: "m", max_total_tokens: Some(4096) }
2026-02-27T10:15:09.100000Z  INFO shard-manager: text_generation_launcher: Starting shard rank=0
2026-02-27T10:15:32.500000Z  INFO shard-manager: text_generation_launcher: Shard ready in 23.41s rank=0
2026-02-27T10:15:33.500000Z  INFO text_generation_launcher: Starting Webserver
"""
TRTLLM_CUT = """[TensorRT-LLM][INFO] Refreshed the MPI local session
[TensorRT-LLM][INFO] Max KV cache pages per sequence: 2048
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 26.91 GiB for max tokens in paged KV cache (220480).
[02/14/2026-09:38:53] [TRT-LLM] [I] max_seq_len=131072, max_num_requests=2048, max_num_tokens=8192
[02/14/2026-09:38:54] [TRT-LLM] [I] Run generation only CUDA graph warmup for batch size=128
"""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (SGLANG_CUT, ("Init torch distributed 240 ms", "shards")),
        (TGI_CUT, ("Shard 23.4 s", "Starting Webserver")),
        (TRTLLM_CUT, ("220,480 tokens", "CUDA graph warmup")),
    ],
)
def test_a_cut_start_of_any_engine_says_how_far_it_came(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    answer = asked(tmp_path, "engine.log", text)
    said = words(answer)
    assert answer.state is State.UNCLEAR and "start without a request" in said and all(part in said for part in parts)
    assert not answer.hypotheses and "train.py" not in said
