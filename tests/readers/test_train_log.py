"""Logs of every framework become the same series."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.fact import Fact, Series
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.reading import Printed, Reading, Rows
from stallwise.evidence.skeletons import skeletons_of
from stallwise.readers import all_readers, readers_for
from stallwise.readers.shapes.logged import line_in, records
from stallwise.readers.text.loop import column_of
from stallwise.readers.text.steps import understood_steps


def items(text: str, name: str = "train.log") -> list[object]:
    artifact = Artifact(name, content=text.encode())
    found: list[object] = []
    for item in (i for reader in readers_for(artifact) for i in reader.read(artifact)):
        found += understood_steps(item, name) if isinstance(item, Printed | Rows | Reading) else [item]
    return found


def series(text: str, quantity: Quantity, name: str = "train.log") -> Series:
    found = [s for s in items(text, name) if isinstance(s, Series) and s.quantity is quantity]
    assert len(found) == 1, [type(s) for s in found]
    return found[0]


def fact(text: str, quantity: Quantity, name: str = "train.log") -> float | str:
    found = [f for f in items(text, name) if isinstance(f, Fact) and f.quantity is quantity]
    assert found, quantity.name
    return found[0].value


def lines(form: str, values: Iterable[dict[str, object]]) -> str:
    return "\n".join(form.format(**v) for v in values) + "\n"


STEPS = [{"i": 10 * i, "t": 500.0 + i, "l": 9.0 - i, "g": 1.5 + i} for i in range(6)]


def test_megatron() -> None:
    text = lines(
        " [2025-01-02 10:00:00] iteration {i:8d}/  500000 | consumed samples:  10240 | elapsed time per iteration (ms): {t:.1f} | "
        "throughput per GPU (TFLOP/s/GPU): 431.2 | learning rate: 1.5E-04 | global batch size: 1024 | lm loss: {l:.6E} | "
        "loss scale: 65536.0 | grad norm: {g:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |",
        STEPS,
    )
    assert series(text, run.STEP_TIME).values[0] == pytest.approx(0.5)
    assert list(series(text, run.STEP_TIME).x) == [0, 10, 20, 30, 40, 50]
    assert series(text, run.LOSS).values[1] == pytest.approx(8.0)
    assert series(text, run.GRAD_NORM).values[2] == pytest.approx(3.5)
    assert series(text, run.LOSS_SCALE).values[0] == 65536
    assert series(text, run.FLOP_RATE).values[0] == pytest.approx(431.2e12)


def test_torchtitan() -> None:
    text = lines(
        "[rank0]:[titan] 2025-08-12 09:00:{i:02d},110 - root - INFO - step: {i:2d}  loss: {l:.4f}  grad_norm: {g:.4f}  "
        "memory: 68.11GiB(86.11%)  tps: 6,987  tflops: 403.50  mfu: 40.83%",
        STEPS,
    )
    assert series(text, run.MFU).values[0] == pytest.approx(0.4083)
    assert series(text, run.TOKENS_PER_S).values[0] == 6987
    assert series(text, run.GPU_MEMORY).values[0] == pytest.approx(68.11 * 2**30)
    assert series(text, run.LOSS).values[0] == 9.0
    assert series(text, run.STEP_TIME).values[0] == pytest.approx(1.0)  # from the clock: 10 s for 10 steps


def test_deepspeed() -> None:
    text = lines(
        "epoch=0/micro_step={i}/global_step={i}, RunningAvgSamplesPerSec=118.30, CurrSamplesPerSec=119.14, "
        "MemAllocated=2.10GB, MaxMemAllocated=3.20GB",
        STEPS,
    )
    assert series(text, run.SAMPLES_PER_S).values[0] == pytest.approx(118.3)
    assert series(text, run.GPU_MEMORY).values[0] == pytest.approx(2.1e9)
    assert list(series(text, run.SAMPLES_PER_S).x) == [0, 10, 20, 30, 40, 50]


def test_hf_trainer_prints_dictionaries_without_steps() -> None:
    text = lines("{{'loss': {l}, 'grad_norm': {g}, 'learning_rate': 2e-05, 'epoch': 0.1}}", STEPS)
    assert list(series(text, run.LOSS).values) == [9, 8, 7, 6, 5, 4]
    assert list(series(text, run.LOSS).x) == [0, 1, 2, 3, 4, 5]


def test_hf_trainer_state() -> None:
    rows = ",".join(f'{{"step": {s["i"]}, "loss": {s["l"]}, "learning_rate": 1e-5, "epoch": 0.1}}' for s in STEPS)
    text = f'{{"best_metric": null, "log_history": [{rows}], "save_steps": 500, "max_steps": 1000}}'
    assert list(series(text, run.LOSS, "trainer_state.json").x) == [0, 10, 20, 30, 40, 50]
    assert fact(text, run.SAVE_EVERY, "trainer_state.json") == 500


def test_torchvision_meters_and_epochs() -> None:
    text = "".join(
        f"Epoch: [{e}][{i}/100]\tTime 0.500 (0.9)\tData 0.{i:03d} (0.1)\tLoss 6.9 (7.0)\tAcc@1 0.78 (0.3)\n"
        for e in range(2)
        for i in range(1, 4)
    )
    assert list(series(text, run.DATA_TIME).x) == [1, 2, 3, 101, 102, 103]
    assert series(text, run.STEP_TIME).values[0] == 0.5


def test_composer_blocks() -> None:
    text = "".join(
        f"[batch={b}/250000]:\n\t Train time/batch: {b - 1}\n\t Train loss/train/total: 10.7\n"
        f"\t Train throughput/batches_per_sec: 0.5\n\t Train throughput/device/samples_per_sec: 68.6\n"
        for b in (10, 20, 30)
    )
    assert list(series(text, run.STEP_TIME).values) == [2.0, 2.0, 2.0]
    assert series(text, run.SAMPLES_PER_S).values[0] == 68.6


def test_tqdm_bars_and_bare_words() -> None:
    bar = "".join(f"1|{i}|Loss: 0.8{i}:  80%|  | {i}/400 [48:00<12:00,  9.1s/it]\n" for i in (320, 340, 360))
    assert series(bar, run.STEP_TIME).values[0] == 9.1
    bare = "".join(f"[rank0]: 06:40:0{i} step {i} loss 0.4{i} step_time 27.7{i}s\n" for i in range(5))
    assert series(bare, run.STEP_TIME).values[1] == pytest.approx(27.71)


def test_nan_is_counted_and_placed() -> None:
    text = lines(
        "step: {i} loss: {l} grad_norm: {g}",
        [*STEPS[:3], {"i": 30, "l": "nan", "g": "nan"}, {"i": 40, "l": "nan", "g": 1.0}],
    )
    assert fact(text, run.NAN_STEPS) == 2
    assert fact(text, run.FIRST_NAN_STEP) == 30


def test_totals_and_lists_of_times() -> None:
    assert fact("device: x\n500 steps in 250.0 s\n", run.STEP_TIME) == 0.5
    text = "INFO: step durations ms: 303.3 305.7 300.0 298.3\n"
    assert list(series(text, run.STEP_TIME).values) == pytest.approx([0.3033, 0.3057, 0.3, 0.2983])


def test_only_one_rank_is_read() -> None:
    text = "".join(f"[rank{r}]: step {i} loss {r}.5 step_time 1s\n" for i in range(4) for r in (0, 1))
    assert list(series(text, run.LOSS).values) == [0.5, 0.5, 0.5, 0.5]


def test_step_tables_and_their_variants() -> None:
    text = "minute,system_used_gb_lists,system_used_gb_arrays\n" + "".join(f"{i},{10 + i},9.4\n" for i in range(8))
    found = [s for s in items(text, "memory.csv") if isinstance(s, Series)]
    assert {s.scope.run for s in found} == {"system used gb lists", "system used gb arrays"}
    assert found[0].over == "time_s" and found[0].x[1] == 60
    steps = "epoch,step,gpu_memory_allocated_gb,step_s\n" + "".join(
        f"{e},{i},20.5,0.5\n" for e in (0, 1) for i in range(3)
    )
    assert list(series(steps, run.STEP_TIME, "steps.csv").x) == [0, 1, 2, 3, 4, 5]


def test_jsonl() -> None:
    text = "".join(
        f'{{"step": {i}, "loss": NaN, "perf": {{"step_time_ms": 40}}, "precision": "bf16"}}\n' for i in range(5)
    )
    assert series(text, run.STEP_TIME, "m.jsonl").values[0] == pytest.approx(0.04)
    assert fact(text, run.NAN_STEPS, "m.jsonl") == 5
    assert fact(text, run.PRECISION, "m.jsonl") == "bf16"


@pytest.mark.parametrize(
    ("name", "quantity", "scale"),
    [
        ("throughput/samples_per_sec", run.SAMPLES_PER_S, 1.0),
        ("memory/current_allocated_mem_gb", run.GPU_MEMORY, 1e9),
        ("process_rss_mb", run.HOST_MEMORY, 1e6),
        ("elapsed_ms", run.STEP_TIME, 1e-3),
        ("dataloader_wait_ms", run.DATA_TIME, 1e-3),
        ("train/grad_norm", run.GRAD_NORM, 1.0),
        ("memory/alloc_retries", run.ALLOC_RETRIES, 1.0),
        ("mfu_pct", run.MFU, 0.01),
        ("val_loss", run.EVAL_LOSS, 1.0),
    ],
)
def test_names_decide(name: str, quantity: Quantity, scale: float) -> None:
    meaning = column_of(name)
    assert meaning is not None and meaning.quantity is quantity and meaning.scale == pytest.approx(scale)


@pytest.mark.parametrize("name", ["epoch", "max_grad_norm", "total_time_s", "accuracy", "seed", "gpu_util_pct"])
def test_strangers_stay_strangers(name: str) -> None:
    assert column_of(name) is None


LOGGERS = [r for r in all_readers() if r.__name__.split(".")[-1] in {
    "train_log", "step_table",
    "host_profile", "named_columns", "tensorboard_events", "nsys_stats",
    "stated_facts",
}]  # type: ignore[attr-defined]  # fmt: skip


@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"step,loss\n", b"brain.Event:2", b"step: 1 loss: ", b'{"step": 1}\n{']),
)
def test_any_bytes_raise_only_our_error(noise: bytes, start: bytes) -> None:
    artifact = Artifact("x.log", content=start + noise)
    for reader in LOGGERS:
        try:
            if reader.recognises(artifact.name, artifact.head):
                list(reader.read(artifact))
        except StallwiseError:
            pass


def test_values_are_finite_or_nan_never_strings() -> None:
    found = series("step: 1 loss: inf\nstep: 2 loss: 3.0\nstep: 3 loss: 2.9\n", run.LOSS)
    assert np.isinf(found.values[0])


def test_a_bare_time_takes_the_unit_of_its_siblings() -> None:
    text = "".join(f'{{"step": {i}, "data_wait": 97.1, "forward": 15.3, "step_ms": 150.0}}\n' for i in range(5))
    assert series(text, run.DATA_TIME, "stages.jsonl").values[0] == pytest.approx(0.0971)
    table = "step,data_wait,step_ms\n" + "".join(f"{i},97.1,150.0\n" for i in range(5))
    assert series(table, run.DATA_TIME, "stages.csv").values[0] == pytest.approx(0.0971)


def test_an_engines_rates_are_no_training_rates() -> None:
    text = "".join(
        f"[2025-01-01 10:00:0{i}] Decode batch. #running-req: 4, #token: 100, token usage: 0.1, gen throughput (token/s): {100 - i}, #queue-req: 0\n"  # noqa: E501
        for i in range(9)
    )
    assert not [s for s in items(text) if isinstance(s, Series) and s.quantity is run.TOKENS_PER_S]


@pytest.mark.parametrize(
    "form",
    [
        "01:00:00 epoch  {e}/200 train_loss 0.0412 val_loss 0.0498 {t} s\n",
        "Epoch {e} finished in {t} seconds, loss=0.4\n",
        "[Epoch {e}] loss: 0.4 time: {t}s\n",
        "epoch: {e} took {t}s\n",
    ],
)
def test_epochs_with_their_time(form: str) -> None:
    text = "".join(form.format(e=e, t=200 + e) for e in range(8))
    found = series(text, run.EPOCH_TIME)
    assert list(found.x) == list(range(8)) and found.values[3] == 203


def test_records_that_lost_their_line_ends_are_told_apart() -> None:
    """A NaN at the end must not vanish because a paste or a viewer joined the last lines."""
    records = [f"INFO - step: {i}  loss: {9 - 0.1 * i:.2f}  grad_norm: 1.20  lr: 1.0e-04" for i in range(30)]
    records += [
        f"INFO - step: {30 + i}  loss: {x}  grad_norm: {x}  lr: 1.0e-04" for i, x in enumerate(("8.10", "17.20", "nan"))
    ]
    joined = "\n".join(records[:30]) + "\n" + " ".join(records[30:]) + "\n"
    found = series(joined, run.LOSS)
    assert list(found.x) == list(range(33)) and found.values[31] == 17.2 and np.isnan(found.values[32])


def test_lines_of_an_epoch_and_lists_of_step_times_are_read_as_columns() -> None:
    lines = [f"Epoch {n}/40: loss {3 - n / 40:.4f} epoch_time {60 + n}.5s" for n in range(1, 41)]
    lines += [f"step durations ms: {300 + n}.3 {305 + n}.7 {299 + n}.0" for n in range(30)]
    blocks = list(records(skeletons_of(lines), lambda key, unit, bare: "loss" in key))
    assert sum(len(block.lines) > 1 for block in blocks) >= 2  # at once
    told = {at: list(row) for block in blocks for at, row in zip(block.lines, block.values, strict=True)}
    for at, line in enumerate(lines):
        assert told[at] == [n for n, _ in line_in(line, lambda key, unit, bare: "loss" in key).values]


def test_a_clock_that_jumps_back_a_little_is_no_midnight() -> None:
    text = "".join(
        f"10:00:{s:02d},{'500' if s != 21 else '100'} step {i} loss 2.0\n"
        for i, s in enumerate((0, 10, 20, 30, 21, 50, 59))
    )
    assert max(series(text, run.STEP_TIME).values) < 60


def test_a_list_ends_before_the_next_key() -> None:
    said = line_in("#queue: 0, token usage: 0.31, #running-req: 4", lambda key, unit, bare: not bare)
    assert [(key.key, key.unit) for key in said.keys] == [("queue", ""), ("token usage", ""), ("running-req", "")]
