"""Words are words and a path is what exists: at the command line, among files, through MCP and in facts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.doctor.examine import diagnose
from stallwise.doctor.find import find
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.gather import READ_AS_WORDS, gather
from stallwise.doctor.given import Kind, kind_of, meant_as_path
from stallwise.doctor.stating import split_words
from stallwise.errors import BadRequest, UnreadableInput
from stallwise.evidence.fact import Source
from stallwise.evidence.textual import is_textual
from stallwise.evidence.words import LONGEST_LABEL, Words, is_label, label_of
from stallwise.readers.shapes.lines import node_of_file, rank_of_file
from stallwise.render.phrases import place
from stallwise.render.redact import shareable
from stallwise.render.text import to_text
from stallwise.surfaces.mcp.tools import Tools

LONG = (
    "We train a 70B model on 512 H100s and the step went from 2.1 s to 4.7 s since Monday; the loss/accuracy curves look "
    "the same, the data pipeline (webdataset/tar over s3) was not touched, nvidia-smi/dcgm show nothing, and NCCL/RDMA "
    "counters on node-17/rank3 grow faster than on the others. What should we look at first?"
)
SENTENCES = (
    LONG,
    LONG * 20,
    "tokens/s fell to 40% after the driver/firmware update",
    "/dev/shm is full and the workers die",
    "it hangs at the first optimizer.step",
    "it hangs at optimizer.step",
    "loss nan",
    "OOM",
    "why?",
    "~40 it/s instead of 80 it/s",
    "8 GPUs are only 3x faster than one",
    "loss is nan after step 4.5",
    "one line\nand another with a / in it",
    "TP=4 fails with OOM, TP=8 fits",
    "训练突然变慢了",
    "Обучение стало медленнее в два раза",
    "my runs of today.json",
    "the run diverges, see train.log",
    "x" * 300,
    "what does https://example.org/a say of slow steps",
)
PATHS = (
    "trace.json.gz", "run_7", "runs/seven", "./a b c", "../x", "~/x", "/data/my runs/of today", "/data/my runs/second try/a.json",
    "my trace.json", "C:\\runs\\trace.json", "traces/*.json", "rank_0.log.1", "",
)  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda s: s[:30])
def test_words_are_words(sentence: str) -> None:
    assert kind_of(sentence) is Kind.WORDS
    artifacts, problems = find([sentence])
    assert not problems and artifacts[0].typed and artifacts[0].text() == sentence


@pytest.mark.parametrize("path", PATHS)
def test_a_mistyped_path_is_named_and_is_a_usage_error(path: str) -> None:
    assert kind_of(path) is Kind.MISSING
    with pytest.raises(BadRequest, match="no such file or folder") as caught:
        gather([path])
    assert caught.value.exit_code == 2 and caught.value.hint


def test_what_exists_is_a_path_however_it_reads(tmp_path: Path) -> None:
    for name in ("loss is nan after step 900", "OOM", "训练", "why"):
        (tmp_path / name).write_text("step 1 loss 2.0\n", encoding="utf-8")
        assert kind_of(name) is Kind.FILE
        assert kind_of(Words(name)) is Kind.WORDS, "nothing on the disk is looked up for what is known to be words"
    (tmp_path / "the runs").mkdir()
    assert kind_of("the runs") is Kind.FOLDER
    assert kind_of("*900") is Kind.PATTERN


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=600))
def test_nothing_that_can_be_typed_is_an_error_of_ours(text: str) -> None:
    kind = kind_of(text)
    assert kind is not Kind.MISSING or meant_as_path(text)


def test_one_missing_file_never_costs_the_answer_from_the_others(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "".join(f"step {i} loss 2.{i} step_time 0.5\n" for i in range(30)), encoding="utf-8"
    )
    found = diagnose("train.log", "gone.json", cache=False)
    assert any(name.endswith("train.log") for name in found.evidence.inputs)
    lost = [n for n in found.notes if n.lost]
    assert [n.source.file for n in lost] == ["gone.json"] and "no such file" in lost[0].text
    assert found.state is not State.HEALTHY, "what was not read cannot be called well"
    with pytest.raises(BadRequest, match=r"gone\.json; and 1 more"):
        gather(["gone.json", "gone.csv"])


def test_sources_are_the_users_own_words() -> None:
    assert label_of("tokens/s fell") == "“tokens/s fell”"
    assert place(Source(label_of("tokens/s fell by 2x"), "line 1: tokens/s fell")) == "“tokens/s fell by 2x”"
    assert place(Source("a/b/trace.json", "line 3")) == "trace.json line 3"
    long = label_of(LONG)
    assert len(long) <= LONGEST_LABEL + 2 and is_label(long)
    head, tail = long[1:-1].split(" … ")
    assert LONG.startswith(head) and LONG.endswith(tail) and len(head) > 20 and len(tail) > 10
    assert len(label_of("训" * 500)) <= LONGEST_LABEL + 2
    answer = diagnose(LONG, cache=False)
    cited = {place(s) for h in answer.hypotheses for r in h.because for s in r.sources}
    assert cited == {label_of(LONG)}
    assert place(Source(label_of(LONG))) == label_of(LONG)


def test_typed_words_name_no_rank_or_node() -> None:
    label = label_of("our run/rank3.log on node-03 is slow")
    assert rank_of_file(label) is None and node_of_file(label) is None


def test_two_long_texts_that_are_cited_alike_are_both_read() -> None:
    a, b = (f"the step is slow {'again ' * 40}{middle}{'again ' * 40}and nobody knows why" for middle in "xy")
    assert label_of(a) == label_of(b)
    assert len(find([a, b])[0]) == 2


def test_words_that_end_like_a_file_say_that_they_were_read_as_words() -> None:
    notes = gather(["the run diverges after 2 epochs, see train.log"]).notes
    assert READ_AS_WORDS in [n.text for n in notes]


def test_what_is_shared_keeps_the_words_to_itself() -> None:
    shared = to_text(
        shareable(diagnose("step time/iteration went from 1.2 s to 2.9 s on acme-host-17/rank3", cache=False))
    )
    assert "acme-host-17" not in shared


def test_sentences_with_signs_beside_facts_stay_sentences() -> None:
    sentence = "TP=4 fails with OOM, TP=8 fits/works"
    pairs = ["gpus=8", "symptom=it hangs/stalls at start", "step_time=2 s"]
    assert split_words([sentence, *pairs], ["gpu=h100"]) == ([sentence], ["gpu=h100", *pairs])
    assert split_words([LONG + " a=b"], ["gpu=h100"]) == ([LONG + " a=b"], ["gpu=h100"])


def test_facts_take_long_sentences_with_slashes() -> None:
    found = diagnose(facts=[f"symptom={LONG}"])
    assert found.state in (State.SICK, State.UNCLEAR)


def test_mcp_takes_words_and_looks_them_up_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "OOM").write_text("password hunter2", encoding="utf-8")
    tools = Tools(root)
    said = tools.diagnose([LONG], [], "findings", 0, 10, False)
    assert said["state"] in ("sick", "unclear") and is_label(said["inputs"][0])
    assert "hunter2" not in str(tools.diagnose(["OOM"], [], "facts", 0, 10, False)), "a file outside of the folder"
    with pytest.raises(BadRequest):
        tools.diagnose(["trace.json"], [], "findings", 0, 10, False)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("zh.txt", "训练突然变慢了,没有改代码。昨天每步 1.2 秒,今天 2.9 秒。\n".encode()),
        ("ru.txt", "Обучение стало медленнее\n".encode()),
        ("ja.log", "学習が遅くなりました。" .encode() * 400),
        ("emoji.md", "🔥🔥🔥".encode()),
        ("utf16.txt", "训练突然变慢了\n".encode("utf-16")),
        ("utf32.txt", "training got slow\n".encode("utf-32")),
        ("gbk.txt", "训练突然变慢了,没有改代码。\n".encode("gbk") * 4),
        ("latin.txt", "die Läufe sind träge geworden, größer ist nichts\n".encode("latin-1") * 2),
        ("letter.txt", b"dear all, the weather is fine"),
        ("other.json", b'{"lines": [1, 2]}'),
    ],
)  # fmt: skip
def test_text_in_any_script_is_text_and_without_a_known_word_unclear(tmp_path: Path, name: str, content: bytes) -> None:
    assert is_textual(content)
    (tmp_path / name).write_bytes(content)
    found = diagnose(name, cache=False)
    assert found.state is State.UNCLEAR and found.next, "what to capture is said"
    assert found.evidence.inputs


@pytest.mark.parametrize(
    "content", [b"\x7fELF" + bytes(99), b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b"\x80\x04\x95\xff\xfe", b"  \n"]
)
def test_binaries_and_blanks_are_still_refused(tmp_path: Path, content: bytes) -> None:
    assert not is_textual(content)
    (tmp_path / "x.dat").write_bytes(content)
    with pytest.raises(UnreadableInput):
        gather(["x.dat"])


def test_the_command_line_and_stdin_answer_a_long_sentence() -> None:
    for arguments, typed in (([LONG], None), (["-"], LONG), (["-"], "训练突然变慢了")):
        ran = subprocess.run(
            [sys.executable, "-m", "stallwise", "-q", "diagnose", *arguments],
            input=typed,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        assert "Traceback" not in ran.stderr and "bug" not in ran.stderr


@pytest.mark.parametrize(
    "arguments", [[LONG], ["diagnose", "OOM", "-o", f"{LONG}/a.html"], ["diagnose", f"{LONG}.json"], ["explain", LONG]]
)
def test_no_command_takes_a_long_text_for_an_error_of_ours(arguments: list[str]) -> None:
    ran = subprocess.run([sys.executable, "-m", "stallwise", *arguments], capture_output=True, text=True)
    assert ran.returncode in (0, 2), ran.stderr
    assert "Traceback" not in ran.stderr and "internal error" not in ran.stderr
