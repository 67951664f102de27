"""Events: typed, placed, and the same whatever stands in front; loud lines without a meaning are counted."""

from __future__ import annotations

import pytest

from stallwise.doctor.findings.program_end import ending_of
from stallwise.doctor.measures import driver_errors
from stallwise.doctor.measures.first_failure import from_evidence
from stallwise.doctor.messages import messages_in
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hang
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.unread import Unread
from stallwise.readers.text.match import KEPT_EACH, matcher_of
from stallwise.readers.text.message_patterns import patterns_in

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB"


def said(text: str, name: str = "run.log", *, written: bool = False) -> Evidence:
    evidence = Evidence()
    evidence.add(messages_in(Artifact(name, content=text.encode()), written=written))
    return evidence


def first(text: str) -> list[Fact]:
    return [f for f in from_evidence(said(text)) if isinstance(f, Fact) and f.quantity is hang.FIRST_FAILURE]


@pytest.mark.parametrize(
    "prefix", ["", "[rank3]: ", "2026-01-02 10:00:00,123 - root - ERROR - ", "E0102 10:00:00.1 77 a.py:3] "]
)
def test_a_message_means_the_same_behind_any_prefix(prefix: str) -> None:
    event = said(prefix + OOM + "\n").events_of("out-of-memory")[0]
    assert event.role is Role.ROOT
    assert event.number("request") == 2 * 2**30
    assert event.text.startswith("torch.OutOfMemoryError")


def test_a_code_gets_its_name_and_what_it_stands_for() -> None:
    event = said(
        "n1:1:2 [3] NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129\n"
    ).events[0]
    assert event.kind == "verbs-completion-error"
    assert event.word("code.name") == "IBV_WC_RETRY_EXC_ERR"
    assert (event.scope.node, event.scope.gpu) == ("n1", 3)


def test_a_code_may_say_that_it_only_follows() -> None:
    events = said("NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name=python, Ch 00000008\n").events_of("driver-error")
    assert events[0].role is Role.CASCADE


def test_advice_is_never_evidence() -> None:
    evidence = said("Stack trace of the failed collective not found, potentially because FlightRecorder is disabled.\n")
    assert evidence.events[0].role is Role.ADVICE
    assert not evidence.events_of(evidence.events[0].kind)


def test_a_loud_line_without_a_meaning_is_counted() -> None:
    text = "ERROR 01-02 10:00:00 [x.py:3] the flux capacitor 12 is empty\n" * 3 + "INFO 01-02 10:00:00 [x.py:3] fine\n"
    unread = [u for u in said(text).unread if isinstance(u, Unread)]
    assert [(line.times, line.level) for line in unread[0].error_lines] == [(3, "error")]


def test_a_sentence_about_an_error_is_no_error() -> None:
    told = "Yesterday somebody saw an illegal memory access on another machine, not here.\n"
    assert said(told).events_of("illegal-access")
    assert not said(told, written=True).events_of("illegal-access")
    assert said("It died with:\n" + OOM + "\n", written=True).events_of("out-of-memory")


def test_an_error_of_every_rank_has_no_first() -> None:
    every = "".join(f"[rank{r}]: {OOM}\n" for r in range(4))
    assert not first(every)
    assert first(
        "[rank2]: ValueError: bad batch\n[rank0]: step 3\n"
        + "[rank1]: torch.distributed.DistBackendError: NCCL error\n"
    )


def test_the_earliest_specific_error_wins_over_the_launchers_exit_code() -> None:
    text = (
        "[rank2]: ValueError: bad batch 17\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-02_10:00:00\n  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : 1 (pid: 4233)\n"
    )
    fact = first(text)[0]
    assert "bad batch 17" in str(fact.value)
    assert fact.scope.rank == 2


def test_an_error_that_ends_a_log_is_its_ending() -> None:
    ending = ending_of(said("step 1\nstep 2\nFileNotFoundError: [Errno 2] No such file or directory: 'x.bin'\n"))
    assert ending is not None and "x.bin" in ending.text
    assert ending_of(said("ValueError: early\n" + "step\n" * 100)) is None


def test_a_signature_is_added_by_a_file_alone() -> None:
    text = """
[defaults]
component = "flux"
source = "flux 1.0"

[[message]]
id = "flux.empty"
event = "flux-empty"
role = "root"
level = "error"
anchor = "capacitor"
match = 'capacitor (?P<which>\\d+) is empty'
slots = { which = "int" }
sample = ["the flux capacitor 12 is empty"]
not_sample = ["the capacitor is full"]
"""
    from stallwise.evidence.line import Line

    found = matcher_of(tuple(patterns_in("flux.toml", text)))
    events = found.match(["the flux capacitor 12 is empty"], lambda i: Line(1, "the flux capacitor 12 is empty")).events
    assert [(e.kind, e.number("which")) for e in events if isinstance(e, Event)] == [("flux-empty", 12.0)]


def test_of_a_storm_a_few_lines_of_each_card_and_code_are_kept_and_all_are_counted() -> None:
    codes = [(bus, code) for bus in ("1b", "dc") for code in (145, 45)]
    lines = [
        f"[{n}.{n:06d}] NVRM: Xid (PCI:0000:{bus}:00): {code}, pid={n}, name=python3, Ch {n:08x}\n"
        for n in range(400)
        for bus, code in codes
    ]
    evidence = said("".join(lines), "dmesg.txt")
    assert len(evidence.events_of("driver-error")) == len(codes) * 2 * KEPT_EACH
    assert not evidence.unread
    facts = [f for f in driver_errors.from_evidence(evidence) if isinstance(f, Fact) and " times" in str(f.value)]
    assert [f.samples for f in facts] == [400] * len(codes)
    assert evidence.at(facts[0].source) is evidence.events[0]
