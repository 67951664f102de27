"""A number is bound to its condition, in whatever order, with whatever words and signs people write it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.doctor.examine import diagnose
from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import stated
from stallwise.evidence.reading import Reading, Rows
from stallwise.readers.shapes import prose, shapes_in
from stallwise.readers.text.binding import bound, condition_of, setting
from stallwise.readers.text.understand import understand

SERIES = ((64, 45.0), (128, 52.0), (256, 61.0), (512, 340.0))

# How one pair is written: A the value with its unit, C the condition with its noun.
FORMS = (
    "{A} at {C}", "{A} @ {C}", "{A} on {C}", "{A} with {C}", "{A} for {C}", "{A} across {C}", "{A} when using {C}", "{A} ({C})",
    "{C} -> {A}", "{C} → {A}", "{C} => {A}", "{C}: {A}", "{C} = {A}", "{C} ({A})", "at {C}: {A}", "at {C} {A}",
    "with {C} it takes {A}",
    "on {C} we measured {A}", "on {C} it is {A}", "{C} takes {A}", "{C} gives {A}", "with {C}: {A}",
)  # fmt: skip
SEPARATORS = (", ", "; ", " and ", ", and ", ", then ", " but ", " vs ", " versus ", " / ", "; then ", " while ")
NOUNS = {
    "gpus": ("GPUs", "ranks", "cards", "devices", "GPU"),
    "layout.nodes": ("nodes", "hosts", "machines"),
    "serve.offered_rate": ("QPS", "req/s", "requests/s"),
    "serve.concurrency": ("concurrent requests", "users", "clients"),
    "sequence": ("tokens",),
    "microbatches": ("microbatches",),
}
KEYS = {
    "gpus": ("world size", "GPUs", "ranks"),
    "microbatch": ("batch size", "batch", "bs"),
    "serve.offered_rate": ("QPS",),
    "layout.tp": ("TP",),
    "pp": ("PP",),
    "sequence": ("sequence length", "context length", "seq"),
    "serve.concurrency": ("concurrency",),
    "layout.nodes": ("nodes",),
}
MEASURED = {
    "allreduce_time": ("all-reduce", (("ms", 1e-3), ("us", 1e-6), ("s", 1.0))),
    "run.step_time": ("step time", (("ms", 1e-3), ("s", 1.0))),
    "serve.ttft": ("TTFT", (("ms", 1e-3), ("s", 1.0))),
    "nccl.bus_bandwidth": ("bus bandwidth", (("GB/s", 1e9),)),
    "run.mfu": ("MFU", (("%", 1e-2),)),
    "run.samples_per_s": ("throughput", (("samples/s", 1.0),)),
}


def tables_of(text: str) -> list[tuple[tuple[str, ...], list[tuple[float, float]]]]:
    """Each bound table: its columns and its rows."""
    singles = [r for s in prose.sentences(text) for r in prose.numbers_in(s, s[:40])]
    return [
        (t.columns, [(float(c or 0), float(v or 0)) for c, v in zip(*t.cells, strict=True)])
        for t in bound(singles, text)[1]
    ]


def pairs_of(text: str, condition: str, quantity: str) -> list[tuple[float, float]]:
    found = [rows for columns, rows in tables_of(text) if columns == (condition, quantity)]
    return found[0] if len(found) == 1 else []


def approx(points: Sequence[tuple[float, float]], scale: float) -> list[object]:
    return [pytest.approx((c, v * scale)) for c, v in points]


def listed(form: str, separator: str, points: Sequence[tuple[float, float]], value: str, condition: str) -> str:
    return separator.join(form.format(A=value.format(f"{v:g}"), C=condition.format(f"{c:g}")) for c, v in points)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("separator", SEPARATORS)
def test_every_form_with_every_separator(form: str, separator: str) -> None:
    if separator in (" / ", " while ", " vs ", " versus ") and form in ("{C} = {A}", "{C} takes {A}", "{C} gives {A}"):
        return  # nobody writes so
    text = "all-reduce: " + listed(form, separator, list(SERIES), "{} ms", "{} GPUs")
    assert pairs_of(text, "gpus", "allreduce_time") == approx(list(SERIES), 1e-3), text


@pytest.mark.parametrize(("quantity", "noun"), [(q, n) for q, nouns in NOUNS.items() for n in nouns])
@pytest.mark.parametrize("form", ["{A} at {C}", "{C} -> {A}", "with {C} it takes {A}", "at {C}: {A}"])
def test_every_noun_of_a_condition(quantity: str, noun: str, form: str) -> None:
    text = "step time: " + listed(form, ", ", list(SERIES), "{} ms", f"{{}} {noun}")
    assert pairs_of(text, quantity, "run.step_time") == approx(list(SERIES), 1e-3), text


@pytest.mark.parametrize(("quantity", "key"), [(q, k) for q, keys in KEYS.items() for k in keys])
@pytest.mark.parametrize("form", ["{A} at {C}", "{A} with {C}", "at {C}: {A}", "with {C} it takes {A}"])
@pytest.mark.parametrize("sign", [" ", "=", " of ", " = "])
def test_every_key_of_a_condition(quantity: str, key: str, form: str, sign: str) -> None:
    if sign == " of " and key.isupper():
        return  # "TP of 8" is rare, and "QPS of 4" too
    points = [(2, 100.0), (4, 130.0), (8, 260.0)]
    text = "step time: " + listed(form, ", ", points, "{} ms", f"{key}{sign}{{}}")
    assert pairs_of(text, quantity, "run.step_time") == approx(points, 1e-3), text


@pytest.mark.parametrize(
    ("quantity", "said", "unit", "scale"),
    [(q, said, unit, scale) for q, (said, units) in MEASURED.items() for unit, scale in units],
)
@pytest.mark.parametrize("form", ["{A} at {C}", "{A} on {C}", "{C}: {A}", "on {C} it is {A}", "{A} ({C})"])
def test_every_unit(quantity: str, said: str, unit: str, scale: float, form: str) -> None:
    points = [(8, 41.0), (16, 43.0), (64, 47.0)]
    glue = "" if unit == "%" else " "
    text = f"{said}: " + listed(form, ", ", points, f"{{}}{glue}{unit}", "{} GPUs")
    assert pairs_of(text, "gpus", quantity) == approx(points, scale), text


def test_what_is_said_once_holds_for_the_list() -> None:
    """The unit or the noun may stand at the first, at the last, or before all of them."""
    wanted = approx(list(SERIES), 1e-3)
    for text in (
        "all-reduce takes 45ms at 64 GPUs, 52ms at 128 GPUs, 61ms at 256, 340ms at 512",
        "all-reduce takes 45 ms at 64 GPUs, 52 at 128, 61 at 256 and 340 at 512",
        "all-reduce takes 45 at 64, 52 at 128, 61 at 256 and 340 ms at 512 GPUs",
        "all-reduce: 45ms@64 GPUs, 52ms@128, 61ms@256, 340ms@512",
        "64 GPUs -> 45 ms, 128 -> 52 ms, 256 -> 61 ms, 512 -> 340 ms all-reduce",
        "all-reduce time (ms) by GPUs: 64: 45, 128: 52, 256: 61, 512: 340",
        "all-reduce was 45, 52, 61 and 340 ms at 64, 128, 256 and 512 GPUs",
        "at 64, 128, 256 and 512 GPUs the all-reduce takes 45, 52, 61 and 340 ms",
        "all-reduce (64/128/256/512 GPUs): 45/52/61/340 ms",
        "Gradient all-reduce time per step: 45ms at 64 GPUs, 52ms at 128 GPUs, 61ms at 256 GPUs, 340ms at 512 GPUs.",
        "With 64 GPUs the all-reduce takes 45 ms, with 128 it takes 52 ms, with 256 61 ms, with 512 340 ms",
        "the all-reduce needs 45 ms on 64 ranks, 52 ms on 128, 61 ms on 256 and jumps to 340 ms on 512",
    ):
        assert pairs_of(text, "gpus", "allreduce_time") == wanted, text


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_no_order_shifts_a_value_to_a_neighbours_condition(data: st.DataObject) -> None:
    """Whatever is bound is bound rightly: no value ever stands beside another's condition."""
    sizes = data.draw(
        st.lists(st.sampled_from([2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]), min_size=2, max_size=6, unique=True)
    )
    values = data.draw(st.lists(st.integers(1, 900).map(float), min_size=len(sizes), max_size=len(sizes), unique=True))
    form, separator = data.draw(st.sampled_from(FORMS)), data.draw(st.sampled_from(SEPARATORS))
    named = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    lead = data.draw(
        st.sampled_from(["all-reduce: ", "the all-reduce takes ", "gradient all-reduce time per step: ", "all-reduce "])
    )
    points = list(zip(map(float, sizes), values, strict=True))
    items = [
        form.format(A=f"{v:g} ms", C=f"{c:g} GPUs" if noun or at == 0 else f"{c:g}")
        for at, ((c, v), noun) in enumerate(zip(points, named, strict=True))
    ]
    text = lead + separator.join(items)
    for columns, rows in tables_of(text):
        assert columns == ("gpus", "allreduce_time"), text
        for row in rows:
            assert any(row == pytest.approx((c, v * 1e-3)) for c, v in points), text


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_the_order_of_the_list_is_kept_and_its_length_too(size: int) -> None:
    rng = random.Random(size)
    points = [(float(2**n), float(rng.randint(10, 900))) for n in rng.sample(range(1, 12), size)]
    for form, separator in itertools.product(
        ("{A} at {C}", "{C}: {A}", "with {C} it takes {A}"), (", ", "; ", " and ")
    ):
        text = "all-reduce: " + listed(form, separator, points, "{} ms", "{} GPUs")
        assert pairs_of(text, "gpus", "allreduce_time") == approx(points, 1e-3), text


