"""The first questions are answered from evidence or asked."""

from __future__ import annotations

from pathlib import Path

from stallwise.doctor.examine import diagnose


def tree(*words: str) -> str:
    return "\n".join(diagnose(facts=words).tree)


def test_what_is_known_is_answered() -> None:
    said = tree(
        "mfu=22%",
        "mfu.before=48%",
        "gpus=64",
        "slow_node=node 7",
        "slow_rank_ratio=2",
        "in_gradient_sync=no",
        "changed=nothing",
    )
    assert "One node 7 (2.00x its peers)" in said
    assert "Not in the exchange" in said
    assert "suspect the machines" in said


def test_nothing_is_said_of_the_code_that_nobody_said() -> None:
    said = tree("mfu=22%", "mfu.before=48%", "gpus=64", "changed=upgraded torch")
    assert "upgraded torch" in said
    assert "nothing changed" not in said and "nothing in the code" not in said


def test_what_is_not_known_is_asked() -> None:
    said = tree("mfu=22%", "mfu.before=48%", "gpus=64")
    assert said.count("Not known") >= 3


def test_a_memory_saving_change_is_heard() -> None:
    assert "trades time for memory" in tree(
        "step_time=2s", "step_time.before=1s", "changed=turned on activation checkpointing"
    )


def test_logs_answer_whether_it_is_stable(tmp_path: Path) -> None:
    def log(*times: float) -> str:
        (tmp_path / "a.log").write_text(
            "".join(f"step {i} loss 2.0 step_time {t}s\n" for i, t in enumerate(times)), encoding="utf-8"
        )
        return "\n".join(diagnose(str(tmp_path / "a.log"), cache=False).tree)

    assert "Stable on two levels: 2.00x slower from step 20" in log(*[1.0] * 20, *[2.0] * 20)
    assert "Bursty about every 5 steps" in log(*([1.0, 1.0, 1.0, 1.0, 9.0] * 12))
    assert "it drifts" in log(*(1 + i / 40 for i in range(60)))


def test_serving_has_questions_of_its_own() -> None:
    said = tree("qps=16", "qps.before=4", "ttft=4s", "ttft.before=100ms", "user_rate=20", "kv_use=97%")
    assert "past its knee" in said and "Nearly full" in said


def test_a_kernel_has_none() -> None:
    assert tree("custom_speedup=0.7") == ""
