"""A live server's /metrics, read again and again: pages with their times, whatever the server does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.limits import OutOfTime, at_most

PAGE_TIMEOUT_S = 5.0  # a healthy engine answers in milliseconds even under load; one that does not is news itself
MAX_PAGE_BYTES = 64 << 20
EVERY_S = 2.0
PIECE_BYTES = 1 << 16
SLACK_S = 1.0
MARK = "# stallwise scrape t="


class _OnlyHttp(HTTPRedirectHandler):
    """A server may send us on to another page, not to another protocol."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if not newurl.lower().startswith(("http://", "https://")):
            raise UnreadableInput(f"{req.full_url} leads to {newurl[:120]}", hint="give the address of the page itself")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = build_opener(_OnlyHttp)


def fetch_page(url: str, timeout_s: float = PAGE_TIMEOUT_S) -> bytes:
    """One page, or a sentence why not; a server that drips bytes is given up as well."""
    deadline = time.monotonic() + timeout_s
    pieces: list[bytes] = []
    size = 0
    try:
        with (
            at_most(timeout_s + SLACK_S),  # a status line or a header can come letter by letter
            _OPENER.open(Request(url, headers={"Accept": "text/plain, */*"}), timeout=timeout_s) as answer,
        ):
            while piece := answer.read1(PIECE_BYTES):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_PAGE_BYTES:
                    raise UnreadableInput(
                        f"{url} sends more than {MAX_PAGE_BYTES >> 20} MiB", hint="is this a /metrics page?"
                    )
                if time.monotonic() > deadline:
                    raise TimeoutError(f"still sending after {timeout_s:.0f} s")
            if answer.length:
                raise IncompleteRead(b"".join(pieces), answer.length)
    except (URLError, OSError, ValueError, HTTPException, OutOfTime) as error:
        reason = getattr(error, "reason", error)
        if isinstance(error, OutOfTime):
            reason = f"no whole answer after {timeout_s:.0f} s"
        elif isinstance(error, HTTPException):
            reason = f"this is no answer of a web server ({type(error).__name__})"
        raise UnreadableInput(
            f"cannot read {url}: {reason}", hint="check the address and that the server is up"
        ) from error
    return b"".join(pieces)


def scrape_for(
    url: str,
    for_s: float,
    *,
    every_s: float = EVERY_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    timeout_s: float = PAGE_TIMEOUT_S,
) -> Artifact:
    """Pages over some time as one artifact; what failed is said in it, and only a server that never answers is an error."""
    start, pages, failures = clock(), 0, 0
    parts: list[bytes] = []
    last: UnreadableInput | None = None
    while True:
        at = clock() - start
        try:
            page = fetch_page(url, timeout_s)
            parts.append(f"{MARK}{at:.3f}\n".encode() + page.rstrip() + b"\n")
            pages += 1
        except UnreadableInput as error:
            failures, last = failures + 1, error
            parts.append(f"# stallwise scrape failed at {at:.1f} s: {error.problem}\n".encode())
        left = for_s - (clock() - start)
        if left <= 0:
            break
        sleep(min(every_s, left))
    if not pages:
        assert last is not None
        raise UnreadableInput(f"{last.problem} ({failures} tries in {for_s:.0f} s)", hint=last.hint)
    return Artifact(url, content=b"".join(parts))
