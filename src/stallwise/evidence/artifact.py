"""One input: bytes with a name, unpacked if they were packed."""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from isal.igzip_lib import IsalError

from stallwise.errors import UnreadableInput
from stallwise.evidence.skeletons import Skeletons, skeletons_of

BLOCK_BYTES = 1 << 22  # read at once, so that what came before a damage is kept
DAMAGE: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error, IsalError)  # type: ignore[assignment]  # what unpacking raises
SAMPLE_BYTES = 1 << 20  # what recognisers look at, from the start and, for longer inputs, from the end
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Artifact:
    """A file (or stdin, or a member of a zip) that readers can open again and again."""

    name: str  # as the user wrote it; members of archives as "run.zip!trace.json"
    path: Path | None = None
    content: bytes | None = None  # for stdin and members of archives
    url: str | None = None  # for files behind fsspec

    def raw(self) -> IO[bytes]:
        """The bytes as stored."""
        if self.content is not None:
            return io.BytesIO(self.content)
        if self.url is not None:
            return _open_url(self.url)
        assert self.path is not None
        try:
            return self.path.open("rb")
        except OSError as error:
            raise UnreadableInput(f"cannot open {self.name}: {error.strerror}") from error

    def open(self) -> IO[bytes]:
        """The bytes, gunzipped if they are gzip (whatever the name says)."""
        stream = self.raw()
        if not self.packed:
            return stream
        from isal import igzip  # twice the speed of the standard library's

        unpacked = igzip.GzipFile(fileobj=stream, mode="rb")  # type: ignore[no-untyped-call]
        unpacked.myfileobj = stream  # type: ignore[assignment]  # closing the one closes the other
        return unpacked  # type: ignore[return-value]

    def start(self, length_bytes: int) -> bytes:
        """The first bytes as stored."""
        with self.raw() as stream:
            return stream.read(length_bytes)

    @cached_property
    def packed(self) -> bool:
        """True for gzip."""
        return self.start(2) == GZIP_MAGIC

    @cached_property
    def size_bytes(self) -> int:
        """Size as stored."""
        if self.content is not None:
            return len(self.content)
        if self.url is not None:
            with self.raw() as stream:
                return stream.seek(0, io.SEEK_END)
        assert self.path is not None
        return self.path.stat().st_size

    @cached_property
    def head(self) -> bytes:
        """The start, and for long plain files also the end, for recognisers."""
        try:
            with self.open() as stream:
                head = stream.read(SAMPLE_BYTES)
                if not self.packed and self.size_bytes > 2 * SAMPLE_BYTES:
                    stream.seek(-SAMPLE_BYTES, io.SEEK_END)
                    head += stream.read(SAMPLE_BYTES)
                return head
        except DAMAGE as error:
            # A cut gzip still gives its first bytes to a reader that streams; the recogniser sees what it can.
            return self._readable_prefix() or _fail(self.name, error)

    def _readable_prefix(self) -> bytes:
        with self.raw() as stream:
            try:
                return zlib.decompressobj(wbits=31).decompress(stream.read(SAMPLE_BYTES), SAMPLE_BYTES)
            except zlib.error:
                return b""

    def text(self, limit_bytes: int = 512 << 20) -> str:
        """All of it as text; undecodable bytes are kept visible, never fatal."""
        data = self._readable(limit_bytes)
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # PowerShell redirects write UTF-16
            return data.decode("utf-16", errors="replace")
        return data.decode("utf-8-sig", errors="replace")

    def _readable(self, limit_bytes: int) -> bytes:
        """As much as can be unpacked: a cut or damaged archive gives what came before the damage."""
        blocks: list[bytes] = []
        left = limit_bytes
        try:
            with self.open() as stream:
                while left > 0 and (block := stream.read(min(left, BLOCK_BYTES))):
                    blocks.append(block)
                    left -= len(block)
        except DAMAGE as error:
            if not blocks:
                return self._readable_prefix() or _fail(self.name, error)
        return b"".join(blocks)

    def lines(self) -> list[str]:
        """Lines without their ends; line n is at index n-1."""
        return self._lines

    @cached_property
    def skeletons(self) -> Skeletons:
        """The same lines, grouped by what is left of them without their digits."""
        return skeletons_of(self.lines())

    @cached_property
    def _lines(self) -> list[str]:
        return self.text().splitlines()  # decoded once for all who read lines


def _open_url(url: str) -> IO[bytes]:
    import fsspec  # whoever made an artifact with a URL has checked that it is installed

    try:
        stream: IO[bytes] = fsspec.open(url, "rb").open()
    except Exception as error:  # back ends raise whatever their clients raise
        raise UnreadableInput(f"cannot open {url}: {error}", hint="check the URL and your credentials") from error
    return stream


def _fail(name: str, error: Exception) -> bytes:
    raise UnreadableInput(f"{name} is damaged: {error}", hint="copy it again, or capture it anew") from error
