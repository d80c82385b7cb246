"""Play commands in a real pseudo-terminal, with a scripted model on loopback, and draw what the terminal shows.

A test compares the drawing with the recorded one; with `RECORD=1`, as in `make recordings`, it records it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shlex
import shutil
import struct
import sys
import tempfile
import termios
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from jackfield_testkit.forks import Forks, shared_forks
from jackfield_testkit.replies import DEFAULT_USAGE
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.web import WebAnswer, WebServer
from tests.support.environments import CORE, View
from tests.support.screen import Screen, draw, texts_of
from tests.support.scripts import reply_of
from tests.support.site import FakeSite

ASSETS = Path(__file__).resolve().parent.parent.parent / "docs/assets/terminal"
WIDTHS = {"": 80, "-narrow": 48}
"""By the end of a picture's name: the columns of a window on a desk, and of one that can be read on a telephone."""
PACKAGES = ("jackfield-manage", "jackfield-openai", "jackfield-shell")
"""Those that the doctor sees, beside one that is broken."""
PRICE = {
    "models": ["gpt-4.1-mini"],
    "currency": "USD",
    "valid_from": "2026-01-01",
    "input": "0.40",
    "output": "1.60",
}
PAGE = "http://127.0.0.1:40000/tides"
"""The address of a recording's page, as a drawing shows it."""
IMPORTS = CORE + "import jackfield_terminal.chat, jackfield_terminal.run, prompt_toolkit.shortcuts\n"
LIMIT_S = 90.0
_PROGRAM = "import sys; from jackfield.cli.main import main; sys.argv[0] = 'jackfield'; sys.exit(main())"
_TIME = re.compile(r"(?P<before>[(,]?)(?P<blanks> *)\b\d+\.\d(?P<unit> m?s\b)")
_PORT = re.compile(r"(127\.0\.0\.1):\d{5}\b")
_ISOLATION = re.compile(r"(isolation of \w+: \w+):.*?(?=\x1b)", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A command line and the answers typed at its prompts.

    Attributes:
        line: The words as a reader types them, `jackfield` first.
        typed: Pairs of a text to wait for in new output, and what is typed then.
    """

    line: str
    typed: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Recording:
    """Commands that are played one after the other on one screen.

    Attributes:
        title: Of the drawing.
        script: The model's answers, as `reply_of` reads them; `{page}` is the address of the page.
        page: A web page on loopback, as HTML.
        usage: Tokens of each answer; None for a few.
    """

    title: str
    commands: Sequence[Command]
    script: Sequence[str] = ()
    page: str = ""
    usage: Mapping[str, object] | None = None


@pytest.fixture(scope="session")
def player(tmp_path_factory: pytest.TempPathFactory) -> Player:
    """Plays recordings in the environment of the tests, which has all packages."""
    forks = shared_forks(IMPORTS)
    assert forks, "only Linux has what recordings need"
    return Player(forks, Path(sys.executable).parent, tmp_path_factory.mktemp("recordings"))


@pytest.fixture
def small_player(make_view: Callable[..., View], tmp_path_factory: pytest.TempPathFactory) -> Player:
    """Plays recordings in an environment with three packages of ours, and with one that is broken."""
    view = make_view(*PACKAGES)
    site = FakeSite(view.site)
    site.add("acme-tides", {"tool.tides": "acme_tides"}, modules={"acme_tides": "import acme_client\n"})
    forks = shared_forks(CORE, str(view.python))
    assert forks, "only Linux has what recordings need"
    return Player(forks, view.folder / "bin", tmp_path_factory.mktemp("recordings"))


def check(recording: Recording, player: Player, folder: Path, *, name: str, columns: int) -> None:
    """Compare the screen at a recording's end with its drawing, or draw it anew if `RECORD` is set."""
    screen = player.play(recording, folder, columns=columns)
    drawn, file = draw(screen, title=recording.title), ASSETS / f"{name}.svg"
    if os.environ.get("RECORD"):  # as `make recordings` says
        file.parent.mkdir(exist_ok=True)
        file.write_text(drawn, encoding="utf-8")
    recorded = file.read_text(encoding="utf-8") if file.exists() else ""
    assert texts_of(drawn) == texts_of(recorded), (
        "the output has changed: run `make recordings`, and look at the picture"
    )
    assert drawn == recorded, "the drawing has changed: run `make recordings`"


class Player:
    """Plays recordings in one environment, each with a new home, whose user has agreed to the packages.

    Args:
        forks: Runs programs of the environment.
        programs: A folder of programs that are first on the path.
        folder: For the home of that user.
    """

    def __init__(self, forks: Forks, programs: Path, folder: Path) -> None:
        self._forks = forks
        self._home = folder / "home"
        prices = self._home / ".config/jackfield/prices.json"
        prices.parent.mkdir(parents=True)
        prices.write_text(json.dumps([PRICE]), encoding="utf-8")  # the server on loopback has none
        self._env = {
            "PATH": os.pathsep.join([str(programs), "/usr/local/bin", "/usr/bin", "/bin"]),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "sk-recorded-0000000000",
        }
        self.run(Command("jackfield plugins list", [("etails", "Y\n")]), folder, self._home, columns=80)

    def play(self, recording: Recording, folder: Path, *, columns: int) -> Screen:
        """Play a recording in a folder; return the screen at its end.

        Raises:
            AssertionError: A command waits for other answers, or the model's script does not fit.
        """
        screen = Screen(columns)
        with FakeOpenAI() as server, WebServer() as web, tempfile.TemporaryDirectory() as parent:
            page = web.put("/tides", WebAnswer(recording.page.encode(), {"content-type": "text/html"}))
            for line in recording.script:
                server.reply(reply_of(line.replace("{page}", page), usage=recording.usage or DEFAULT_USAGE))
            home = shutil.copytree(self._home, Path(parent, "home"))
            for number, command in enumerate(recording.commands):
                if number:
                    screen.feed("\r\n")
                screen.feed(_prompt(command.line.replace("{page}", PAGE), columns))
                typed = replace(command, line=command.line.replace("{page}", page))
                output = self.run(typed, folder, home, columns=columns, OPENAI_BASE_URL=server.url)
                screen.feed(_without_chance(output))
            asked = len(server.requests)
        assert asked == len(recording.script), f"the model was asked {asked} times\n{screen.text()}"
        return screen

    def run(self, command: Command, folder: Path, home: Path, *, columns: int, **more: str) -> str:
        """Run a command in a terminal to its end; return its output."""
        ours, terminal = os.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 48, columns, 0, 0))
        words = shlex.split(command.line)[1:]
        env = {**self._env, "HOME": str(home), **more}
        with self._forks.start_on(terminal, _PROGRAM, *words, cwd=folder, env=env) as fork:
            os.close(terminal)
            output = _converse(ours, command.typed)
            os.close(ours)
            fork.wait()
        return output


