"""A comparison whose rows change their unit is one column a run; the column of differences says nothing new."""

from __future__ import annotations

from stallwise.doctor.examine import diagnose

PAGE = """GPT-2 medium, bf16, A100-SXM4-80GB

| metric | main | branch | diff |
|---|---|---|---|
| step time | 412.6 ms | 498.1 ms | +20.7 % |
| head, all passes | 60.2 ms | 144.9 ms | +140 % |
| other products | 218.0 ms | 218.2 ms | |
| peak mem | 47.9 GB | 47.8 GB | |
| vocab_size | 50304 | 50257 | |
"""


def test_a_size_that_became_odd_when_the_step_became_slow(tmp_path) -> None:  # type: ignore[no-untyped-def]
    page = tmp_path / "bench.md"
    page.write_text(PAGE)
    found = diagnose(str(page), cache=False)
    assert found.ranked[0] == "misaligned-shapes"
    assert found.evidence.facts["vocab"][0].number in (50304.0, 50257.0)


def test_a_pipeline_has_at_most_the_micro_batches_of_its_global_batch(tmp_path) -> None:  # type: ignore[no-untyped-def]
    page = tmp_path / "args.txt"
    page.write_text("pipeline_parallel: 16\nmicro_batch_size: 1\nglobal_batch_size: 16\nstep time: 3.3 s\n")
    found = diagnose(str(page), cache=False)
    assert found.ranked[0] == "pipeline-bubble"