@pytest.mark.parametrize(
    "text",
    [
        "step time was 1.2 s at 64 GPUs last week and is 2.9 s at 64 GPUs now",  # one condition: a comparison
        "expected 50 ms all-reduce at 256 GPUs, measured 340 ms at 512",  # hoped for and measured
        "8 GPUs on 2 nodes, 16 GPUs on 4 nodes",  # nothing is measured
        "busy 250 W of 700 W, 61 GB of 80 GB",
        "TTFT rose from 120 ms to 4.2 s",
        "step 100 took 45 ms, step 200 took 52 ms",  # which one, not how many
        "loss 2.31 vs 2.28, accuracy 54% vs 71%",
        "the model has 70B parameters and runs at 2048 tokens on 8 H100s with 80 GB",
        "3 of 512 GPUs are at 40 C, 509 at 60 C",
    ],
)
def test_what_is_no_list_of_conditions_stays_as_it_was(text: str) -> None:
    assert tables_of(text) == []


def test_two_quantities_are_two_tables() -> None:
    text = "TTFT is 120 ms at 4 QPS and 4.2 s at 16 QPS; bus bandwidth is 180 GB/s at 8 nodes and 11 GB/s at 64 nodes"
    assert {columns for columns, _ in tables_of(text)} == {
        ("serve.offered_rate", "serve.ttft"),
        ("layout.nodes", "nccl.bus_bandwidth"),
    }


