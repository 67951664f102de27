"""Any mix of inputs becomes evidence; what cannot be read is said, and only nothing at all is an error."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.doctor import cache, engine_local
from stallwise.doctor.gather import artifacts_of, gather
from stallwise.doctor.reading import ReadingPlan
from stallwise.errors import BadRequest, MissingExtra, StallwiseError
from stallwise.evidence import limits
from stallwise.evidence.timeline import Timeline
from stallwise.surfaces.cli import main
from tests.readers.trace_files import document, step, write_trace


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    monkeypatch.setenv("STALLWISE_CACHE", str(folder))
    cache.cache_folder.cache_clear()
    return folder


def trace(path: Path, rank: int, steps: int = 3) -> Path:
    rows = [e for n in range(steps) for e in step(n, start_us=n * 250.0)]
    return write_trace(path, document(rows, distributedInfo={"rank": rank, "world_size": 4}))


def timelines(*paths: Path | str) -> list[Timeline]:
    return gather([str(p) for p in paths], keep_timelines=True).timelines


def test_files_folders_and_globs_are_found_once_and_in_natural_order(tmp_path: Path) -> None:
    for rank in (10, 2, 1):
        trace(tmp_path / f"rank-{rank}.json", rank)
    names = [Path(a.name).name for a in artifacts_of([str(tmp_path / "*1*.json"), str(tmp_path)])]
    assert names == ["rank-1.json", "rank-2.json", "rank-10.json"]


def test_the_order_of_the_question_does_not_change_the_answer(tmp_path: Path) -> None:
    paths = [str(trace(tmp_path / f"rank-{r}.json", r)) for r in (2, 0, 1)]
    assert gather(paths).inputs == gather(reversed(paths)).inputs


def test_members_of_a_zip_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "run.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(trace(tmp_path / "a.json.gz", 0), "deep/rank0.json.gz")
        archive.write(trace(tmp_path / "b.json", 1), "rank1.json")
    found = timelines(packed)
    assert sorted(t.scope.rank for t in found) == [0, 1]
    assert found[0].source.file.startswith(f"{packed}!")


PACKINGS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("pack", [pytest.param(pack, id=name) for name, pack in PACKINGS.items()])
def test_every_packing_is_opened_and_a_cut_one_gives_what_came_before(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    steps = [e for n in range(2000) for e in step(n, start_us=n * 250.0)]
    data = json.dumps(document(steps)).encode()
    (tmp_path / "whole.json").write_bytes(pack(data[: len(data) // 2]) + pack(data[len(data) // 2 :]))
    assert len(timelines(tmp_path / "whole.json")[0]) == len(steps)
    packed = pack(data)
    (tmp_path / "cut.json").write_bytes(packed[: len(packed) * 3 // 4])
    evidence = gather([str(tmp_path / "cut.json")], keep_timelines=True)
    assert 0 < sum(map(len, evidence.timelines)) < len(steps)
    assert any("cut off" in note.text for note in evidence.notes)


@pytest.mark.parametrize("mode", ["w:", "w:gz", "w:bz2", "w:xz"])
def test_files_of_a_tar_are_read(tmp_path: Path, mode: str) -> None:
    packed = tmp_path / "run"
    with tarfile.open(packed, mode) as archive:  # type: ignore[call-overload]
        archive.add(trace(tmp_path / "a.json.gz", 0), "deep/rank0.json.gz")
        archive.add(trace(tmp_path / "b.json", 1), "rank1.json")
    found = timelines(packed)
    assert sorted(t.scope.rank for t in found) == [0, 1]
    assert found[0].source.file.startswith(f"{packed}!")


def zips_inside_zips(depth: int) -> bytes:
    content, name = json.dumps(document(step())).encode(), "trace.json"
    for level in range(depth):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(name, content)
        content, name = buffer.getvalue(), f"level{level}.zip"
    return content


def test_a_zip_in_a_zip_is_opened_but_not_without_end(tmp_path: Path) -> None:
    (tmp_path / "two.zip").write_bytes(zips_inside_zips(2))
    assert len(timelines(tmp_path / "two.zip")) == 1
    (tmp_path / "ten.zip").write_bytes(zips_inside_zips(10))
    with pytest.raises(StallwiseError, match="an archive inside 3 archives"):
        timelines(tmp_path / "ten.zip")
    assert len(timelines(tmp_path)) == 1, "a good file beside it still counts"


def test_a_member_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST_UNPACKED_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", b" " * 200_000)
    with pytest.raises(StallwiseError, match="unpacks to more than"):
        artifacts_of([str(tmp_path / "bomb.zip")])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.json", b"", "empty (0 bytes)"),
        ("noise.dat", bytes(range(256)) * 8, "binary (2,048 bytes)"),
        ("blank.txt", b" \n\t\n", "blank (4 bytes)"),
        ("compiled.log", b"\x7fELF" + bytes(200), "binary (204 bytes)"),
        ("packed.txt", bytes((7 * n * n + 13 * n) % 251 for n in range(5000)), "binary (5,000 bytes)"),
        ("cut.json", json.dumps(document(step())).encode()[:60], "found no event with a time"),
        ("cut.json.gz", b"\x1f\x8b\x08\x00", "damaged"),
        ("damaged.zip", b"PK\x03\x04 nothing follows", "damaged or encrypted archive"),
        ("ten.zip", zips_inside_zips(10), "archive inside 3 archives"),
    ],
)
def test_bad_input_says_what_it_was_and_what_to_do_and_exits_with_3(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(StallwiseError) as caught:
        gather([str(path)])
    assert said in caught.value.problem
    assert name in caught.value.problem
    assert caught.value.hint
    assert caught.value.exit_code == 3
    result = CliRunner().invoke(main, ["diagnose", str(path)])
    assert isinstance(result.exception, StallwiseError), "the console script turns these into exit code 3"


def test_an_empty_folder_and_a_missing_path_are_named(tmp_path: Path) -> None:
    for path, code in ((tmp_path, 3), (tmp_path / "nowhere", 2)):
        with pytest.raises(StallwiseError, match=str(path)) as caught:
            gather([str(path)])
        assert caught.value.exit_code == code


def test_one_corrupt_file_among_many_is_a_note(tmp_path: Path) -> None:
    for rank in range(12):
        trace(tmp_path / f"rank-{rank}.json", rank)
    (tmp_path / "rank-5.json").write_bytes(b'{"schemaVersion": 1, "traceEvents": [{"ph"')
    evidence = gather([str(tmp_path)])
    assert len(evidence.inputs) == 11
    assert [Path(n.source.file).name for n in evidence.notes] == ["rank-5.json"]


def test_files_behind_a_url_are_read_through_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    content = json.dumps(document(step(), distributedInfo={"rank": 3})).encode()
    memory.pipe({"/run/rank3.json": content, "/run/notes.png": b"x"})
    for url in ("memory://run", "memory://run/rank3.json", "memory://run/*.json"):
        assert [t.scope.rank for t in timelines(url)] == [3]
    with pytest.raises(StallwiseError, match="memory://run/absent"):
        gather(["memory://run/absent.json"])


def test_a_url_without_fsspec_says_which_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingExtra, match="fsspec"):
        gather(["s3://bucket/run"])


def test_an_unknown_engine_is_a_bad_request(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="no engine 'warp'"):
        gather([str(trace(tmp_path / "a.json", 0))], engine="warp")


def comparable(evidence) -> tuple:
    facts = {k: [(f.value, f.scope, f.samples, str(f.source)) for f in v] for k, v in evidence.facts.items()}
    tables = [(t.kind, t.scope, {k: c.tolist() for k, c in t.columns.items()}) for t in evidence.tables]
    return evidence.inputs, evidence.formats, repr(facts), repr(tables), [repr(n) for n in evidence.notes]


def test_a_pool_gives_exactly_what_one_process_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(6):
        trace(tmp_path / f"rank-{rank}.json.gz", rank)
    (tmp_path / "rank-3.json.gz").write_bytes(b"\x1f\x8b")
    alone = gather([str(tmp_path)], workers=1, cache=False)
    monkeypatch.setattr(engine_local, "WORTH_A_POOL_BYTES", 0)
    assert comparable(gather([str(tmp_path)], workers=2, cache=False)) == comparable(alone)


def test_a_worker_that_dies_costs_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    broken: Future = Future()
    broken.set_exception(BrokenProcessPool())
    artifact = artifacts_of([str(trace(tmp_path / "a.json", 0))])[0]
    assert [r.formats for r in engine_local._result([artifact], broken, ReadingPlan(cache=False))] == [
        ["PyTorch trace"]
    ]


def test_a_second_look_comes_from_the_cache(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "WORTH_KEEPING_BYTES", 0)
    path = trace(tmp_path / "rank-0.json", 0)
    first = gather([str(path)])
    assert len(list(own_cache.iterdir())) == 1
    with monkeypatch.context() as patch:
        patch.setattr("stallwise.doctor.reading.read_artifact", lambda *a, **k: pytest.fail("read again"))
        assert comparable(gather([str(path)])) == comparable(first)
    trace(path, 0, steps=4)
    gather([str(path)])
    assert len(list(own_cache.iterdir())) == 2, "other content, other entry"


def test_the_cache_can_be_switched_off_and_stays_small(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "WORTH_KEEPING_BYTES", 0)
    path = trace(tmp_path / "rank-0.json", 0)
    gather([str(path)], cache=False)
    assert not list(own_cache.iterdir())
    monkeypatch.setattr(cache, "MAX_CACHE_BYTES", 1)
    gather([str(path)])
    assert not list(own_cache.iterdir())


def test_a_damaged_or_foreign_cache_entry_is_ignored(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "WORTH_KEEPING_BYTES", 0)
    path = trace(tmp_path / "rank-0.json", 0)
    first = gather([str(path)])
    (entry,) = own_cache.iterdir()
    for planted in (b"", b"junk", b"cos\nsystem\n(S'exit 1'\ntR."):
        entry.write_bytes(planted)
        assert comparable(gather([str(path)])) == comparable(first)


def test_a_cache_folder_that_others_can_write_to_is_not_used(own_cache: Path) -> None:
    own_cache.chmod(0o777)
    cache.cache_folder.cache_clear()
    assert cache.cache_folder() is None
