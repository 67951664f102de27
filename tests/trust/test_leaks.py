"""Nothing of the user's reaches strangers or commands the terminal, and the cache can do nothing but hold data."""

from __future__ import annotations

import http.server
import os
import pickle
import socketserver
import threading
from pathlib import Path

import pytest

from stallwise.doctor import cache, scraping
from stallwise.doctor.cache_format import decoded, encoded
from stallwise.doctor.examine import diagnose
from stallwise.doctor.reading import Reading, read_artifact
from stallwise.errors import StallwiseError, UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.render import strict_json
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.redact import _Clean, _Names, shareable
from stallwise.render.text import to_text
from stallwise.render.visible import visible
from tests.trust.inputs import GOOD_LOG, TRAIN_LOG, here

SECRETS = (
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456", "AKIAIOSFODNN7EXAMPLE", "0123456789abcdef0123456789abcdef01234567",
    "fd00::17:2", "acme-secret-70b", "SecretAttentionLayer", "secret_trainer.py", "gpu-prod-a17", "alice.smith",
)  # fmt: skip
LOG = f"""[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/alice.smith/projectx/secret_trainer.py", line 12, in forward
[rank0]:     x = SecretAttentionLayer(token="{SECRETS[0]}", key={SECRETS[1]})
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.1 GiB \
of which 1.0 MiB is free. on gpu-prod-a17 WANDB_API_KEY={SECRETS[2]}
gpu-prod-a17:7300:7300 [0] NCCL INFO NET/Socket : Using [0]eth0:10.20.30.40<0> [1]eth1:fd00::17:2<0>
gpu-prod-a17:7300:7390 [0] NCCL WARN Call to connect to fd00::17:2<1234> failed : Connection refused
[rank0]: RuntimeError: shape mismatch in SecretAttentionLayer of acme-secret-70b
"""
METRICS = "".join(
    f'vllm:{n}{{model_name="acme-secret-70b"}} {v}\n'
    for n, v in (("num_requests_running", 200), ("num_requests_waiting", 500), ("num_preemptions_total", 400))
)


@pytest.fixture(autouse=True)
def as_users_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLWISE_CACHE", "off")
    monkeypatch.delenv("STALLWISE_DEBUG", raising=False)


def test_a_shared_report_holds_no_key_code_address_or_model(tmp_path: Path) -> None:
    (tmp_path / "gpu-prod-a17.log").write_text(LOG)
    (tmp_path / "metrics.txt").write_text(METRICS)
    found = shareable(diagnose(str(tmp_path)))
    for text in (to_text(found), strict_json.dumps(to_dict(found)), to_html(found)):
        assert [s for s in SECRETS if s in text] == []
        assert "NCCL" in text  # the answer is still there


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef0123456789",
        "password='hunter2hunter2'",
        "OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstu1234",
        "token ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def",
    ],
)
def test_keys_of_every_kind_are_replaced(text: str) -> None:
    told = _Clean(_Names())(text)
    assert "secret-1" in told
    assert text.split("=")[-1].split()[-1].strip("'") not in told


@pytest.mark.parametrize(
    "text",
    [
        "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_64x3_nn takes 12 ms",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "12,345 tokens per second, max_new_tokens=512, token: 17",
        "the DataLoader waits; NCCL's ALLREDUCE over NVLink at 12:30:45",
        "torch.OutOfMemoryError on llama-3.1-70b",
    ],
)
def test_what_is_public_stays(text: str) -> None:
    assert _Clean(_Names())(text) == text


def test_a_word_without_end_is_shared_at_once() -> None:
    import time

    began = time.process_time()
    _Clean(_Names())("a" * 300_000 + " " + "9." * 100_000 + " " + "/a" * 900)
    assert time.process_time() - began < 5


