"""Code holds its kernel's key and can send what it likes: it does not harm the host, hang it, or answer later calls."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Make = Callable[..., Any]

# `say(kind, content, parent)` sends a signed message of the kernel, `raw(parts)` anything.
FORGE = """
import os, time, json
from ipykernel.kernelapp import IPKernelApp
app = IPKernelApp.instance()
session, iopub = app.kernel.session, app.iopub_thread
parent = app.kernel.get_parent("shell")
def raw(parts):
    iopub.schedule(lambda: iopub.socket.send_multipart(parts))
def say(kind, content, parent=parent):
    message = session.msg(kind, content, parent=parent)
    raw(session.serialize(message))
def reply(content, parent=parent):
    message = session.msg("execute_reply", content, parent=parent)
    ident = app.kernel._parent_ident["shell"] if hasattr(app.kernel, "_parent_ident") else b""
    app.kernel.shell_stream.send_multipart([*ident, *session.serialize(message)])
"""


@pytest.fixture(scope="module")
def forger(interpreter: Any) -> Any:
    interpreter.run(FORGE.replace('parent = app.kernel.get_parent("shell")', "parent = None"))
    return interpreter


def forge(forger: Any, code: str) -> Any:
    return forger.run(FORGE + code)


@pytest.mark.parametrize("pause_s", [0.3, 1.5])
def test_an_idle_the_code_forged_does_not_end_the_call(forger: Any, pause_s: float) -> None:
    said = forge(forger, f'say("status", {{"execution_state": "idle"}})\ntime.sleep({pause_s})\nprint("the real end")')
    assert said.stdout == "the real end"
    assert said.metadata["state"] == "kept"


NOT_MESSAGES = """
signed = session.serialize(session.msg("stream", {"name": "stdout", "text": "x"}, parent=parent))
nested = b"[" * 200_000 + b"]" * 200_000
def sign(*parts):
    return [b"<IDS|MSG>", session.sign(list(parts)), *parts]
header = json.dumps(session.msg_header("stream"), default=str).encode()
mine = json.dumps(parent["header"], default=str).encode()
for parts in (
    [b""], [b"a", b"b"], [b"<IDS|MSG>"], [b"<IDS|MSG>", b"", b"{}", b"{}", b"{}", b"{}"],
    [b"<IDS|MSG>", b"bad", b"{}", b"{}", b"{}", b"{}"], signed, signed, [b"x"] * 5000,
    sign(b"{}", b"{}", b"{}", b"{}"), sign(b"[]", b"[]", b"[]", b"[]"), sign(b"1", b"2", b"3", b"4"),
    sign(b"\\xff", b"{}", b"{}", b"{}"), sign(header, mine, b"{}", b"[1]"), sign(header, mine, b"{}", nested),
    sign(b'{"msg_type": 7, "msg_id": []}', mine, b"{}", b"{}"), sign(header, b'"text"', b"{}", b"{}"),
    sign(b'{"msg_type": "status", "version": "x.y", "msg_id": "1"}', mine, b"{}", b'{"execution_state": []}'),
    sign(header, mine, b"{}", b'{"name": [], "text": {}}'),
):
    raw(parts)
for kind in ("input_request", "comm_open", "comm_msg", "shutdown_reply", "clear_output", "status", "error", "what"):
    say(kind, {"execution_state": ["idle"], "prompt": 3, "comm_id": "1", "restart": True, "traceback": [1, None]})
print("end")
"""


def test_what_has_no_form_is_passed_over(forger: Any) -> None:
    assert forge(forger, NOT_MESSAGES).text.rstrip("`\n").endswith("end")
    assert forger.run("print(6 * 7)").stdout == "42"


AHEAD = """
import threading
before, _, number = parent["header"]["msg_id"].rpartition("_")
def send_ahead():
    later = {"header": {**parent["header"], "msg_id": f"{before}_{int(number, 16) + 1}"}}
    say("stream", {"name": "stdout", "text": "FORGED"}, later)
    reply({"status": "ok"}, later)
    say("status", {"execution_state": "idle"}, later)
    open(SENT, "w").close()