def test_a_setting_is_counted_and_a_measure_is_not_a_setting() -> None:
    for words in ("GPUs", "ranks", "world size", "nodes", "QPS", "batch size", "tokens", "concurrent users", "TP"):
        assert setting(words) is not None, words
    for words in ("step time", "MFU", "all-reduce", "throughput", "memory", "loss", "GB/s", "the", "weather"):
        assert setting(words) is None, words
    sentence = (Reading(("on", "on"), 512.0, "", "p", in_prose=True, after="-GPU runs"),)
    found = condition_of(sentence, 0)
    assert found is not None and found.name == "gpus"


def test_bound_numbers_become_facts_of_the_worst_and_the_best_and_a_series() -> None:
    text = "Gradient all-reduce time per step: 45ms at 64 GPUs, 52ms at 128 GPUs, 61ms at 256 GPUs, 340ms at 512 GPUs."
    evidence = gather([text])
    told = {(f.quantity.name, f.scope.run): f.value for facts in evidence.facts.values() for f in facts}
    assert told["allreduce_time", None] == pytest.approx(0.34) and told["gpus", None] == 512
    assert told["allreduce_time", "before"] == pytest.approx(0.045) and told["gpus", "before"] == 64
    assert ("run.step_time", None) not in told, "a part of the step is not the step"
    table = next(t for t in evidence.tables if t.kind == "scaling.series")
    assert list(table.columns["ranks"]) == [64, 128, 256, 512]
    assert list(table.columns["seconds"]) == pytest.approx([0.045, 0.052, 0.061, 0.34])


def test_the_rate_of_more_gpus_is_judged_by_the_gpu() -> None:
    """Eight GPUs with three times the rate of one are the worse run, although 300 is more than 100; two sizes are no trend."""
    for text in ("one GPU 100 samples/s, eight GPUs 300", "300 samples/s on 8 GPUs and 100 samples/s on 1 GPU"):
        evidence = gather([text])
        assert evidence.value(stated.GPUS) == 8 and evidence.value(stated.GPUS, run="before") == 1, text
        assert "collective-topology-cliff" not in diagnose(text, cache=False).ranked[:1]


def test_other_numbers_of_the_sentence_keep_their_names() -> None:
    text = "all-reduce takes 61 ms at 256 GPUs and 340 ms at 512, the step time is 900 ms"
    shapes = list(shapes_in("x", text))
    found = understand(shapes, text, "x", written=True)
    assert any(isinstance(r, Rows) and r.columns == ("gpus", "allreduce_time") for r in found.rows)
    assert [f.value for f in found.facts if f.quantity.name == "run.step_time"] == [pytest.approx(0.9)]
