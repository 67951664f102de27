"""Watching a server: one line a look, with the verdict over what has been seen so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from stallwise.doctor.scraping import MARK, fetch_page
from stallwise.errors import UnreadableInput
from stallwise.render import strict_json as json
from stallwise.surfaces.cli._streams import reader_left

REMEMBERED = 300  # pages; ten minutes at two seconds, after which the oldest go
GIVE_UP = 5  # failures in a row before the first page: the address is wrong


def watch_url(
    url: str,
    *,
    every_s: float,
    once: bool = False,
    as_json: bool = False,
    looks: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Looks until stopped; a server that goes away is waited for."""
    start = clock()
    pages: list[bytes] = []
    seen = failures = 0
    while True:
        at = clock() - start
        try:
            pages.append(f"{MARK}{at:.3f}\n".encode() + fetch_page(url) + b"\n")
            del pages[:-REMEMBERED]
            failures = 0
            click.echo(_look(url, pages, at, as_json))
        except UnreadableInput as error:
            failures += 1
            if once or (not pages and failures >= GIVE_UP):
                raise
            click.echo(f"{at:8.1f} s  {error.problem}", err=True)
        seen += 1
        sys.stdout.flush()
        if once or reader_left() or (looks is not None and seen >= looks):
            return
        sleep(every_s)


def _look(url: str, pages: list[bytes], at: float, as_json: bool) -> str:
    from stallwise.doctor.examine import examine
    from stallwise.doctor.reading import read_artifact
    from stallwise.evidence.artifact import Artifact
    from stallwise.evidence.catalog import serving
    from stallwise.evidence.evidence import Evidence
    from stallwise.render.verdict import in_a_word

    artifact = Artifact(url, content=b"".join(pages))
    formats, items = read_artifact(artifact)
    if not formats:
        raise UnreadableInput(f"{url} is not an engine's metrics page", hint="vLLM, SGLang: http://HOST:PORT/metrics")
    evidence = Evidence(inputs=[url], formats=formats)
    evidence.add(items)
    table = next(iter(evidence.table(serving.ENGINE_SAMPLES)), None)
    now = {k: float(v[-1]) for k, v in table.columns.items() if v[-1] == v[-1]} if table is not None else {}
    diagnosis = examine(evidence)
    if as_json:
        keys = ("running", "waiting", "kv_share", "generation_token_per_s", "prompt_token_per_s")
        numbers = {k: now[k] for k in keys if k in now}
        answer = {"state": diagnosis.state.value, "ranked": list(diagnosis.ranked)}
        return json.dumps({"time_s": round(at, 3), **numbers, **answer, "notes": [n.text for n in diagnosis.notes]})
    cells = [
        f"{at:8.1f} s", f"running {now.get('running', 0):4.0f}", f"waiting {now.get('waiting', 0):4.0f}",
        f"KV {now.get('kv_share', 0):4.0%}", f"{now.get('generation_token_per_s', 0):8.0f} tok/s", in_a_word(diagnosis),
        *(n.text for n in diagnosis.notes[:1]),
    ]  # fmt: skip
    return "  ".join(cells)