def test_what_would_command_a_terminal_is_shown_instead(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;pwned\x07\x9b31m\u202e"
    (tmp_path / "a.log").write_text(GOOD_LOG.replace("CUDA out", f"{evil} CUDA out") + f"ERROR {evil} happened\n")
    for text in (to_text(diagnose(str(tmp_path / "a.log"))), to_text(diagnose(str(tmp_path / "a.log")), color=True)):
        assert "\x1b[2J" not in text and "\x1b]" not in text and "\x07" not in text and "\x9b" not in text
    assert visible("a\x1b[2Jb") == "a\\x1b[2Jb"
    ran = here("diagnose", str(tmp_path / f"no{evil}.log"))
    assert ran.returncode == 2 and "\x1b" not in ran.stderr
    odd = os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff\xfe.log")
    Path(odd).write_text(GOOD_LOG)
    for how in ((), ("--json",)):
        ran = here("diagnose", odd, *how)
        assert ran.returncode == 0, ran.stderr


def test_json_is_json_by_the_book() -> None:
    text = strict_json.dumps(
        {"a": float("nan"), "b": [float("-inf"), 1.5], "c": "\x9b\u2028\ud800"}, ensure_ascii=False
    )
    assert text == '{"a": null, "b": [null, 1.5], "c": "\\u009b\\u2028\\ud800"}'


class Touch:
    """What unpickling it would do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


def test_an_entry_of_the_cache_can_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("STALLWISE_CACHE", str(folder))
    monkeypatch.setattr(cache, "WORTH_KEEPING_BYTES", 0)
    cache.cache_folder.cache_clear()
    try:
        log = tmp_path / "run.log"
        log.write_text(TRAIN_LOG)
        fresh = strict_json.dumps(to_dict(diagnose(str(log))))
        (entry,) = folder.iterdir()
        assert strict_json.dumps(to_dict(diagnose(str(log)))) == fresh
        name = b"stallwise.physics.specs.hardware"
        dotted = b"\x80\x04\x8c" + bytes([len(name)]) + name + b"\x8c\x09os.system\x93\x8c\x0ctouch /dev/x\x85R."
        for poison in (pickle.dumps(Touch(tmp_path / "ran")), dotted, b"", b"\xff" * 100, b"\x91" * 100_000):
            entry.write_bytes(poison)
            assert strict_json.dumps(to_dict(diagnose(str(log)))) == fresh
        assert not (tmp_path / "ran").exists()
    finally:
        cache.cache_folder.cache_clear()


@pytest.mark.parametrize("path", sorted(Path("examples/traces").glob("*/*"))[:6], ids=lambda p: p.name)
def test_what_the_cache_holds_is_what_was_read(path: Path) -> None:
    formats, items = read_artifact(Artifact(str(path), path))
    data = encoded(Reading(str(path), formats, items))
    assert encoded(decoded(data)) == data
    assert [type(i) for i in decoded(data).items] == [type(i) for i in items]


class Odd(http.server.BaseHTTPRequestHandler):
    """A server that keeps to no protocol."""

    def do_GET(self) -> None:
        answers = {
            "/status": b"HELLO WORLD\r\n\r\n",
            "/long": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
            "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nvllm:num_requests_running 1\n",
            "/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nabc\r\n",
            "/ftp": b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n",
            "/file": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
        }
        if self.path == "/drip":
            import time

            for letter in b"HTTP/1.1 200 OK" * 20:
                self.wfile.write(bytes([letter]))
                self.wfile.flush()
                time.sleep(0.2)
            return
        self.wfile.write(answers.get(self.path, b""))
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_servers_that_keep_to_no_protocol_are_a_sentence() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Odd) as odd:
        odd.daemon_threads = True
        thread = threading.Thread(target=odd.serve_forever, daemon=True)
        thread.start()
        root = f"http://127.0.0.1:{odd.server_address[1]}"
        for path in ("/status", "/long", "/short", "/chunk", "/ftp", "/file", "/drip", "/nothing"):
            with pytest.raises(UnreadableInput):
                scraping.fetch_page(root + path, 1.0)
        odd.shutdown()
    for url in ("http://127.0.0.1:x/", "http://a b/", "http://[::1", "http://127.0.0.1:99999/"):
        with pytest.raises(StallwiseError):
            scraping.fetch_page(url, 1.0)


def test_a_model_named_in_a_log_opens_no_file(tmp_path: Path) -> None:
    from stallwise.physics.specs.models import known_model

    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "config.json").write_text('{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2}')
    for name in (str(secret), str(secret / "config.json"), "x" * 5000, "a\0b", "../../secret"):
        with pytest.raises(StallwiseError):
            known_model(name)
    from stallwise.doctor.measures import _serving_point, _stated_model

    assert not hasattr(_serving_point, "find_model") and not hasattr(_stated_model, "find_model")