threading.Timer(0.5, send_ahead).start()  # when this call is over: what comes during it is passed over
"""


def test_nothing_can_be_sent_ahead_for_the_next_call(
    forger: Any, tmp_path: Path, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    forge(forger, f"SENT = {str(tmp_path / 'sent')!r}\n{AHEAD}")
    wait_until((tmp_path / "sent").exists)
    assert forger.run("print(6 * 7)").stdout == "42"


@pytest.mark.slow
def test_a_flood_of_empty_messages_is_stopped(make_interpreter: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_code_interpreter.session._FLOOD_BYTES", 4_000_000)
    one = make_interpreter(timeout=600)
    assert "The code printed too much." in one.run(FORGE + FLOOD).text


FLOOD = """
import threading
done = session.serialize(session.msg("status", {"execution_state": "busy"}, parent=parent))
ready = threading.Event()
while True:
    ready.clear()
    iopub.schedule(lambda: ([iopub.socket.send_multipart(done) for _ in range(500)], ready.set()))
    ready.wait(5)
"""

DISPLAY_FLOOD = """
import base64
from IPython.display import display
head = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55")
rest = bytes.fromhex("0000000a49444154789c636000000002000148afa4710000000049454e44ae426082")
picture = base64.b64encode(head + (3_000_000).to_bytes(4, "big") + b"tEXt" + bytes(3_000_004) + rest).decode()
for _ in range(COUNT):
    display({"image/png": picture, "text/plain": "<A>"}, raw=True)
"""


@pytest.mark.slow
def test_images_in_a_loop_stay_within_the_memory_of_the_host(make_interpreter: Make) -> None:
    one = make_interpreter(timeout=120)
    one.run("1")
    most = _Watched()
    with most:
        shown = one.run(f"COUNT = 500\n{DISPLAY_FLOOD}")
    assert sum(map(len, shown.images)) < 25_000_000
    assert len(shown.images) <= 8
    assert most.grown_mb < 700, f"the host grew by {most.grown_mb} MB for 2000 MB of images"
    assert one.run("print(6 * 7)").stdout == "42"


class _Watched:
    """By how much this process grows, at its largest."""

    grown_mb = 0

    def __enter__(self) -> None:
        self._before = self._mb()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.grown_mb = max(self.grown_mb, self._mb() - self._before)

    def _mb(self) -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


@pytest.mark.parametrize(
    "code",
    [
        "import os, shutil; shutil.rmtree(os.path.dirname(os.getcwd()))",
        "import os; d = os.path.dirname(os.getcwd()); os.rename(d, d + '-moved'); open(d, 'w').close()",
        "import os, pathlib\nfor name in ('k1', 'k2', 'k3', 'home2'):\n    os.makedirs('../' + name, exist_ok=True)",
    ],
    ids=["removed", "replaced by a file", "names taken"],
)
def test_a_folder_the_code_took_away_is_an_error_that_is_told_or_made_again(make_interpreter: Make, code: str) -> None:
    from jackfield.errors import ToolServiceError

    one = make_interpreter()
    one.run(code)
    one.run("import os; os._exit(1)")
    try:
        assert one.run("print(6 * 7)").stdout == "42"
    except ToolServiceError as error:
        assert "can no longer be used" in str(error)  # noqa: PT017 - either is right
    folder = one.tool._own._holdings.folder
    one.close()
    folder.unlink(missing_ok=True)
    shutil.rmtree(f"{folder}-moved", ignore_errors=True)


def test_folders_in_folders_without_end_are_removed(make_interpreter: Make) -> None:
    one = make_interpreter()
    code = "import os\nhere = os.getcwd()\nfor _ in range(1200):\n    os.mkdir('d'); os.chdir('d')\nos.chdir(here)"
    one.run(code)
    folder = one.tool._own._holdings.folder
    one.close()
    assert not folder.exists()
