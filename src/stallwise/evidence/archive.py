"""What lies inside an archive: the files of a zip or of a tar, packed or not, by what they begin with and not by their names."""

from __future__ import annotations

from dataclasses import replace

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact, unopened
from stallwise.evidence.limits import current, too_much

MOST_MEMBERS = 100_000
MOST_HELD = 1 << 30  # bytes of a tar that is packed or lies in another archive: its files are cut out of memory
_ZIP, _TAR, _TAR_AT = b"PK\x03\x04", b"ustar", 257


def members_of(artifact: Artifact) -> list[Artifact] | None:
    """Its files; None for what is no archive."""
    start = artifact.start(_TAR_AT + len(_TAR))
    try:
        if start.startswith(_ZIP):
            members = _in_zip(artifact)
        elif start[_TAR_AT:] == _TAR or (artifact.packed and _begins_as_tar(artifact)):
            members = _in_tar(artifact)
        else:
            return None
    except unopened() as error:
        raise UnreadableInput(
            f"{artifact.name} is a damaged or encrypted archive: {error}", hint="unpack it by hand"
        ) from error
    if len(members) > MOST_MEMBERS:
        raise UnreadableInput(f"{artifact.name} holds {len(members):,} files", hint="unpack it by hand")
    return members


def _begins_as_tar(artifact: Artifact) -> bool:
    try:
        with artifact.open() as stream:
            return stream.read(_TAR_AT + len(_TAR))[_TAR_AT:] == _TAR
    except UnreadableInput:  # whoever reads it says so
        return False


def _in_zip(artifact: Artifact) -> list[Artifact]:
    import zipfile

    with artifact.raw() as stream, zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
    if sum(info.file_size for info in members) > current().unpacked_for(artifact.size_bytes):
        raise too_much(artifact.name, artifact.size_bytes)
    return [
        Artifact(f"{artifact.name}!{info.filename}", inside=artifact, member=place, member_bytes=info.file_size)
        for place, info in enumerate(members)
        if not info.is_dir()
    ]


def _in_tar(artifact: Artifact) -> list[Artifact]:
    if artifact.packed or artifact.inside is not None:
        with artifact.open() as stream:
            data = stream.read(MOST_HELD + 1)
        if len(data) > MOST_HELD:
            raise UnreadableInput(
                f"{artifact.name} unpacks to more than {MOST_HELD >> 30} GiB", hint="unpack it by hand"
            )
        artifact = replace(artifact, path=None, url=None, inside=None, content=data)
    import tarfile

    with artifact.raw() as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        files = [info for info in archive if info.isreg()]
    return [
        Artifact(f"{artifact.name}!{f.name}", inside=artifact, offset_bytes=f.offset_data, member_bytes=f.size)
        for f in files
    ]
