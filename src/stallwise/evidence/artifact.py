"""One input: bytes with a name, unpacked if they were packed."""

from __future__ import annotations

import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO

from stallwise.errors import UnreadableInput
from stallwise.evidence.blocks import BLOCK_BYTES, LONGEST_MAGIC, Blocks, Piece, Unpacked, damage, is_packed
from stallwise.evidence.skeletons import Skeletons, bare_lines, skeletons_of

TEXT_BYTES = 512 << 20  # of a text that are held; a longer one is read at its beginning and at its end
MOST_LINES = 16_000_000  # of a text that are held, for the same reason
LONG_SAMPLE = 1 << 15  # bytes, and lines, below which all lines of a sample are looked at
FEW_LINES = 64
HALVES = 256  # bytes that tell how letters are stored
FEW_CHARACTERS = 8
MOSTLY_EMPTY = 0.8  # of the halves: some letters are no Latin ones
SAMPLE_BYTES = 1 << 20  # what recognisers look at, from the start and, for longer inputs, from the end


def stored_as(start: bytes) -> str:
    """How letters are stored: by their mark, or by the half of each that is empty. PowerShell redirects write UTF-16."""
    if start[:4] in (BOM_UTF32_LE, BOM_UTF32_BE):  # the little one begins like that of UTF-16
        return "utf-32"
    if start[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        return "utf-16"
    for encoding, empty in (("utf-16-le", 1), ("utf-16-be", 0)):
        half, characters = start[empty:HALVES:2], start[1 - empty : HALVES : 2]
        if len(half) >= FEW_CHARACTERS and 0 not in characters and half.count(0) > MOSTLY_EMPTY * len(half):
            return encoding
    return "utf-8"


@dataclass(frozen=True)
class Artifact:
    """A file (or stdin, or a member of an archive) that readers can open again and again."""

    name: str  # as the user wrote it; members of archives as "run.zip!trace.json"
    path: Path | None = None
    content: bytes | None = None  # for stdin, and for texts taken out of their carrier
    url: str | None = None  # for files behind fsspec
    inside: Artifact | None = None  # the archive that holds it
    member: int = 0  # its place in a zip
    offset_bytes: int | None = None  # where it begins in a tar
    member_bytes: int = 0
    typed: bool = False  # words in the place of a path: whoever types them speaks of a run

    def bare(self) -> Artifact:
        """Without what was already looked at; an absolute path, for another process has its own working directory."""
        path = self.path.resolve() if self.path is not None else None
        return replace(self, path=path, inside=self.inside.bare() if self.inside else None)

    def saying(self, text: str) -> Artifact:
        """The same with another text, wherever its own lies."""
        return replace(self, path=None, url=None, inside=None, content=text.encode("utf-8", "replace"))

    @property
    def in_memory(self) -> bool:
        """What lives in this process is not worth sending to another."""
        return self.content is not None or (self.inside is not None and self.inside.in_memory)

    def raw(self) -> IO[bytes]:
        """The bytes as stored."""
        if self.inside is not None:
            return self._member()
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
        """The bytes, unpacked if they are packed (whatever the name says)."""
        return io.BufferedReader(Unpacked(self), BLOCK_BYTES) if self.packed else self.raw()

    def _member(self) -> IO[bytes]:
        assert self.inside is not None
        if self.offset_bytes is not None:
            return io.BufferedReader(Piece(self.inside.raw(), self.offset_bytes, self.member_bytes), BLOCK_BYTES)
        try:
            import zipfile

            with zipfile.ZipFile(self.inside.raw()) as archive:
                return archive.open(archive.infolist()[self.member])
        except unopened() as error:
            raise UnreadableInput(
                f"{self.name} is damaged or encrypted: {error}", hint="unpack the zip by hand"
            ) from error

    def start(self, length_bytes: int) -> bytes:
        """The first bytes as stored; none where not even they can be read."""
        try:
            with self.raw() as stream:
                return stream.read(length_bytes)
        except damage():
            return b""

    @cached_property
    def packed(self) -> bool:
        """True for gzip, bzip2, xz and, where Python knows it, zstd."""
        return is_packed(self.start(LONGEST_MAGIC))

    @cached_property
    def size_bytes(self) -> int:
        """Size as stored."""
        if self.inside is not None:
            return self.member_bytes
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
        blocks = Blocks(self)
        head = b""
        for block in blocks:
            head += block
            if len(head) >= SAMPLE_BYTES:
                break
        if blocks.damage and not head:
            raise UnreadableInput(f"{self.name} is damaged: {blocks.damage}", hint="copy it again, or capture it anew")
        head = head[:SAMPLE_BYTES]
        if self.size_bytes > 2 * SAMPLE_BYTES and not self.packed and self.inside is None:
            with self.raw() as stream:
                stream.seek(-SAMPLE_BYTES, io.SEEK_END)
                head += stream.read(SAMPLE_BYTES)
        return head

    @cached_property
    def distinct_head(self) -> bytes:
        """The lines of the head that differ in more than digits, in order: all that a recogniser can look for, far shorter."""
        if len(self.head) < LONG_SAMPLE or b"\x00" in self.head[:4096]:
            return self.head
        lines = self.head.split(b"\n")
        if len(lines) < FEW_LINES:
            return self.head
        bare = bare_lines(self.head)
        first = dict(zip(reversed(bare), reversed(lines), strict=True))
        return b"\n".join(map(first.__getitem__, dict.fromkeys(bare)))

    def afresh(self) -> Artifact:
        """A copy that remembers what recognisers look at, and none of the lines: they go when it has been read."""
        copy = replace(self)
        copy.__dict__.update({name: self.__dict__[name] for name in ("head", "distinct_head") if name in self.__dict__})
        return copy

    def text(self, limit_bytes: int = TEXT_BYTES) -> str:
        """All of it as text; undecodable bytes are kept visible, never fatal. Of a longer one the beginning and the end."""
        data = self._readable(limit_bytes)
        stored = stored_as(data)
        return data.decode("utf-8-sig" if stored == "utf-8" else stored, errors="replace")

    @property
    def losses(self) -> tuple[str, ...]:
        """What of the text was left out so far, and why."""
        return tuple(self.__dict__.get("_lost", ()))

    def lose(self, sentence: str) -> None:
        """Notes what was left out."""
        lost = self.__dict__.setdefault("_lost", [])
        if sentence not in lost:
            lost.append(sentence)

    def _readable(self, limit_bytes: int) -> bytes:
        """As much as can be unpacked: a cut or damaged archive gives what came before the damage."""
        first: list[bytes] = []
        last: deque[bytes] = deque()
        whole = limit_bytes >= TEXT_BYTES  # somebody wants all of it
        left, last_bytes, skipped_bytes = limit_bytes // 2 if whole else limit_bytes, 0, 0
        blocks = Blocks(self)
        for block in blocks:
            if left > 0:
                first.append(block[:left])
                left -= len(block)
                if left > 0:
                    continue
                block = block[len(block) + left :]
            if not whole:
                break
            last.append(block)
            last_bytes += len(block)
            while last_bytes - len(last[0]) >= limit_bytes // 2:
                skipped_bytes += len(last[0])
                last_bytes -= len(last.popleft())
        if blocks.damage:
            if not blocks.read_bytes:
                raise UnreadableInput(
                    f"{self.name} is damaged: {blocks.damage}", hint="copy it again, or capture it anew"
                )
            self.lose(f"only its first {blocks.read_bytes:,} bytes could be read: {blocks.damage}"[:200])
        if not skipped_bytes:
            return b"".join((*first, *last))
        self.lose(
            f"{skipped_bytes:,} bytes in its middle were not read: it is longer than {limit_bytes >> 20} MiB; lines after "
            "the gap are counted on from those before it"
        )
        return b"".join((*first, b"\n", *last))

    def lines(self) -> list[str]:
        """Lines without their ends; line n is at index n-1."""
        return self._lines

    @cached_property
    def skeletons(self) -> Skeletons:
        """The same lines, grouped by what is left of them without their digits."""
        return skeletons_of(self.lines())

    @cached_property
    def _lines(self) -> list[str]:
        text = self.text()
        if text.count("\n") > MOST_LINES:
            return self._outer_lines(text)
        return text.splitlines()  # decoded once for all who read lines

    def _outer_lines(self, text: str) -> list[str]:
        """The first and the last of very many lines; each costs more than its letters."""
        half = MOST_LINES // 2
        first, last = text.split("\n", half), text.rsplit("\n", half)
        self.lose(f"{text.count(chr(10)) - MOST_LINES:,} lines in its middle were not read: it has too many")
        return [*first[:half], *last[-half:]]


def _open_url(url: str) -> IO[bytes]:
    import fsspec  # whoever made an artifact with a URL has checked that it is installed

    try:
        stream: IO[bytes] = fsspec.open(url, "rb").open()
    except Exception as error:  # back ends raise whatever their clients raise
        raise UnreadableInput(f"cannot open {url}: {error}", hint="check the URL and your credentials") from error
    return stream


def unopened() -> tuple[type[Exception], ...]:
    """What opening an archive raises: all that unpacking does, and what zips raise besides."""
    return (*damage(), RuntimeError, NotImplementedError, IndexError)
