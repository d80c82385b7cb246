"""No writer shows a secret, wherever it is held, and every file with content is its owner's alone."""

from __future__ import annotations

import base64
import json
import logging
import os
import pickle
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from jackfield import Agent, FnCallAgent, Message, sync, tool
from jackfield.events import FunctionCallDelta, ModelFinished, ReasoningDelta, TextDelta
from jackfield.messages import FunctionCall
from jackfield.models import get_chat_model
from jackfield.privatefiles import open_private, write_private
from jackfield.results import ResultFold
from jackfield.secrets import HideInLogs, Secret, secrets_in, secrets_of
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool
from jackfield_records.hiddenevents import HiddenEvents
from jackfield_terminal.saved_runs import load_run, save_run
from jackfield_testkit.cassette import Cassette
from jackfield_testkit.records import MemoryStore

KEYS = {
    "usual": "sk-Zq83bXw4Rk2LpV7Tn",
    "quotes": "it's \"Zq8\" \\ 'twice'\\\\",
    "lines": "first-line7\nsecond\tline\r\nthird",
    "unicode": "clé-пароль-密码-\U0001f511-42",
    "regex": "(a+)+$[^b]*\\d{3}|.^?",
    "json": '{"role": "assistant", "content": [1, null]}',
    "long": "".join(f"{number:x}Zq-" for number in range(1500)),
}


def forms_of(key: str) -> set[str]:
    """A key in every form in which it may be written, and the beginning of each."""
    whole = {
        key,
        json.dumps(key)[1:-1],
        json.dumps(key, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(key))[3:-3],
        quote(key, safe=""),
        quote_plus(key),
        base64.b64encode(key.encode()).decode().rstrip("="),
    }
    return whole | {form[:12] for form in whole}


# --- places where a secret is held ------------------------------------------------------------------------------------


class Plain(BaseTool):
    name = "plain"
    description = "A tool with settings."

    def call(self, params: Any, *, context: Any = None) -> str:
        return "done"


def _agent(**options: Any) -> FnCallAgent:
    return FnCallAgent(**{"llm": ScriptedModel([]), "name": "asked", "description": "Helps.", **options})


def _model(**settings: Any) -> Any:
    return get_chat_model({"model": "m", "model_type": "openai", **settings})


