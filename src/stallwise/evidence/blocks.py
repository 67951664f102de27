"""Bytes of a possibly packed, possibly damaged file, block by block, with what was lost."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from typing import IO, TYPE_CHECKING, ClassVar

from isal.igzip_lib import IsalError

from stallwise.evidence.limits import current, too_much

if TYPE_CHECKING:
    from stallwise.evidence.artifact import Artifact

_ISAL: type[Exception] = IsalError  # type: ignore[assignment]
# What unpacking raises.
DAMAGE: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    ValueError,
    zlib.error,
    _ISAL,
    zipfile.BadZipFile,
    lzma.LZMAError,
)
GZIP_MAGIC = b"\x1f\x8b"
BLOCK_BYTES = 1 << 20  # decoded, a block still fits the cache; larger ones were measured to be slower


class Blocks:
    """Iterates over unpacked blocks; `damage` says afterwards why it stopped early, empty when it did not."""

    passed_bytes: ClassVar[int] = 0  # as stored, of all files that this process has read so: how far a long reading is

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.damage = ""
        self.read_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        packed = self.artifact.packed
        most_bytes = current().unpacked_for(self.artifact.size_bytes) if packed else float("inf")
        with self.artifact.raw() as stream:
            pieces = self._unpacked(stream) if packed else iter(partial(self._stored, stream), b"")
            while True:
                try:
                    piece = next(pieces, None)
                except DAMAGE as error:  # of the disk, or of the zip that holds it
                    self.damage = f"reading failed: {getattr(error, 'strerror', None) or error}"
                    return
                if piece is None:
                    return
                if piece:
                    self.read_bytes += len(piece)
                    yield piece
                if self.read_bytes > most_bytes:
                    self.damage = too_much(self.artifact.name, self.artifact.size_bytes).problem
                    return

    @staticmethod
    def _stored(stream: IO[bytes]) -> bytes:
        piece = stream.read(BLOCK_BYTES)
        Blocks.passed_bytes += len(piece)
        return piece

    def _unpacked(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Every gzip member in turn; all bytes before a cut or a flaw are given, which GzipFile would not do."""
        from isal import isal_zlib

        pending = self._stored(stream)
        while pending.startswith(GZIP_MAGIC):
            member = isal_zlib.decompressobj(wbits=31)
            while not member.eof:
                try:
                    yield member.decompress(pending, BLOCK_BYTES)
                except DAMAGE as error:
                    self.damage = f"the gzip stream is damaged ({error})"
                    return
                pending = member.unconsumed_tail or (b"" if member.eof else self._stored(stream))
                if not pending and not member.eof:
                    yield member.flush()
                    if not member.eof:
                        self.damage = "the gzip stream is cut off"
                    return
            pending = member.unused_data
            if len(pending) < len(GZIP_MAGIC):
                pending += self._stored(stream)
            pending = pending.lstrip(b"\0") or self._stored(stream)  # tape and tar pad members with zeros
        if pending.strip(b"\0"):
            self.damage = "there are bytes after the gzip stream"
