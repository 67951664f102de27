"""Bytes of a possibly packed, possibly damaged file, block by block, with what was lost."""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, ClassVar

from stallwise.errors import UnreadableInput
from stallwise.evidence.limits import current, too_much

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from stallwise.evidence.artifact import Artifact


@cache
def damage() -> tuple[type[Exception], ...]:
    """What unpacking raises. Asked for where something was raised: who unpacks nothing loads none of these libraries."""
    import lzma
    import tarfile
    import zipfile

    from isal.igzip_lib import IsalError

    of_isal: type[Exception] = IsalError  # type: ignore[assignment]
    zstd = _zstd()
    of_zstd: type[Exception] = zstd.ZstdError if zstd is not None else OSError
    return (
        OSError, EOFError, ValueError, zlib.error, of_isal, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, of_zstd,
    )  # fmt: skip


def _gzip() -> Any:
    from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor  # twice the speed of the standard library's

    return IgzipDecompressor(flag=DECOMP_GZIP)


def _bzip2() -> Any:
    import bz2

    return bz2.BZ2Decompressor()


def _xz() -> Any:
    import lzma

    return lzma.LZMADecompressor()


def _zstd() -> Any:
    """The module; None before Python 3.14."""
    return import_module("compression.zstd") if sys.version_info >= (3, 14) else None


# The first bytes of what is packed -> its name, and what unpacks one stream of it.
_PACKINGS: dict[bytes, tuple[str, Callable[[], Any]]] = {
    b"\x1f\x8b": ("gzip", _gzip),
    b"BZh": ("bzip2", _bzip2),
    b"\xfd7zXZ\x00": ("xz", _xz),
    **({b"\x28\xb5\x2f\xfd": ("zstd", lambda: _zstd().ZstdDecompressor())} if sys.version_info >= (3, 14) else {}),
}
LONGEST_MAGIC = max(map(len, _PACKINGS))
BLOCK_BYTES = 1 << 20  # decoded, a block still fits the cache; larger ones were measured to be slower


def is_packed(start: bytes) -> bool:
    """Whether bytes begin as one of the packings does."""
    return start.startswith(tuple(_PACKINGS))


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
                except damage() as error:  # of the disk, or of the zip that holds it
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
        """Every packed stream in turn; all bytes before a cut or a flaw are given, which file objects would not do."""
        pending, name = self._stored(stream), ""
        while magic := next(filter(pending.startswith, _PACKINGS), None):
            name, unpacking = _PACKINGS[magic]
            member = unpacking()
            while not member.eof:
                try:
                    piece = member.decompress(pending, BLOCK_BYTES)
                except damage() as error:
                    self.damage = f"the {name} stream is damaged ({error})"
                    return
                yield piece
                pending = b"" if member.eof or not member.needs_input else self._stored(stream)
                if not piece and not pending and not member.eof:  # nor is anything left that was unpacked before
                    self.damage = f"the {name} stream is cut off"
                    return
            pending = member.unused_data
            if len(pending) < LONGEST_MAGIC:
                pending += self._stored(stream)
            pending = pending.lstrip(b"\0") or self._stored(stream)  # tape and tar pad members with zeros
        if pending.strip(b"\0"):
            self.damage = f"there are bytes after the {name} stream"


class Unpacked(io.RawIOBase):
    """The same as one stream; it ends with a sentence where an archive is damaged or holds far more than archives do."""

    def __init__(self, artifact: Artifact) -> None:
        self._blocks = Blocks(artifact)
        self._pieces, self._piece = iter(self._blocks), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        self._piece = self._piece or memoryview(next(self._pieces, b""))
        if not self._piece and self._blocks.damage:
            raise UnreadableInput(
                f"{self._blocks.artifact.name} is damaged: {self._blocks.damage}",
                hint="copy it again, or capture it anew",
            )
        given = min(len(room), len(self._piece))
        room[:given], self._piece = self._piece[:given], self._piece[given:]
        return given


class Piece(io.RawIOBase):
    """So many bytes of a longer stream, from a place on."""

    def __init__(self, stream: IO[bytes], start: int, length_bytes: int) -> None:
        self._stream, self._left = stream, length_bytes
        stream.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        found = self._stream.read(min(len(room), self._left))
        room[: len(found)] = found
        self._left -= len(found)
        return len(found)

    def close(self) -> None:
        self._stream.close()
        super().close()
