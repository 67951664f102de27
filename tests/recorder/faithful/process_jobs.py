"""How processes live and end: codes, signals, descriptors, folders, children, output. No PyTorch: these are quick."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time


def steps(count: int = 5) -> None:
    """A few recorded steps where the API is on; nothing otherwise."""
    import stallwise

    for _ in range(count):
        with stallwise.span("work"):
            time.sleep(0.001)
        stallwise.step()


def returns() -> None:
    steps()
    print("done")


def exits_with_3() -> None:
    steps()
    sys.exit(3)


def exits_with_words() -> None:
    steps()
    sys.exit("the data is missing")


def raises() -> None:
    steps()
    raise RuntimeError("boom")


def raises_interrupt() -> None:
    steps()
    raise KeyboardInterrupt


def raises_in_a_thread() -> None:
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    steps()


def leaves_at_once() -> None:
    steps()
    sys.stdout.write("said\n")
    sys.stdout.flush()
    os._exit(7)


def _dies_of(number: int) -> None:
    steps()
    print("last words", flush=True)
    os.kill(os.getpid(), number)
    time.sleep(5)


def killed() -> None:
    _dies_of(signal.SIGKILL)


def terminated() -> None:
    _dies_of(signal.SIGTERM)


def interrupted() -> None:
    _dies_of(signal.SIGINT)


def hung_up() -> None:
    _dies_of(signal.SIGHUP)


def user_signal() -> None:
    _dies_of(signal.SIGUSR1)


def aborts() -> None:
    steps()
    os.abort()


def segfaults() -> None:
    steps()
    print("before", flush=True)
    faulthandler._sigsegv()


def floating_point_exception() -> None:
    _dies_of(signal.SIGFPE)


def code_137() -> None:
    steps()
    sys.exit(137)


def recursion() -> None:
    def deeper(n: int) -> int:
        return deeper(n + 1)

    steps()
    deeper(0)


def memory_error() -> None:
    steps()
    print(len(bytearray(1 << 62)))


def output_closed() -> None:
    steps()
    os.close(1)
    os.close(2)
    sys.exit(4)


def descriptors_closed() -> None:
    steps()
    time.sleep(0.7)
    os.closerange(3, 256)
    with open("checkpoint.bin", "wb") as file:
        steps()
        time.sleep(0.7)
        file.write(b"MODEL")
    with open("checkpoint.bin", "rb") as file:
        print(file.read())


def descriptors_listed() -> None:
    steps()
    fresh = os.open(os.devnull, os.O_RDONLY)
    print(sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) < fresh), os.get_inheritable(1))


def folder_removed() -> None:
    os.makedirs("away", exist_ok=True)
    os.chdir("away")
    os.rmdir(os.path.join(os.path.dirname(os.getcwd()), "away"))
    steps()
    print("still here")


def folder_changed() -> None:
    steps(1)
    os.makedirs("elsewhere", exist_ok=True)
    os.chdir("elsewhere")
    steps()
    print(os.listdir("."))


def both_streams_in_order() -> None:
    for n in range(20):
        print("out", n, flush=True)
        print("err", n, file=sys.stderr, flush=True)


def long_output() -> None:
    for _ in range(64):
        sys.stdout.write("a" * (1 << 18) + "\n")
    sys.stdout.flush()
    sys.stderr.write("RuntimeError: the very last words\n")
    sys.exit(1)


def binary_output() -> None:
    sys.stdout.buffer.write(bytes(range(256)) * 16)


def output_without_end_of_line() -> None:
    sys.stdout.write("no newline")
    sys.stderr.write("none here")


def reads_input() -> None:
    print(sys.stdin.read().upper())


def child_outlives() -> None:
    code = "import time\nfor i in range(4): time.sleep(0.2); print('helper', i, flush=True)\nopen('helper_done', 'w').write('1')"
    subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
    print("job done", flush=True)


def grandchildren() -> None:
    out = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv); sys.exit(9)", "a b"], capture_output=True)
    print(out.returncode, out.stdout, out.stderr)


def forks() -> None:
    steps()
    child = os.fork()
    if child == 0:
        steps()
        os._exit(6)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def forks_and_both_return() -> None:
    steps()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("parent", flush=True)
    else:
        print("child", flush=True)


def exit_handlers() -> None:
    import atexit

    atexit.register(print, "handler ran")
    steps()


def exit_handler_raises() -> None:
    import atexit

    atexit.register(lambda: 1 / 0)
    steps()


def import_path() -> None:
    print([p for p in sys.path if "stallwise/recorder" in p], sys.argv[1:], __name__, __file__ == sys.argv[0])


def user_site() -> None:
    import sitecustomize

    print(sitecustomize.MARK)


def odd_values() -> None:
    import stallwise

    stallwise.gauge("x", 10**400)
    stallwise.gauge("y", float("nan"))
    stallwise.gauge(("z",), True)
    with stallwise.span(["a"]):
        pass
    stallwise.mark(None, object())
    steps()
    print("survived")


def no_more_threads() -> None:
    def no(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    threading.Thread.start = no
    steps()
    print("survived")


def signals_masked() -> None:
    print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), signal.getsignal(signal.SIGINT).__name__)
    print([signal.getsignal(s).name for s in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGPIPE)])


def fault_handler() -> None:
    print(faulthandler.is_enabled(), sys.excepthook is sys.__excepthook__, threading.excepthook.__name__)


def collector_callbacks() -> None:
    import gc

    steps()
    print(gc.isenabled(), gc.get_threshold())


def environment() -> None:
    announced = ("STALLWISE", "PYTHONPATH", "NCCL_", "TORCH_", "RECORD_INTO", "COLUMNS", "LINES")
    print(sorted(k for k in os.environ if not k.startswith(announced)))


def module_run() -> None:
    out = subprocess.run([sys.executable, "-m", "this"], capture_output=True)
    print(out.returncode, len(out.stdout), out.stderr)


def isolated_python() -> None:
    out = subprocess.run([sys.executable, "-I", "-c", "print('alone')"], capture_output=True)
    print(out.returncode, out.stdout, out.stderr)


if __name__ == "__main__":
    if os.environ.get("RECORD_INTO"):
        import stallwise

        stallwise.start(os.environ["RECORD_INTO"])
    globals()[sys.argv[1]]()
