"""--share: what strangers must not read is gone from every form, and the answer is still the answer."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.catalog import memory, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Note, Scope, Source, Table
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.markdown import to_markdown
from stallwise.render.redact import shareable
from stallwise.render.text import to_text

SECRETS = (
    "gpu-node-17.corp.example.com", "10.20.30.40", "/home/alice/secret-project", "attention_secret.py", "alice",
    "Write me a poem about the merger", "s3://private-bucket/run", "trainbox-7", "alice@example.com", "launch_codes",
)  # fmt: skip


def secretive() -> Diagnosis:
    file = "/home/alice/secret-project/rank0/trace.json.gz"
    source = Source(file, "line 12")
    evidence = Evidence(inputs=[file, "s3://private-bucket/run/log.txt"], formats=["PyTorch trace"])
    evidence.add(
        [
            Fact(memory.PLACE, "/home/alice/secret-project/attention_secret.py:88 forward", source),
            Fact(run.STEP_TIME, 0.12, source, Scope(node="trainbox-7")),
            Table(
                "memory.peak",
                {
                    "category": np.array(["activations"], dtype=object),
                    "place": np.array(["attention_secret.py:88"], dtype=object),
                    "size_bytes": np.array([1e9]),
                },
                source,
            ),
        ]
    )
    finding = Finding(
        headline="Rank 3 on host gpu-node-17.corp.example.com is late",
        confidence=0.9,
        cause="straggler-rank",
        because=(
            Reason("10.20.30.40:29500 answers late; node trainbox-7 is slow", (source,)),
            Reason("attention_secret.py(88): forward takes 12 ms, mail alice@example.com", (source,)),
            Reason("request 5: prompt: 'Write me a poem about the merger', params: SamplingParams(n=1)", (source,)),
            Reason('the log says "launch_codes are 1 2 3 4 and more"', (source,)),
        ),
        fixes=(Fix("drain trainbox-7 and rerun /home/alice/secret-project/run.sh"),),
    )
    notes = (Note("s3://private-bucket/run/log.txt is cut", Source("s3://private-bucket/run/log.txt")),)
    return Diagnosis("PyTorch trace", State.SICK, ("straggler-rank",), (finding,), None, evidence, notes=notes)


@pytest.mark.parametrize("form", [to_html, to_markdown, to_text, lambda d: json.dumps(to_dict(d))])
@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_left(form: object, secret: str) -> None:
    assert callable(form)
    assert secret not in form(shareable(secretive())).replace("\\_", "_")


def test_the_secrets_were_there_before() -> None:
    text = json.dumps(to_dict(secretive()))
    assert all(secret in text for secret in SECRETS)


def test_the_answer_stays() -> None:
    shown = shareable(secretive())
    assert shown.ranked == ("straggler-rank",)
    assert shown.findings[0].confidence == 0.9
    assert "takes 12 ms" in shown.findings[0].because[1].text
    assert "is late" in shown.findings[0].headline


def test_one_secret_has_one_stand_in() -> None:
    shown = shareable(secretive())
    stand_in = shown.evidence.facts[run.STEP_TIME.name][0].scope.node
    assert stand_in and stand_in.startswith("host-")
    assert stand_in in shown.findings[0].because[0].text
    assert stand_in in shown.findings[0].fixes[0].action


def test_file_endings_survive_so_that_formats_stay_clear() -> None:
    assert shareable(secretive()).evidence.inputs[0].endswith(".json.gz")


def test_sharing_twice_changes_nothing_more() -> None:
    once = shareable(secretive())
    again = shareable(replace(once))
    assert [r.text for r in again.findings[0].because] == [r.text for r in once.findings[0].because]
