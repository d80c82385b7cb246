"""Options of `jackfield run` that shape the request: model options, schemas, templates and fragments."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jackfield.cli.main import main
from jackfield_testkit.server import FakeOpenAI, text, tool_call

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-Zq83bXw4Rk2LpV7Tn")
        yield server


@pytest.fixture
def jackfield(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], server: FakeOpenAI
) -> Run:
    """Runs `jackfield run` with a scripted server; gives its exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    def run(*arguments: str, command: str = "run") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        code = main([command, "-m", "openai:m", "--base-url", server.url, "--no-record", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def request(server: FakeOpenAI) -> dict[str, Any]:
    body = server.requests[-1].json
    assert isinstance(body, dict)
    return body


def messages(server: FakeOpenAI) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in request(server)["messages"]]


# --- options of the model ---------------------------------------------------------------------------------------------


def test_options_of_the_model_are_sent_and_override_the_agent_file(
    jackfield: Run, server: FakeOpenAI, tmp_path: Path
) -> None:
    server.reply(text("Hi."))
    (tmp_path / "agent.json").write_text(json.dumps({"extra_generate_cfg": {"temperature": 1, "seed": 5}}))
    options = ("-o", "temperature=0", "-o", "max_tokens=7", "-o", "stop=END", "-o", 'extra_body={"mood": "good"}')
    assert jackfield("-C", "agent.json", *options, "Hello")[0] == 0
    sent = request(server)
    assert [sent[name] for name in ("temperature", "seed", "stop", "mood")] == [0, 5, ["END"], "good"]
    assert 7 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("temprature=0", "-o: unknown setting 'temprature'; did you mean 'temperature'?"),
        ("temperature", "expected NAME=VALUE, such as -o temperature=0, got 'temperature'"),
        ("temperature=hot", "-o: temperature must be a number, got a string"),
    ],
)
def test_a_wrong_option_is_an_error_before_anything_is_sent(
    jackfield: Run, server: FakeOpenAI, option: str, message: str
) -> None:
    code, _, err = jackfield("-o", option, "Hello")
    assert (code, message in err, server.requests) == (1, True, []), err


# --- schemas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--json",), ("--plain", "-q")])
def test_an_answer_with_a_schema_is_json_on_standard_output(
    jackfield: Run, server: FakeOpenAI, more: tuple[str, ...]
) -> None:
    server.reply(text('Here: {"name": "Zugspitze", "height": "high"}'), text('{"name": "Zugspitze", "height": 2962}'))
    code, out, err = jackfield("--schema", "name str, height int", *more, "The highest mountain?")
    assert code == 0, err
    printed = json.loads(out)
    assert (printed["output"] if "--json" in more else printed) == {"name": "Zugspitze", "height": 2962}
    assert len(server.requests) == 2, "an answer that does not fit is sent back"


def test_without_a_fitting_answer_nothing_is_printed_as_data(jackfield: Run, server: FakeOpenAI) -> None:
    server.reply(*[text("no JSON at all")] * 3)
    code, out, err = jackfield("--schema", "name", "The highest mountain?")
    assert (code, out) == (1, "")
    assert "no valid answer" in err


def test_a_list_is_printed_as_a_list(jackfield: Run, server: FakeOpenAI) -> None:
    server.reply(text('{"value": [{"name": "a"}, {"name": "山"}]}'))
    assert json.loads(jackfield("--schema", "[name]", "Which?")[1]) == [{"name": "a"}, {"name": "山"}]


