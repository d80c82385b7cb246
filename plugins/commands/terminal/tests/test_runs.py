"""`jackfield runs`, and chats that are kept in a store."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.cli.main import main
from jackfield.events import RunEvent
from jackfield.runs import Observer
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_testkit.server import FakeOpenAI, RecordedRequest, Reply, text, tool_call

Run = Callable[..., tuple[int, str, str]]
MODEL = ("-m", "offline:extractive", "-q")


@pytest.fixture
def jackfield(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command where nothing is recorded yet; gives its exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    def run(*arguments: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def listed(jackfield: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(jackfield("runs", "list", "--json")[1])
    return found


def test_a_recorded_run_is_listed_shown_replayed_forked_and_deleted(jackfield: Run) -> None:
    assert jackfield("runs", "list")[1] == "no runs are recorded\n"
    code, told, _ = jackfield("run", *MODEL, "--store", "sqlite", "What is a tide?")
    assert code == 0
    [run] = listed(jackfield)
    assert (run["state"], run["title"], run["is_held"]) == ("finished", "What is a tide?", False)
    run_id = run["run_id"]
    _, shown, _ = jackfield("runs", "show", run_id[:8])
    assert jackfield("runs", "show", "last")[1] == shown
    assert [line.split()[:2] for line in shown.splitlines()[-3:]] == [
        ["1", "RunStarted"], ["2", "TurnFinished"], ["3", "RunFinished"],
    ]  # fmt: skip
    assert json.loads(jackfield("runs", "show", run_id, "--json")[1])[0]["event"] == "RunStarted"
    assert jackfield("runs", "replay", run_id, "-q")[1] == told
    events = [json.loads(line) for line in jackfield("runs", "replay", run_id, "--events")[1].splitlines()]
    assert (events[0]["event"], events[-1]["event"]) == ("RunStarted", "RunFinished")
    fork = jackfield("runs", "fork", run_id, "--at", "1")[1].strip()
    assert jackfield("runs", "resume", fork, *MODEL)[1] == told
    assert jackfield("runs", "delete", run_id, "unknown")[0] != 0
    assert len(listed(jackfield)) == 2, "of several runs, none is deleted if one is unknown"
    assert jackfield("runs", "delete", run_id[:8], fork[:8])[0] == 0
    assert listed(jackfield) == []


def test_what_plugins_reported_in_a_run_is_shown(jackfield: Run) -> None:
    long_ago = [Message(role, "Long ago. " * 60) for role in ("user", "assistant") * 6]
    compaction = {"name": "compaction", "context_tokens": 1500}
    model = ScriptedModel(lambda _: answer("Notes."), processors=[])
    FnCallAgent([compaction], model, store="sqlite").ask([*long_ago, Message("user", "Is that all?")])
    shown = jackfield("runs", "show", "last")[1]
    assert "PluginEvent" in shown
    assert "jackfield-truncation.compacted: messages 1 to " in shown


class Traces(Observer):
    """Gives each run a trace."""

    name = "traces"

    def observe(self, event: RunEvent) -> None:
        """Note nothing."""

    def trace_of(self, run_id: str) -> Mapping[str, str]:
        return {"traceparent": f"00-{7:032x}-{8:016x}-01"}


def test_the_trace_of_a_run_is_shown_but_is_no_step_of_its_tree(jackfield: Run) -> None:
    FnCallAgent(llm=ScriptedModel([answer("Hello.")]), store="sqlite", observers=[Traces()]).ask("Hi")
    [line] = [line.split() for line in jackfield("runs", "show", "last")[1].splitlines() if "Traced" in line]
    assert line[1:] == ["Traced", f"00-{7:032x}-{8:016x}-01"]
    tree = jackfield("runs", "show", "last", "--tree")[1]
    steps = tree[tree.index("step ") :].splitlines()
    assert [row.split()[0] for row in steps] == ["step", "FnCallAgent", "answer"]


def test_a_run_that_waits_is_approved_from_the_command_line(jackfield: Run, tmp_path: Path) -> None:
    @tool(name="storage", needs_approval=True)
    def storage(operate: str, key: str, value: str) -> str:
        """Keep a text."""
        return operate + key + value

    wants = calls(("storage", {"operate": "put", "key": "a", "value": "b"}))
    paused = FnCallAgent([storage], ScriptedModel([wants]), store="sqlite").ask("Keep it.")
    assert "waiting for approval" in jackfield("runs", "list")[1]
    settings = {"llm": "offline:extractive", "function_list": [{"name": "storage", "approval": "always"}]}
    (tmp_path / "my agent.json").write_text(json.dumps(settings))
    code, _, err = jackfield("runs", "resume", paused.run_id[:10], "-C", "my agent.json", "--max-turns", "3", "-q")
    assert code == 1
    hint = re.search(r"To continue, run: jackfield (.*) \(or --deny\)", err)
    assert hint, err
    assert "--max-turns 3" in hint[1]
    code, _, _ = jackfield(*shlex.split(hint[1]))  # as it stands
    assert code == 0
    steps = [entry["event"] for entry in json.loads(jackfield("runs", "show", paused.run_id, "--json")[1])]
    assert steps[-5:] == ["Resumed", "ApprovalDecided", "ToolFinished", "TurnFinished", "RunFinished"]
    (call_id,) = paused.waiting
    shown = {
        words[1]: words[2:] for line in jackfield("runs", "show", "last")[1].splitlines() if (words := line.split())
    }
    assert shown["ApprovalNeeded"][0].startswith("storage(")
    assert shown["Resumed"] == [f"{call_id}:", "allowed"]
    code, out, err = jackfield("runs", "resume", "last", "-C", "my agent.json")
    assert (code, out) == (0, "")
    assert jackfield(*shlex.split(err.partition("jackfield ")[2]))[0] == 0


def test_a_run_is_resumed_with_its_own_model_and_only_with_the_tools_of_its_pending_calls(
    jackfield: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-Zq83bXw4Rk2LpV7Tn")
    call = {"operate": "put", "key": "a", "value": "b"}
    with FakeOpenAI() as server:
        server.reply(tool_call("storage", call), text("Done."), tool_call("storage", call), text("A pity."))
        options = ("-m", "openai:m", "--base-url", server.url, "-t", "storage", "--ask", "ask", "-q")
        assert jackfield("run", *options, "Keep it.")[0] == 1
        before = jackfield("runs", "show", "last")[1]
        for decision in ((), ("--approve",)):
            code, _, err = jackfield("runs", "resume", "last", *decision)
            assert (code, "pending calls to storage, but this agent has no such tool" in err) == (1, True)
            assert "such as -t storage" in err
        assert jackfield("runs", "show", "last")[1] == before
        code, out, _ = jackfield("runs", "resume", "last", "--approve", "-t", "storage", "-q")
        assert (code, out) == (0, "Done.\n")
        assert jackfield("run", *options, "Keep it.")[0] == 1
        assert jackfield("runs", "resume", "last", "--deny", "-q")[:2] == (0, "A pity.\n"), "it needs no tool"
        assert [request.json["model"] for request in server.requests] == ["m"] * 4


def test_calls_that_wait_in_a_store_from_elsewhere_need_consent(jackfield: Run, tmp_path: Path) -> None:
    @tool(name="storage", needs_approval=True)
    def storage(operate: str, key: str, value: str) -> str:
        """Keep a text."""
        return operate + key + value

    wants = calls(("storage", {"operate": "put", "key": "a", "value": "evil"}))
    own = {"name": "sqlite", "path": str(tmp_path / "own.sqlite")}
    paused = FnCallAgent([storage], ScriptedModel([wants]), store=own).ask("Keep it.")
    shutil.copytree(tmp_path, tmp_path / "clone")
    settings = {"llm": "offline:extractive", "function_list": [{"name": "storage", "approval": "always"}]}
    for folder in (tmp_path, tmp_path / "clone"):
        store = {"name": "sqlite", "path": str(folder / "own.sqlite")}
        (folder / "agent.json").write_text(json.dumps({**settings, "store": store}))
    resume = ("runs", "resume", paused.run_id, "--approve", "-q", "-C")
    code, _, err = jackfield(*resume, "clone/agent.json")
    assert code == 1
    assert "calls the tool storage with" in err
    assert "evil" in err
    assert "To allow this, pass --trust" in err
    with sqlite3.connect(tmp_path / "clone/own.sqlite") as file:
        file.execute("UPDATE runs SET state = 'running'")
    file.close()
    code, out, err = jackfield("runs", "recover", "-C", "clone/agent.json")
    assert (code, out, "calls the tool storage with" in err) == (1, "", True)
    assert jackfield("runs", "recover", "--list", "-C", "clone/agent.json")[0] == 0  # it makes no call
    assert jackfield(*resume, "agent.json")[0] == 0  # written here
    assert jackfield(*resume, "clone/agent.json", "--trust")[0] == 0


def kill_a_run_at(server: FakeOpenAI, arguments: tuple[str, ...], *, requests: int) -> None:
    """Run `jackfield run` in a process, and kill it when the model has been asked so many times."""
    process = subprocess.Popen([sys.executable, "-m", "jackfield", "run", *arguments], stdin=subprocess.DEVNULL)
    try:
        assert server.wait_until(lambda one: one.open_streams > 0 and len(one.requests) == requests, timeout_s=60)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_killed_runs_are_recovered_from_the_command_line(jackfield: Run, tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        llm = {"model_type": "openai", "model": "m", "base_url": server.url, "api_key": "sk-x"}
        tools = [{"name": "storage", "approval": "always"}]
        (tmp_path / "agent.json").write_text(json.dumps({"name": "clerk", "llm": llm, "function_list": tools}))
        options = ("-C", "agent.json", "--trust", "--store", "sqlite")
        server.reply(text("late").delayed(60), text("late").delayed(60))
        kill_a_run_at(server, (*options, "What is a tide?"), requests=1)
        kill_a_run_at(server, (*options, "Keep it."), requests=2)
        _, shown, _ = jackfield("runs", "recover", *options, "--list")
        assert [line.split()[-1] for line in shown.splitlines()] == ["asked", "tide?", "it."]
        assert [run["state"] for run in listed(jackfield)] == ["running", "running"], "a list changes nothing"

        def says(request: RecordedRequest) -> Reply:
            wants_to_keep = request.json["messages"][-1]["content"] == "Keep it."
            return tool_call("storage", {"operate": "put", "key": "a"}) if wants_to_keep else text("The sea rises.")

        server.respond(says)
        code, shown, err = jackfield("runs", "recover", *options)
        assert (code, [line.split()[1:] for line in shown.splitlines()]) == (
            1, [["outcome"], ["finished"], ["waiting", "for", "approval"]],
        )  # fmt: skip
        waiting = listed(jackfield)[0]["run_id"]
        assert f"runs resume {waiting[:12]}" in err
        assert "--approve" in err
        for words in ((), ("--list",)):
            code, shown, _ = jackfield("runs", "recover", *options, *words)
            assert (code, shown) == (0, "no run of this agent was interrupted\n")


def test_a_run_is_named_by_the_beginning_of_its_id_if_it_is_the_only_one(jackfield: Run) -> None:
    for _ in range(2):
        jackfield("run", *MODEL, "--store", "sqlite", "Hello")
    assert "no such run: 'xyz'" in jackfield("runs", "show", "xyz")[2]
    code, _, err = jackfield("runs", "show", "")
    assert (code != 0, "2 runs start with ''" in err) == (True, True)


def test_a_chat_with_a_session_goes_on_where_it_was(jackfield: Run) -> None:
    assert "no recorded chat to continue" in jackfield("chat", *MODEL, "--continue")[2]
    assert "session tea: 0 messages" in jackfield("chat", *MODEL, "--session", "tea", typed="one\ntwo\n")[1]
    assert "session tea: 4 messages" in jackfield("chat", *MODEL, "--continue", typed="three\n")[1]
    assert "session tea: 6 messages" in jackfield("chat", *MODEL, "--session", "tea")[1]
    assert "session other: 0 messages" in jackfield("chat", *MODEL, "--session", "other")[1]
    assert [run["title"] for run in listed(jackfield)] == ["three", "two", "one"]


def test_where_a_person_is_next_a_run_names_the_command_that_holds_a_conversation(jackfield: Run) -> None:
    code, out, err = jackfield("run", *MODEL, "--agent", "user", "Hello")
    assert (code, out) == (1, "")
    assert err.endswith("To reply, run: jackfield chat --model offline:extractive --agent user\n")


def test_an_agent_file_names_its_store(jackfield: Run, tmp_path: Path) -> None:
    settings = {"llm": "offline:extractive", "store": {"name": "sqlite", "path": str(tmp_path / "own.sqlite")}}
    (tmp_path / "agent.json").write_text(json.dumps(settings))
    assert jackfield("run", "-C", "agent.json", "-q", "Hello")[0] == 0
    assert (tmp_path / "own.sqlite").exists()
    assert listed(jackfield) == []


def test_a_store_of_another_name_is_an_error_that_helps(jackfield: Run) -> None:
    code, _, err = jackfield("runs", "list", "--store", "sqlit")
    assert code != 0
    assert "did you mean" in err


def test_runs_are_listed_with_agent_and_model_and_by_state(jackfield: Run) -> None:
    @tool(name="storage", needs_approval=True)
    def storage() -> str:
        """Keep a text."""
        return ""

    FnCallAgent([storage], ScriptedModel([calls(("storage", {}))]), name="clerk", store="sqlite").ask("Keep it.")
    assert jackfield("run", *MODEL, "--store", "sqlite", "What is a tide?")[0] == 0
    rows = [line.split() for line in jackfield("runs", "list")[1].splitlines()]
    assert [row[3:6] for row in (rows[0], rows[1])] == [
        ["state", "agent", "model"],
        ["finished", "fncall", "offline:extractive"],
    ] or rows
    shown = jackfield("runs", "show", "last")[1]
    assert "agent: fncall\nmodel: offline:extractive\n" in shown
    assert [(run["agent"], run["model"]) for run in listed(jackfield)] == [
        ("fncall", "offline:extractive"),
        ("clerk", "scripted:scripted"),
    ]
    waiting = json.loads(jackfield("runs", "list", "--state", "waiting", "--json")[1])
    assert [run["agent"] for run in waiting] == ["clerk"]
    assert jackfield("runs", "list", "--state", "failed")[1] == "no runs are failed\n"


def test_runs_are_searched_by_words_of_questions_and_answers(jackfield: Run) -> None:
    for question in ("What is a tide?", "潮汐是什么？"):
        assert jackfield("run", *MODEL, "--store", "sqlite", question)[0] == 0
    assert "What is a tide?" in jackfield("runs", "search", "TIDE", "what")[1]
    found = json.loads(jackfield("runs", "search", "潮汐", "--json")[1])
    assert [(run["title"], run["excerpt"]) for run in found] == [("潮汐是什么？", "潮汐是什么？")]
    jackfield("run", *MODEL, "--store", "sqlite", f"{'Well, ' * 40}what about the harbour?")
    (late,) = json.loads(jackfield("runs", "search", "harbour", "what", "--json")[1])
    assert late["excerpt"].startswith("…"), "each word is looked for by itself"
    assert late["excerpt"].endswith("what about the harbour?")
    assert jackfield("runs", "search", "zebra")[1] == "no recorded run contains 'zebra' in its question or answers\n"


@pytest.mark.parametrize("path", [".", "gone/run.json"])
def test_a_path_to_which_nothing_can_be_saved_is_refused_before_the_run(path: str, jackfield: Run) -> None:
    code, out, err = jackfield("run", *MODEL, "--save", path, "What is a tide?")
    assert (code, out) == (1, "")
    assert err.startswith(f"jackfield: cannot save the conversation to {path}: ")
    assert listed(jackfield) == []


@pytest.mark.parametrize("command", [("list",), ("search", "tide")])
def test_a_limit_of_no_runs_is_refused(command: tuple[str, ...], jackfield: Run) -> None:
    for number in ("0", "-1"):
        code, _, err = jackfield("runs", *command, f"--limit={number}")
        assert (code, err) == (1, f"jackfield: --limit must be at least 1, got {number}\n")


def test_a_saved_run_that_made_no_call_can_be_resumed_again(jackfield: Run, tmp_path: Path) -> None:
    """Without a decision, its calls still wait; with one, they may have run."""
    (tmp_path / "agent.yaml").write_text(
        "llm: offline:extractive\nfunction_list: [{name: storage, needs_approval: true}]\n"
    )
    options = ("-C", "agent.yaml", "--no-record", "-q")
    call = 'call storage {"operate": "put", "key": "a", "value": "b"}'
    code, _, told = jackfield("run", *options, "--save", "run.json", call)
    assert (code, "Saved. To continue, run: jackfield run --resume run.json" in told) == (1, True)
    before = (tmp_path / "run.json").read_text()
    for _ in range(2):
        assert jackfield("run", *options, "--resume", "run.json")[0] == 1
        assert (tmp_path / "run.json").read_text() == before
    code, out, _ = jackfield("run", *options, "--resume", "run.json", "--approve")
    assert (code, "Successfully saved a" in out) == (0, True)
    assert "so its calls may have run" in jackfield("run", *options, "--resume", "run.json", "--approve")[2]
