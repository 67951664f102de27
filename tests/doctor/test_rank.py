"""The order of findings and what they may claim."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.findings.finding import Finding, Fix, Gain
from stallwise.doctor.rank import rank
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category, Ledger

CATEGORIES = (Category.COMPUTE, Category.LAUNCH_GAP, Category.HOST_WAIT)
LEDGER = Ledger({Category.COMPUTE: 0.060, Category.LAUNCH_GAP: 0.030, Category.HOST_WAIT: 0.010}, Source("trace.json"))


def finding(cause: str, gain: tuple[float, float] | None, **more: object) -> Finding:
    worth = Gain(*gain, "test") if gain else None
    values: dict[str, object] = {"headline": cause, "confidence": 0.9, "because": (), "cause": cause, "gain": worth}
    return Finding(**{**values, **more})  # type: ignore[arg-type]


findings = st.lists(
    st.builds(
        lambda name, low, more, category, sure, optional: finding(
            name, (low, low + more), category=category, confidence=sure, optional=optional
        ),
        st.sampled_from("abcdef"),
        st.floats(0, 0.05),
        st.floats(0, 0.1),
        st.sampled_from(CATEGORIES),
        st.floats(0.1, 1.0),
        st.booleans(),
    ),
    max_size=8,
)


@given(findings)
def test_claims_never_exceed_their_category(given_findings: list[Finding]) -> None:
    ranked = rank(given_findings, LEDGER)
    for category in CATEGORIES:
        claimed = sum(f.gain.high_s for f in ranked if f.category is category and f.gain)
        assert claimed <= LEDGER.seconds[category] + 1e-12


@given(findings)
def test_what_is_broken_comes_before_what_is_optional(given_findings: list[Finding]) -> None:
    broken = [f.confidence >= 0.5 and not f.optional for f in rank(given_findings, LEDGER)]
    assert broken == sorted(broken, reverse=True)


def test_the_larger_sure_gain_comes_first() -> None:
    small = finding("small", (0.001, 0.002), category=Category.COMPUTE)
    large = finding("large", (0.020, 0.025), category=Category.LAUNCH_GAP)
    assert [f.cause for f in rank([small, large], LEDGER)] == ["large", "small"]


def test_a_cause_stands_above_its_consequence_even_when_smaller() -> None:
    consequence = finding("consequence", (0.020, 0.025), category=Category.COMPUTE)
    cause = finding("cause", (0.010, 0.011), category=Category.COMPUTE, explains=("consequence",))
    assert [f.cause for f in rank([consequence, cause], LEDGER)] == ["cause", "consequence"]


def test_an_optional_gain_explains_nothing_that_is_broken() -> None:
    broken = finding("broken", (0.020, 0.025), category=Category.COMPUTE)
    offered = finding("offered", (0.001, 0.002), category=Category.COMPUTE, explains=("broken",), optional=True)
    assert [f.cause for f in rank([offered, broken], LEDGER)] == ["broken", "offered"]


def test_fixes_win_no_more_than_their_finding() -> None:
    gain = Gain(0.02, 0.05, "test")
    claimed = rank([finding("a", (0.02, 0.05), category=Category.HOST_WAIT, fixes=(Fix("x", gain),))], LEDGER)[0]
    assert claimed.fixes[0].gain is not None and claimed.fixes[0].gain.high_s == LEDGER.seconds[Category.HOST_WAIT]