def _converse(terminal: int, typed: Sequence[tuple[str, str]]) -> str:
    output, since = bytearray(), 0
    waiting = list(typed)
    ends = time.monotonic() + LIMIT_S
    while True:
        left = ends - time.monotonic()
        assert left > 0, f"it never ends: {output.decode(errors='replace')[-2000:]}"
        if not select.select([terminal], [], [], left)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        if not piece:
            break
        output += piece
        if waiting and waiting[0][0].encode() in output[since:]:
            since = len(output)
            os.write(terminal, waiting.pop(0)[1].encode())
    text = output.decode()
    assert not waiting, f"no {waiting[0][0]!r} in {text[-2000:]}"
    return text


def _prompt(line: str, columns: int) -> str:
    lines = textwrap.wrap(line, columns - 4, break_long_words=False, break_on_hyphens=False)
    return "\x1b[1m$ " + " \\\r\n    ".join(lines) + "\x1b[0m\r\n"


def _without_chance(output: str) -> str:
    """Replace times and ports, which differ from run to run, by some of the same width; in a sentence by short ones."""
    output = _TIME.sub(_usual_time, output)
    output = _ISOLATION.sub(r"\1", output)  # the limits that follow are those of the machine
    return _PORT.sub(r"\1:40000", output)


def _usual_time(found: re.Match[str]) -> str:
    time_ = f"0.4{found['unit']}"
    if found["before"]:  # as in `(12.3 s)`: more digits would move what follows
        return f"{found['before']}{found['blanks']}{time_}"
    return time_.rjust(len(found[0]))
