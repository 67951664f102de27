"""What the words of training mean where a text is about a service: tokens a second beside first tokens are not a run's."""

from __future__ import annotations

from collections.abc import Sequence

from stallwise.evidence.catalog import run, serving, stated
from stallwise.evidence.quantity import Quantity
from stallwise.late import np
from stallwise.readers.text.name import Name

# What tells two loads of a service apart.
LOADS = (serving.CONCURRENCY.name, serving.OFFERED_RATE.name, serving.ACHIEVED_RATE.name)
# What only a service has.
SIGNS = {
    *LOADS, *(q.name for q in (serving.TTFT, serving.TTFT_TAIL, serving.TPOT, serving.TPOT_TAIL, serving.PER_REQUEST_RATE)),
    *(q.name for q in (serving.WAITING, serving.QUEUE_TIME, serving.PREFILL_TIME)),
}  # fmt: skip
MEANT = {
    run.TOKENS_PER_S.name: serving.OUTPUT_RATE,
    run.SAMPLES_PER_S.name: serving.ACHIEVED_RATE,
    stated.MICROBATCH.name: serving.CONCURRENCY,
}
FASTEST_STREAM = 300.0  # tokens a second of one request; what a whole service makes beside first tokens lies above
MORE_LOAD = 1.2  # times: loads nearer than this are the same one


def of_column(quantity: Quantity, label: str, names: set[str]) -> Quantity:
    """What a column of a service's table is; "per stream" counts no streams where their number stands beside it."""
    if quantity.name in LOADS and label.startswith("per "):
        return serving.PER_REQUEST_RATE
    if quantity is serving.OFFERED_RATE and serving.CONCURRENCY.name in names:
        return serving.ACHIEVED_RATE  # users who wait for their answers offer no rate
    meant = MEANT.get(quantity.name, quantity)
    return quantity if meant.name in names else meant


def of_sentence(named: Sequence[tuple[Name, float | str]]) -> list[Name]:
    """The names of a text's numbers: tokens a second are a user's or the service's; two of a user belong to two first tokens."""
    found = [name for name, _ in named]
    firsts = [n.scope for n in found if n.quantity is serving.TTFT]
    if not firsts and not any(n.quantity is serving.PER_REQUEST_RATE for n in found):
        return found
    for at, (name, value) in enumerate(named):
        if name.quantity is run.TOKENS_PER_S:
            one = float(value) <= FASTEST_STREAM
            found[at] = name._replace(quantity=serving.PER_REQUEST_RATE if one else serving.OUTPUT_RATE)
        elif name.quantity is stated.MICROBATCH:
            found[at] = name._replace(quantity=serving.CONCURRENCY)
    rates = [at for at, n in enumerate(found) if n.quantity is serving.PER_REQUEST_RATE]
    if len(rates) == len(firsts) == 2:
        for at, scope in zip(rates, firsts, strict=True):
            found[at] = found[at]._replace(scope=scope)
    return found


def least_and_most(load: np.ndarray) -> tuple[int, int] | None:
    """The rows of the lightest and the heaviest load; None where they are alike."""
    if not load.size:
        return None
    light, heavy = int(np.where(load > 0, load, np.inf).argmin()), int(np.nan_to_num(load).argmax())
    return (light, heavy) if load[heavy] >= MORE_LOAD * load[light] else None
