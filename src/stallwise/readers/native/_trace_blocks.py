"""Bytes of a possibly packed, possibly damaged file, block by block, with what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from stallwise.evidence.artifact import GZIP_MAGIC, Artifact

BLOCK_BYTES = 1 << 20  # decoded, a block still fits the cache; larger ones were measured to be slower


class Blocks:
    """Iterates over unpacked blocks; `damage` says afterwards why it stopped early, empty when it did not."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.damage = ""
        self.read_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        with self.artifact.raw() as stream:
            pieces = self._unpacked(stream) if self.artifact.packed else self._plain(stream)
            for piece in pieces:
                if piece:
                    self.read_bytes += len(piece)
                    yield piece

    def _plain(self, stream: IO[bytes]) -> Iterator[bytes]:
        while True:
            try:
                piece = stream.read(BLOCK_BYTES)
            except OSError as error:
                self.damage = f"reading failed: {error.strerror}"
                return
            if not piece:
                return
            yield piece

    def _unpacked(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Every gzip member in turn; all bytes before a cut or a flaw are given, which GzipFile would not do."""
        from isal import isal_zlib

        pending = stream.read(BLOCK_BYTES)
        while pending.startswith(GZIP_MAGIC):
            member = isal_zlib.decompressobj(wbits=31)
            while not member.eof:
                try:
                    yield member.decompress(pending, BLOCK_BYTES)
                except isal_zlib.error as error:  # type: ignore[misc]
                    self.damage = f"the gzip stream is damaged ({error})"
                    return
                pending = member.unconsumed_tail or (b"" if member.eof else stream.read(BLOCK_BYTES))
                if not pending and not member.eof:
                    yield member.flush()
                    if not member.eof:
                        self.damage = "the gzip stream is cut off"
                    return
            pending = member.unused_data
            if len(pending) < len(GZIP_MAGIC):
                pending += stream.read(BLOCK_BYTES)
            pending = pending.lstrip(b"\0") or stream.read(BLOCK_BYTES)  # tape and tar pad members with zeros
        if pending.strip(b"\0"):
            self.damage = "there are bytes after the gzip stream"