PLACES: Mapping[str, Callable[[str], Agent]] = {
    "api_key": lambda key: _agent(llm=_model(api_key=key)),
    "azure_ad_token": lambda key: _agent(
        llm=get_chat_model(
            {"model": "m", "model_type": "azure", "azure_endpoint": "https://a.example", "azure_ad_token": key}
        )
    ),
    "header": lambda key: _agent(llm=_model(generate_cfg={"extra_headers": {"X-Access": key}})),
    "query of base_url": lambda key: _agent(llm=_model(base_url=f"http://h.example/v1?key={quote(key, safe='')}")),
    "fallback": lambda key: _agent(
        llm=_model(
            processors=[{"name": "fallback", "models": [{"model": "n", "model_type": "openai", "api_key": key}]}]
        )
    ),
    "helper": lambda key: _agent(function_list=[_agent(llm=_model(api_key=key)).as_tool()]),
    "hand-off": lambda key: FnCallAgent(
        llm=ScriptedModel([]), handoffs=[_agent(llm=_model(api_key=key), name="other")]
    ),
    "tool": lambda key: _agent(function_list=[Plain({"api_key": key})]),
    "environment of an MCP server": lambda key: _agent(
        function_list=[{"mcpServers": {"s": {"command": "true", "env": {"SERVICE": key}}}}]
    ),
    "header of an MCP server": lambda key: _agent(
        function_list=[{"mcpServers": {"s": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Access": key}}}}]
    ),
    "client secret of an MCP server": lambda key: _agent(
        function_list=[
            {"mcpServers": {"s": {"url": "http://127.0.0.1:9/mcp", "oauth": {"client_id": "c", "client_secret": key}}}}
        ]
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_secret_is_known_in_every_place(place: str, key: str) -> None:
    if place.startswith("header") and not key.isprintable():
        key = key.replace("\n", "").replace("\r", "").replace("\t", "")
    if place == "header of an MCP server":  # which may hold ASCII only
        key = key.encode("ascii", "backslashreplace").decode()
    agent = PLACES[place](key)
    secrets = secrets_of(agent, settings=agent.host.settings)
    for form in (key, json.dumps(key)[1:-1], quote(key, safe="")):
        assert form not in secrets.hide(f"it is {form}, is it")


# --- writers ----------------------------------------------------------------------------------------------------------


def _talking(key: str, **options: Any) -> FnCallAgent:
    """An agent that has a key, and in whose runs it is said in every field."""

    @tool
    def show(text: str = "") -> str:
        """Show a text."""
        logging.getLogger("jackfield.test").warning("shows %s", text)
        return f"{text} {base64.b64encode(key.encode()).decode()} {quote(key)} {json.dumps({'k': key})}"

    model = ScriptedModel(
        [
            calls(("show", {"text": f"a{key}b"})),
            answer(f"The key is {key}."),
        ]
    )
    return FnCallAgent([show, Plain({"api_key": key})], model, name="talking", **options)


def _record(key: str, folder: Path) -> str:
    store = MemoryStore()
    _talking(key, store=store).ask(f"Is it {key}?")
    return "\n".join(line for kept in store.kept.values() for line in (str(kept.run), *kept.entries))


def _title(key: str, folder: Path) -> str:
    titles = []
    for before in range(70, 100, 3):
        store = MemoryStore()
        _talking(key, store=store).ask("w" * before + " " + key)
        titles += [kept.run.title for kept in store.kept.values()]
    return "\n".join(titles)


def _events(key: str, folder: Path) -> str:
    agent = _talking(key)
    hidden = HiddenEvents(secrets_of(agent, settings=agent.host.settings))
    told = [one for event in sync.iterate(agent.astream(f"Is it {key}?")) for one in hidden.feed(event)]
    told += hidden.rest()
    whole = "".join(str(one.get("text", "")) for one in told if one["event"] == "TextDelta")
    return "\n".join([*map(json.dumps, told), whole])


def _json(key: str, folder: Path) -> str:
    agent = _talking(key)
    fold = ResultFold([Message("user", f"Is it {key}?")], system_text="")
    for event in sync.iterate(agent.astream(f"Is it {key}?")):
        fold.feed(event)
    return json.dumps(secrets_of(agent, settings=agent.host.settings).hide_fields(fold.result(str).to_dict()))


def _save(key: str, folder: Path) -> str:
    agent = _talking(key)
    secrets = secrets_of(agent, settings=agent.host.settings)
    call = Message("assistant", "", function_call=FunctionCall("show", json.dumps({"text": key})))
    history = [Message("user", f"Is it {key}?"), call]
    save_run(folder / "run.json", history, "approval_needed", secrets)
    assert [*load_run(folder / "run.json", secrets)] == history, "what is resumed is what was saved"
    return (folder / "run.json").read_text()


def _cassette(key: str, folder: Path) -> str:
    path = folder / "tape.json"
    agent = _talking(key)
    with Cassette(path, "record") as tape:
        tape.add_secrets(secrets_in(agent))
        model = tape.wrap(agent.model)
        FnCallAgent([*agent.function_map.values()], model).ask(f"Is it {key}?")
    return path.read_text()


def _log(key: str, folder: Path) -> str:
    agent, lines = _talking(key), []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Keeps()
    handler.addFilter(HideInLogs(secrets_of(agent, settings=agent.host.settings)))
    logger = logging.getLogger("jackfield")
    logger.addHandler(handler)
    try:
        agent.ask(f"Is it {key}?")
        try:
            int(f"wrong: {key}")
        except ValueError:
            logging.getLogger("jackfield.other").exception("failed with %s", key)
    finally:
        logger.removeHandler(handler)
    assert len(lines) >= 2
    return "\n".join(lines)


def _shown(key: str, folder: Path) -> str:
    agent = _talking(key)
    parts = [agent, *agent.function_map.values(), secrets_of(agent), Secret("n", key)]
    return "\n".join([*map(repr, parts), pickle.dumps(secrets_of(agent)).decode("latin-1")])


WRITERS: Mapping[str, Callable[[str, Path], str]] = {
    "record": _record,
    "title": _title,
    "events": _events,
    "json": _json,
    "saved run": _save,
    "cassette": _cassette,
    "log": _log,
    "repr and pickle": _shown,
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_no_writer_shows_any_form_of_a_key(writer: str, key: str, tmp_path: Path) -> None:
    written = WRITERS[writer](key, tmp_path)
    texts = [written]
    for line in written.splitlines():
        with suppress(ValueError):
            texts.append(str(json.loads(line)))
    # `{"role": ` begins any message.
    forms = {form for form in forms_of(key) if not key.startswith("{") or len(form) > 12}
    shown = [form for form in forms if any(form in text for text in texts)]
    assert not shown, f"{shown[0][:60]!r} is in {written[:2000]}"


WORDS = ("x", "messages", "assistant", "a birthday", "event", "role", "TextDelta", "function_call")


@pytest.mark.parametrize("writer", [name for name in WRITERS if name not in ("title", "repr and pickle")])
def test_a_word_as_a_key_changes_nothing_that_is_written(writer: str, tmp_path: Path) -> None:
    for number, word in enumerate(WORDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert "[secret" not in WRITERS[writer](word, folder)


# --- files ------------------------------------------------------------------------------------------------------------


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _write_results(folder: Path) -> None:
    from jackfield_eval.cases import load_suite
    from jackfield_eval.report import build_report, save_results

    (folder / "agent.yaml").write_text("llm: offline:quote\n")
    (folder / "cases.yaml").write_text(
        "agents: [agent.yaml]\ncases:\n  - name: one\n    prompt: Hello\n    expect: x\n"
    )
    for name in ("agent.yaml", "cases.yaml"):
        (folder / name).chmod(0o600)  # not a writer's
    suite = load_suite(folder / "cases.yaml")
    save_results(build_report(suite, [], mode="live", seed=0), now=datetime.now(UTC))


def _write_cassette(folder: Path) -> None:
    with Cassette(folder / "tape.json", "record") as tape:
        FnCallAgent(llm=tape.wrap(ScriptedModel([answer("x")]))).ask("Hello")


def _write_saved(folder: Path) -> None:
    save_run(folder / "run.json", [Message("user", "Hello")], "finished", secrets_of())


def _write_cached(folder: Path) -> None:
    from jackfield_tool_results.cached import CachedResults

    @tool(cacheable=True)
    def look(word: str) -> str:
        """Look."""
        return word

    entry = CachedResults(tools=[look], path=str(folder / "results.sqlite"))
    FnCallAgent([entry], ScriptedModel([calls(("look", {"word": "x"})), answer("x")])).ask("Hello")


def _write_store(folder: Path) -> None:
    FnCallAgent(llm=ScriptedModel([answer("x")]), store={"name": "sqlite", "path": str(folder / "runs.sqlite")}).ask(
        "Hello"
    )


def _write_processors(folder: Path) -> None:
    from jackfield.plugins import default_host
    from jackfield.processors import Processor

    host = default_host()
    made = [host.make(host.find("processor", "cache"), {"path": str(folder / "answers.sqlite")}, Processor)]
    model = ScriptedModel([answer("x")])
    model._use_processors(made, add=True)
    FnCallAgent(llm=model).ask("Hello")


def _write_listing(folder: Path) -> None:
    from jackfield_mcp.listing import Keeper, Listing

    Keeper(folder / "mcp").save("a" * 64, Listing((), resources=False, prompts=False, approved={}))


def _write_made(folder: Path) -> None:
    write_private(folder / "new", "text")
    (folder / "old").write_text("old")
    (folder / "old").chmod(0o644)
    write_private(folder / "old", b"new")
    os.close(open_private(folder / "opened"))


def _write_chat_history(folder: Path) -> None:
    from jackfield_terminal.line_editor import private_file

    private_file(folder / "history")


FILES = {
    "results": _write_results,
    "cassette": _write_cassette,
    "saved run": _write_saved,
    "cached results": _write_cached,
    "store": _write_store,
    "cache of answers": _write_processors,
    "listing of an MCP server": _write_listing,
    "helper": _write_made,
    "chat history": _write_chat_history,
}


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
@pytest.mark.parametrize("writer", FILES)
def test_files_with_content_are_their_owners_alone_whatever_the_umask(writer: str, tmp_path: Path) -> None:
    with umask(0o022):
        FILES[writer](tmp_path)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert {str(path): oct(stat.S_IMODE(path.stat().st_mode)) for path in written} == {
        str(path): "0o600" for path in written
    }


@pytest.mark.parametrize("secret", ["sk-Zq83bXw4Rk2LpV7Tn", 'quoted-"Zq8\\7é'])
def test_a_cached_result_with_a_secret_is_not_kept_in_a_file(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jackfield_tool_results.cached import CachedResults

    monkeypatch.setenv("ACME_API_KEY", secret)
    monkeypatch.chdir(tmp_path)

    @tool(cacheable=True)
    def look(word: str) -> str:
        """Look."""
        with Path("called").open("a", encoding="utf-8") as file:
            file.write(f"{word} ")
        return f"{word} is {os.environ['ACME_API_KEY'] if word == 'key' else 'common'}"

    for _ in range(2):
        entry = CachedResults(tools=[look], path=str(tmp_path / "results.sqlite"))
        model = ScriptedModel([calls(("look", {"word": "key"}), ("look", {"word": "tree"})), answer("x")])
        results = FnCallAgent([entry], model).ask("Look.").messages
        assert any(secret in message.get_text_content() for message in results), "what is executed is never changed"
    assert sorted(Path("called").read_text("utf-8").split()) == ["key", "key", "tree"]
    assert not _files_with(tmp_path, secret)


FIRST, SECOND = "sk-Zq", "83bXw4Rk2LpV7Tn"
ANSWERS: Mapping[str, list[Any]] = {
    "text": [TextDelta(FIRST), TextDelta(SECOND)],
    "reasoning": [ReasoningDelta(FIRST), ReasoningDelta(SECOND), TextDelta("x")],
    "arguments": [
        FunctionCallDelta(0, "c1", "look", f'{{"word": "{FIRST}'),
        FunctionCallDelta(1, "c2", "look", "{}"),
        FunctionCallDelta(0, arguments=f'{SECOND}"}}'),
    ],
    "nothing": [TextDelta("a common "), TextDelta("word")],
}


@pytest.mark.parametrize("place", ANSWERS)
def test_an_answer_with_a_secret_is_not_cached(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jackfield.plugins import default_host
    from jackfield.processors import Processor

    monkeypatch.setenv("ACME_API_KEY", FIRST + SECOND)
    host = default_host()
    cache = host.make(host.find("processor", "cache"), {"path": str(tmp_path / "answers.sqlite")}, Processor)
    model = ScriptedModel([[*ANSWERS[place], ModelFinished("stop")]] * 2)
    model._use_processors([cache], add=True)
    for _ in range(2):
        sync.run(model.acomplete("Hello"))
    assert len(model.requests) == (1 if place == "nothing" else 2)


def _files_with(folder: Path, secret: str) -> list[str]:
    forms = [form.encode() for form in forms_of(secret)]
    return [
        path.name for path in folder.rglob("*") if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]
