"""The local page keeps to this machine, this folder and its own token, and says clearly what it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.surfaces.web.folder import Folder
from stallwise.surfaces.web.server import LocalPage
from stallwise.surfaces.web.uploads import Uploads, safe_name
from tests.web.pages import ask, local_page

IMAGE = "<img src=x onerror=alert(1)>.json"
LOG = "\n".join(f"step {i} loss 2.5 step_time 0.{100 + i} data_time 0.09 <script>alert(3)</script>" for i in range(40))
CASE = 'gpu = "h100"\ngpus = 8\nmfu = "22%"\n[before]\nmfu = "48%"\n'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPage]:
    root = tmp_path_factory.mktemp("chosen")
    outside = tmp_path_factory.mktemp("elsewhere")
    (outside / "secret.log").write_text("password: hunter2", encoding="utf-8")
    (root / "case.toml").write_text(CASE, encoding="utf-8")
    (root / IMAGE).write_text('{"rows": "<script>alert(2)</script>"}', encoding="utf-8")
    (root / "link.log").symlink_to(outside / "secret.log")
    (root / "linked").symlink_to(outside, target_is_directory=True)
    with local_page(root, limit_bytes=60 << 20) as served:
        yield served


def test_it_listens_on_loopback_only(page: LocalPage) -> None:
    assert page.server_address[0] == "127.0.0.1"
    assert len(page.token) >= 32


@pytest.mark.parametrize("path", ["/", "/api/catalog", "/api/files", "/report/abc"])
@pytest.mark.parametrize("token", [None, "wrong", "x" * 5000])
def test_without_the_token_nothing_is_told(page: LocalPage, path: str, token: str | None) -> None:
    answer = ask(page, path, token=token)
    assert answer.status == 401
    assert "token" in answer.json["problem"]
    assert page.token not in answer.body.decode()


def test_a_post_needs_the_token_as_a_header(page: LocalPage) -> None:
    answer = ask(page, f"/api/diagnose?token={page.token}", {"paths": ["case.toml"]}, token=None)
    assert answer.status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"}, {"Host": "evil.example"}, {"Host": "127.0.0.1"},
    ],
    ids=str,
)  # fmt: skip
def test_another_origin_is_refused(page: LocalPage, headers: dict[str, str]) -> None:
    for body in (None, {}):
        answer = ask(page, "/api/catalog" if body is None else "/api/layout", body, **headers)
        assert answer.status == 403


def test_no_answer_may_be_read_by_others_or_sniffed(page: LocalPage) -> None:
    for path in ("/", "/api/catalog", "/nothing"):
        headers = ask(page, path).headers
        assert headers["Access-Control-Allow-Origin"] is None
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]


def test_links_that_lead_out_are_neither_listed_nor_read(page: LocalPage) -> None:
    listed = [f["path"] for f in ask(page, "/api/files").json["files"]]
    assert listed == sorted([IMAGE, "case.toml"])
    for asked in ("link.log", "linked/secret.log", "../elsewhere0/secret.log", "/etc/passwd", "linked", "a\0b", "~/x"):
        answer = ask(page, "/api/diagnose", {"paths": [asked]})
        assert answer.status == 422, asked
        assert "hunter2" not in answer.body.decode() and "root:" not in answer.body.decode()


def test_a_file_of_the_folder_becomes_a_report(page: LocalPage) -> None:
    answer = ask(page, "/api/diagnose", {"paths": ["case.toml"]})
    assert answer.status == 200 and answer.json["ranked"]
    report = ask(page, f"/report/{answer.json['report']}")
    assert report.status == 200
    assert "sandbox" in report.headers["Content-Security-Policy"]
    assert str(page.folder.root) not in report.body.decode()


WORDS = "all-reduce/all-gather takes 61 ms on 256 GPUs and 340 ms on 512, <b>nothing</b> else changed " * 4


@pytest.mark.parametrize(
    "body", [{"words": WORDS}, {"paths": [WORDS]}, {"paths": ["case.toml"], "words": "训练突然变慢了"}]
)
def test_words_are_answered_alone_and_beside_files(page: LocalPage, body: dict[str, object]) -> None:
    answer = ask(page, "/api/diagnose", body)
    assert answer.status == 200, answer.body
    html = ask(page, f"/report/{answer.json['report']}").body.decode()
    assert "<b>nothing" not in html
    assert ("all-reduce/all-gather" in html) == ("训练" not in str(body)), "the words as they were typed"


def test_neither_files_nor_words_is_refused(page: LocalPage) -> None:
    refused: list[dict[str, object]] = [{}, {"words": "  "}, {"paths": []}, {"words": 3}]
    for body in refused:
        assert ask(page, "/api/diagnose", body).status == 400


def test_a_file_named_like_markup_is_only_a_name(page: LocalPage) -> None:
    stored = ask(page, "/api/upload", LOG.encode(), X_Name="%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E.json")
    assert stored.json["name"] == IMAGE
    answer = ask(page, "/api/diagnose", {"bundle": stored.json["bundle"]})
    assert answer.status == 200
    html = ask(page, f"/report/{answer.json['report']}").body.decode()
    assert "<img" not in html and "<script>alert" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;.json" in html


def test_fifty_megabytes_of_nothing_get_a_clear_answer(page: LocalPage) -> None:
    stored = ask(page, "/api/upload", b"\x01\x02" * (25 << 20), X_Name="big.bin")
    assert stored.status == 200
    answer = ask(page, "/api/diagnose", {"bundle": stored.json["bundle"]})
    assert answer.status == 422
    assert "big.bin" in answer.json["problem"]


def test_an_upload_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with local_page(tmp_path, limit_bytes=1 << 20) as small:
        with socket.create_connection(("127.0.0.1", small.port), timeout=10) as raw:
            head = (
                f"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\nX-Stallwise-Token: {small.token}\r\n"
                "X-Name: big.json\r\nContent-Length: 52428800\r\n\r\n"
            )
            raw.sendall(head.encode())
            answer = raw.makefile("rb").read().decode()  # until the server closes
        assert answer.startswith("HTTP/1.1 413") and "limit" in answer
        assert not list(small.uploads.root.rglob("*.json"))


def test_many_small_uploads_cannot_pass_the_limit_together(tmp_path: Path) -> None:
    with local_page(tmp_path, limit_bytes=1000) as small:
        first = ask(small, "/api/upload", b"a" * 600, X_Name="a.log")
        second = ask(small, "/api/upload", b"a" * 600, X_Name="b.log", X_Bundle=first.json["bundle"])
        assert second.status == 413


def test_what_was_dropped_is_gone_when_the_page_closes(tmp_path: Path) -> None:
    with local_page(tmp_path) as served:
        ask(served, "/api/upload", b"step 1", X_Name="a.log")
        kept = served.uploads.root
        assert kept.stat().st_mode & 0o077 == 0
    assert not kept.exists()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/layout", b"not json"), ("/api/layout", b"[1]"), ("/api/layout", b"[" * 60000), ("/api/nothing", {}),
        ("/api/layout", {"model": "/etc/passwd"}), ("/api/layout", {"model": "../x"}), ("/api/layout", {"tp": "8"}),
        ("/api/layout", {"tp": -1}), ("/api/layout", {"gpus": 1e30}), ("/api/layout", {"tp": True}),
        ("/api/layout", {"seq": float("nan")}), ("/api/layout", {"tp": 7}), ("/api/serve", {"rate": 0}),
        ("/api/serve", {"gpu": "abacus"}), ("/api/serve", {"ttft": "soon"}), ("/api/pipeline", {"schedule": "x"}),
        ("/api/pipeline", {"stages": 64, "microbatches": 256}), ("/api/diagnose", {}), ("/api/diagnose", {"paths": "x"}),
        ("/api/diagnose", {"bundle": "../../etc"}), ("/api/search", {"model": "x" * 500}),
        ("/api/drill/start", {"name": 5}), ("/api/upload", b"x"),
    ],
    ids=str,
)  # fmt: skip
def test_nonsense_gets_a_sentence_never_a_bug(page: LocalPage, path: str, body: object) -> None:
    answer = ask(page, path, body)
    if path in ("/api/upload", "/api/drill/start") and answer.status == 200:
        return  # a file without a name is called "file"; drills may not be installed
    assert 400 <= answer.status < 500, answer.body
    assert answer.json["problem"]


def test_layouts_answer_with_time_interval_and_memory(page: LocalPage) -> None:
    found = ask(page, "/api/layout", {"model": "llama-3-70b", "gpus": 512, "tp": 8, "pp": 4}).json
    assert found["low_s"] < found["seconds"] < found["high_s"]
    assert found["dp"] == 16
    tighter = ask(
        page, "/api/layout", {"model": "llama-3-70b", "gpus": 512, "tp": 8, "pp": 4, "recompute": "full"}
    ).json
    assert tighter["memory_bytes"] < found["memory_bytes"]


def test_a_pipeline_picture_changes_with_its_microbatches(page: LocalPage) -> None:
    few, many = (ask(page, "/api/pipeline", {"stages": 4, "microbatches": m}).json for m in (4, 32))
    assert few["bubble_step_share"] > many["bubble_step_share"]
    assert few["svg"] != many["svg"]


def test_serving_options_come_with_a_curve(page: LocalPage) -> None:
    found = ask(page, "/api/serve", {"model": "llama-3.1-70b"}).json
    assert found["options"] and found["curve"]


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "stallwise", "ui", str(tmp_path), "--no-browser", "--json"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as running:
        assert running.stdout is not None
        url = json.loads(running.stdout.readline())["url"]
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert b"<title>stallwise</title>" in answer.read()
        running.send_signal(signal.SIGINT)
        try:
            assert running.wait(timeout=20) == 0
        finally:
            running.kill()  # a page that does not stop is a failure, not a test without an end


@given(st.text(max_size=300))
def test_an_uploaded_name_never_leads_anywhere(name: str) -> None:
    kept = safe_name(name)
    assert kept and "/" not in kept and "\\" not in kept and "\0" not in kept
    assert kept not in (".", "..") and not kept.startswith(".") and len(kept.encode()) <= 255


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b.log", "/", "\\", "~", "\0"]), max_size=9).map("/".join))
def test_a_file_of_a_picked_folder_stays_in_its_bundle(name: str) -> None:
    uploads = Uploads(1 << 20)
    try:
        bundle = uploads.new()
        for _ in range(2):
            uploads.put(bundle, name, BytesIO(b"x"), 1)
        assert len(uploads.files(bundle)) == 2
        assert all(Path(f).resolve().is_relative_to(uploads.bundle(bundle)) for f in uploads.files(bundle))
        assert {p.name for p in uploads.root.parent.glob(f"{uploads.root.name}/*")} == {bundle}
    finally:
        uploads.close()


@given(st.text(max_size=60))
def test_a_folder_never_gives_what_lies_outside(tmp_path_factory: pytest.TempPathFactory, asked: str) -> None:
    root = tmp_path_factory.getbasetemp() / "a-root"
    root.mkdir(exist_ok=True)
    folder = Folder(root)
    with suppress(BadRequest):
        assert folder.place(asked).is_relative_to(folder.root)


def test_a_path_too_long_to_exist_is_a_bad_request(tmp_path: Path) -> None:
    with pytest.raises(BadRequest):
        Folder(tmp_path).place("x" * 5000)