def test_a_run_with_a_schema_that_paused_is_continued_with_it(
    jackfield: Run, server: FakeOpenAI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = tool_call("storage", {"operate": "scan", "key": "/"})
    server.reply(call, text('{"name": "Zugspitze"}'))
    tools = [{"name": "storage", "approval": "always"}]
    (tmp_path / "agent.json").write_text(json.dumps({"function_list": tools}))
    words = ["-C", "agent.json", "-m", "openai:m", "--base-url", server.url]
    assert main(["run", *words, "--schema", "name str", "The highest mountain?"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    command = printed.err.splitlines()[-1].removeprefix("The run is recorded. To continue, run: jackfield ")
    resume = shlex.split(command.removesuffix(" (or --deny)"))
    assert main(resume) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "Zugspitze"}


# --- templates --------------------------------------------------------------------------------------------------------

TEMPLATE = """system_message: You explain {{ topic }} to {{ audience }}.
prompt: "Explain {{ topic }}. {{ input }}"
params: {audience: a beginner}
"""


def test_a_template_is_filled_from_the_command_line(jackfield: Run, server: FakeOpenAI, tmp_path: Path) -> None:
    server.reply(text("So."), text("So."))
    (tmp_path / "explain.yaml").write_text(TEMPLATE)
    assert jackfield("-C", "explain.yaml", "-p", "topic=tides", "Be brief.")[0] == 0
    assert messages(server) == [("system", "You explain tides to a beginner."), ("user", "Explain tides. Be brief.")]
    assert jackfield("-C", "explain.yaml", "-p", "topic=a=b", "-p", "audience={{ topic }}")[0] == 0
    assert messages(server) == [("system", "You explain a=b to {{ topic }}."), ("user", "Explain a=b.")]


def test_a_chat_says_that_it_does_not_use_the_prompt_of_a_template(
    jackfield: Run, server: FakeOpenAI, tmp_path: Path
) -> None:
    (tmp_path / "explain.yaml").write_text(TEMPLATE)
    code, out, _ = jackfield("-C", "explain.yaml", "-p", "topic=tides", command="chat")
    assert (code, server.requests) == (0, [])
    assert "! chat ignores the prompt in explain.yaml; to use the prompt, run: jackfield run\n" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-C", "explain.yaml"), "no value for 'topic' in explain.yaml: pass -p topic=…"),
        (("-C", "explain.yaml", "-p", "topc=x"), "has no variable 'topc'; did you mean 'topic'?"),
        (("-p", "topic=x"), "-p sets a variable in an agent file, so it requires --config FILE"),
    ],
)
def test_what_a_template_lacks_is_named(
    jackfield: Run, server: FakeOpenAI, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "explain.yaml").write_text(TEMPLATE)
    code, _, err = jackfield(*words, "Hello")
    assert (code, message in err, server.requests) == (1, True, []), err


# --- fragments and URLs -----------------------------------------------------------------------------------------------


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.2:1/secret")
            self.end_headers()
            return
        is_html = self.path.endswith(".html")
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if is_html else "text/plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<p>High <b>water</b>.</p><script>x()</script>" if is_html else "Low water 潮.".encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_fragments_are_put_before_the_prompt_in_their_order(
    jackfield: Run, server: FakeOpenAI, tmp_path: Path, site: str
) -> None:
    server.reply(text("So."), text("So."))
    (tmp_path / "rules.md").write_text("# Rules\n\nBe {{ brief }}.\n")
    sources = ("rules.md", f"{site}/page.html", f"{site}/tide.txt")
    assert jackfield(*(word for source in sources for word in ("-F", source)), "What is high?")[0] == 0
    [(_, asked)] = messages(server)
    assert asked == "# Rules\n\nBe {{ brief }}.\n\nHigh water.\n\nLow water 潮.\n\nWhat is high?"
    assert jackfield("-F", "rules.md")[0] == 0
    assert messages(server) == [("user", "# Rules\n\nBe {{ brief }}.")]


def test_documents_at_a_url_that_was_typed_are_read_even_on_this_machine(
    jackfield: Run, server: FakeOpenAI, site: str
) -> None:
    server.reply(text("So."))
    code, _, err = jackfield("-f", f"{site}/page.html", "What is high?")
    assert code == 0, err
    assert "High water." in json.dumps(request(server)["messages"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gone.md", "the fragment 'gone.md' is not in "),
        (".", "the fragment '.' is a folder"),
        ("noise.bin", "the fragment 'noise.bin' cannot be read: "),
        ("SITE/moved", "cannot be read: "),
    ],
)
def test_a_fragment_that_cannot_be_read_is_an_error(
    jackfield: Run, server: FakeOpenAI, tmp_path: Path, site: str, source: str, message: str
) -> None:
    (tmp_path / "noise.bin").write_bytes(os.urandom(100) + b"\0")
    code, _, err = jackfield("-F", source.replace("SITE", site), "Hello")
    assert (code, message in err, server.requests) == (1, True, []), err
