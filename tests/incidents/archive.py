"""The artifacts of the recorded incidents: one archive beside its checksum, unpacked once and read through `unpacked()`.

The rows of `<set>/index.jsonl` name a folder each: `unpacked() / set / id`. To add or change cases, edit a copy and pack it:

    python -m tests.incidents.archive --copy FOLDER
    python -m tests.incidents.archive --pack FOLDER
"""

from __future__ import annotations

import argparse
import io
import shutil
import tarfile
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
ARCHIVE = HERE / "artifacts.tar.xz"
CHECKSUM = HERE / "artifacts.sha256"
KEPT_IN = HERE.parents[1] / ".venv"  # where there is one: made with the tests, cleaned with them


@cache
def unpacked() -> Path:
    """The folder with a folder for each set; unpacked anew where the archive is another one."""
    data = ARCHIVE.read_bytes()
    digest = sha256(data).hexdigest()
    assert digest == CHECKSUM.read_text(encoding="utf-8").split()[0], "the archive is not the one that was packed"
    place = (KEPT_IN if KEPT_IN.is_dir() else Path(tempfile.gettempdir())) / f"stallwise-incidents-{digest[:16]}"
    if not place.is_dir():
        beside = Path(tempfile.mkdtemp(dir=place.parent))
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(beside, filter="data")
        try:
            beside.rename(place)
        except OSError:  # another process was first
            shutil.rmtree(beside)
    return place


def pack(folder: Path) -> int:
    """Writes archive and checksum; the same files give the same bytes."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path in files:
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            archive.addfile(entry, io.BytesIO(path.read_bytes()))
    CHECKSUM.write_text(f"{sha256(ARCHIVE.read_bytes()).hexdigest()}  {ARCHIVE.name}\n", encoding="utf-8")
    return len(files)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copy", type=Path)
    parser.add_argument("--pack", type=Path)
    asked = parser.parse_args()
    if asked.copy:
        shutil.copytree(unpacked(), asked.copy)
    if asked.pack:
        print(f"{pack(asked.pack)} files")
