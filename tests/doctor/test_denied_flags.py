"""A flag that is denied says that nothing happened, in every form in which keys and values are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.answer import WORTH_A_LOOK
from stallwise.doctor.examine import diagnose
from stallwise.doctor.words import words_in
from stallwise.evidence.bag import MANNER, TRIGRAM, stems_of
from stallwise.evidence.catalog.memory import FAILED
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.flags import EVENTS, NO, YES, flag_of, is_denied_event
from stallwise.evidence.vocabulary import stated_items
from stallwise.readers.text.troubles import names_trouble
from stallwise.readers.text.value import flag_in

DENIED = ("false", "0", "no", "none", "disabled", "null", "never", "off")
FORMS = {
    "case.toml": 'oom = {quoted}\nmfu = 0.22\nmfu_before = 0.48\ngpus = 512\ngpu = "h100"\n',
    "case.json": '{{"oom": {json}, "mfu": 0.22, "mfu_before": 0.48, "gpus": 512, "gpu": "h100"}}',
    "case.yaml": "oom: {plain}\nmfu: 0.22\nmfu_before: 0.48\ngpus: 512\ngpu: h100\n",
    "case.csv": "oom,mfu,gpus,gpu\n{plain},0.22,512,h100\n",
    "case.txt": "oom={plain} mfu=0.22 gpus=512\n",
    "case.ini": "[run]\noom = {plain}\nmfu = 0.22\ngpus = 512\n[card]\ngpu = h100\n",
}


def written(form: str, value: str) -> str:
    bare = value in ("false", "true", "0", "1")
    quoted = value if bare else f'"{value}"'
    return form.format(plain=value, quoted=quoted, json="null" if value == "null" else quoted)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("value", DENIED)
def test_denied_in_any_format_it_did_not_happen(tmp_path: Path, name: str, value: str) -> None:
    (tmp_path / name).write_text(written(FORMS[name], value), encoding="utf-8")
    found = diagnose(str(tmp_path / name), cache=False)
    assert not found.evidence.all(FAILED)
    likely = [h.cause for h in found.hypotheses if h.probability >= WORTH_A_LOOK]
    assert not any(cause.startswith("oom-") for cause in likely), likely
    assert "an allocation" not in str([r.text for f in found.findings for r in f.because])


@pytest.mark.parametrize("name", [n for n in FORMS if n != "case.txt"])
@pytest.mark.parametrize("value", ["true", "yes", "1"])
def test_affirmed_in_any_format_it_did(tmp_path: Path, name: str, value: str) -> None:
    (tmp_path / name).write_text(written(FORMS[name], value), encoding="utf-8")
    assert diagnose(str(tmp_path / name), cache=False).evidence.all(FAILED)


@pytest.mark.parametrize("value", [*DENIED, "disabled", "False"])
def test_denied_among_facts(value: str) -> None:
    found = diagnose(facts=[f"oom={value}", "mfu=0.22", "mfu.before=0.48", "gpus=512"])
    assert not found.evidence.all(FAILED) and not any(c.startswith("oom-") for c in found.ranked[:3])


def test_yes_and_no_are_one_function() -> None:
    for said, flag in (
        *((w, 1.0) for w in YES),
        *((w, 0.0) for w in NO),
        (True, 1.0),
        (False, 0.0),
        (None, 0.0),
        (0, 0.0),
        (1, 1.0),
    ):
        assert flag_of(said) == flag
        assert not isinstance(said, str) or flag_in(said) == flag, said
    for said in ("perhaps", "64", "12 GB", "h100"):
        assert flag_of(said) is None and flag_in(said) is None


def test_whoever_reads_it_a_denied_event_is_no_fact() -> None:
    evidence = Evidence()
    evidence.add([Fact(FAILED, 0.0, Source("any reader"))])
    evidence.add(stated_items({"oom": "no"}))
    assert not evidence.all(FAILED)
    evidence.add([Fact(FAILED, 1.0, Source("any reader"))])
    assert evidence.all(FAILED)
    assert all(is_denied_event(name, "no") and not is_denied_event(name, 1.0) for name in EVENTS)
    assert not is_denied_event("run.network_storage", 0.0), "a setting that is off is a fact"


def test_words_of_a_denied_trouble_are_no_evidence_and_those_of_a_setting_are() -> None:
    assert (
        names_trouble("oom")
        and names_trouble("throttled")
        and not names_trouble("pin_memory")
        and not names_trouble("num_workers")
    )
    for text in ('"oom": false,', "oom = no", "oom: none", "oom=0", "'oom': null"):
        assert "oom" not in words_in(f"{text}\nmfu = 0.22"), text
    for text in ('"oom": true', "oom = 12", "oom: yes", "oom happened, no idea why", "no = oom"):
        assert "oom" in words_in(text), text
    kept = "pin_memory: false\nnum_workers: 0\n"
    about = {w for w in words_in(kept) if not w.startswith((MANNER, TRIGRAM))}
    assert about == stems_of(kept), "what is off may be what is wrong"
