"""Copies from host to device hold up the step.

## What it means
Input or side tensors travel to the device while nothing else runs there. From pageable memory the driver first copies
them into its own pinned buffer, and the call blocks the host until it is done, so the next launches come late too.

## Why it costs
A pinned, asynchronous copy runs at the bus's full rate beside kernels and costs nothing. A pageable one runs at a
fraction of it and in line with the step: its whole time is lost, and the host's lead with it.

## What else looks so
States that shuttle out and back each step are `cpu-offload-transfers`. A checkpoint copies to the host, not from it.

## Fix
Pin the memory in the loader (`pin_memory=True`) and copy with `non_blocking=True`, ahead of use, on a side stream.
Send only what the step needs, in its smallest type; build masks and positions on the device.

## How the gain is found
Time in which only such copies ran, idle time inside the copy call, and idle time after the wait that a blocking copy
forces. The low end keeps a tenth for copies that a prefetch cannot hide.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, bytes_text, ms, percent
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

ONE_WAY = 0.5  # copies to the host at most this part of those to the device; more means a shuttle
KEPT = 0.1  # of the time stays: the first bytes of a batch cannot be hidden


@rule(s.COPY_STALL, s.STEP_TIME)
def h2d_copy_exposed(evidence: Evidence) -> Finding | None:
    """Looks for time lost to copies towards the device."""
    facts = StepFacts(evidence)
    stall = facts.seconds(s.COPY_STALL)
    sent, returned = facts.number(s.TO_DEVICE_BYTES), facts.number(s.TO_HOST_BYTES)
    copying = facts.seconds(s.TO_DEVICE_TIME)
    unsized = sent + returned <= 0  # copies without their bytes are weighed by their time
    if unsized:
        sent, returned = copying, facts.seconds(s.TO_HOST_TIME)
    # A stall without real copy time is something else: the call itself costs the host little.
    if facts.share(stall) < NOTICEABLE or returned > ONE_WAY * sent or copying < 0.1 * stall:
        return None
    pageable = facts.number(s.PAGEABLE_SHARE)
    rate = sent / copying if copying > 0 else 0.0
    gain = facts.replayed(
        gains.COPIES_AHEAD, (1 - KEPT) * stall, stall, "exposed copies and the waits they force; a tenth may stay"
    )
    kind = "pageable" if pageable > 0.5 else "pinned"
    return Finding(
        headline=f"Copies to the GPU hold up the {facts.unit}: {ms(stall)} of every {ms(facts.step_s)}.",
        confidence=0.95 if pageable > 0.5 else 0.85,
        category=Category.COPY,
        gain=gain,
        because=(
            facts.because(
                f"copies to the device take {ms(copying)} a {facts.unit}"
                if unsized
                else f"{bytes_text(sent)} a {facts.unit} from {kind} memory, at {bytes_text(rate)}/s",
                s.TO_DEVICE_TIME if unsized else s.TO_DEVICE_BYTES,
            ),
            facts.because(f"only copies run for {ms(facts.seconds(s.EXPOSED_COPY))}", s.EXPOSED_COPY),
            facts.because(
                f"the host stands {ms(facts.seconds(s.COPY_CALL_WAIT))} in the copy while the device idles",
                s.COPY_CALL_WAIT,
            ),
        ),
        fixes=(
            Fix(
                "pin_memory=True in the loader and .to(device, non_blocking=True), one batch ahead",
                gain,
                cost="pinned host memory",
            )
            if pageable > 0.5
            else Fix(
                "copy the next batch on a side stream while this one computes", gain, cost="one batch of device memory"
            ),
            Fix("send less: smaller types, no padding, build masks on the device", gain, cost="loader changes"),
        ),
        avoid="Do not add loader workers: the batch is ready, its transport is slow.",
        summary=f"{percent(pageable)} of the bytes come from pageable memory, which the driver stages and the host waits for."
        if pageable > 0.5
        else ""
        if unsized
        else "The memory is pinned, but nothing runs beside the copies.",
    )
