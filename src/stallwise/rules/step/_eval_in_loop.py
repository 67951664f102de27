"""Evaluation that interrupts training, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change, stages
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import above
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.PERIODIC_STALL: "at times",
    Symptom.SLOW_STEP: "seldom",
}
OWNS = Owned(Account.COMPUTE, (stages.EVALUATION,), right=0, of=0, whole_account=False)

CLUES = (
    above(
        change.STALL_AT_EVAL,
        0.6,
        "decisive, needed",
        "slow steps come with evaluations",
        "slow steps do not come with evaluations",
    ),
)
