"""A marked API key in every place that accepts one, and a search for it in all output."""

from __future__ import annotations

import base64
import copy
import io
import itertools
import json
import logging
import os
import pickle
import random
import sqlite3
import string
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attacks.kind import Attempt, Kind, law
from attacks.speaking import BACKENDS, model_of, says, server_of
from jackfield import BaseTool, FnCallAgent, ToolContext, sync
from jackfield.errors import JackfieldError
from jackfield.messages import FunctionCall, Message
from jackfield.models import BaseChatModel
from jackfield.plugins import PluginHost
from jackfield.secrets import HideInLogs, secrets_in, secrets_of
from jackfield.settings import load_settings
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_records.hiddenevents import HiddenEvents
from jackfield_terminal.saved_runs import load_run, save_run
from jackfield_testkit import replies
from jackfield_testkit.cassette import Cassette
from jackfield_testkit.records import MemoryStore
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import RecordedRequest

VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "openai_responses": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "qwen_dashscope": "DASHSCOPE_API_KEY",
}
PLACES = ("argument", "environment", "file", "headers", "userinfo", "token")
_OWN = str(Path(__file__).parent.parent)


def _echo(request: RecordedRequest, change: Callable[[str], str], form: str) -> Reply:
    """Return the reply of a server that repeats a client's own key."""
    sent = [value.removeprefix("Bearer ").removeprefix("Basic ") for value in request.headers.values()]
    said = change(" | ".join([*sent, request.path]))
    match form:
        case "401":
            return replies.error(401, f"Incorrect API key provided: {said}", code=said[:200], type=said[:200])
        case "500":
            return replies.raw(f"<pre>{said}</pre>".encode(), {"Content-Type": "text/html"}, status=500)
        case "429":
            return replies.error(429, said, headers={"Retry-After": "0", "x-request-id": said[:300]})
        case "stream":
            failure = {"error": {"message": said, "code": said[:99], "type": said[:99]}}
            return replies.chunks([{"choices": [{"index": 0, "delta": {"content": "half"}}]}, failure])
        case "rubbish":
            return replies.raw(said.encode())
        case "malformed":
            return replies.chunks([f'{{"choices": [{said}'])
    return replies.text("all is well")


FORMS = ("well", "401", "500", "429", "stream", "rubbish", "malformed", "reset", "nobody")
CHANGES: Mapping[str, Callable[[str], str]] = {"": str, "upper": str.upper, "lower": str.lower, "title": str.title}


@contextmanager
def _placed(backend: str, place: str, key: str, url: str) -> Iterator[BaseChatModel]:
    """Yield a model that gets its key from this place."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.toml"
        variable = VARIABLES[backend]
        if place == "token":
            variable = "AZURE_OPENAI_AD_TOKEN" if backend == "azure" else variable
        if place == "file":
            file.write_text(f'[secrets]\n{variable} = "{key}"\n')
        if place in ("environment", "token"):
            os.environ[variable] = key
        if place == "userinfo":
            url = url.replace("://", f"://user:{key}@")
        headers = {"extra_headers": {"X-Token": key}} if place == "headers" else {}
        host = PluginHost(load_settings(project_dir=Path(folder), user_file=file))
        given = key if place == "argument" else "sk-other" if place in ("headers", "userinfo") else None
        try:
            yield model_of(backend, url, key=given, host=host, retries=1, generate_cfg=headers)
        finally:
            os.environ.pop(variable, None)


def _surfaces(model: BaseChatModel, error: BaseException | None) -> Iterator[tuple[str, str]]:
    """Yield everything that is shown or stored about a model and about the error it raised."""
    config = model.config
    yield "repr of the model", repr(model)
    yield "repr of its settings", f"{config!r} {config}"
    yield "dump of its settings", f"{config.model_dump()} {config.model_dump(mode='json')} {config.model_dump_json()}"
    yield "variables of the model", repr(vars(model))
    for name, value in {"model": model, "settings": config, "copy of the settings": copy.deepcopy(config)}.items():
        with suppress(TypeError, AttributeError, pickle.PicklingError):  # objects that cannot be pickled reveal nothing
            yield f"pickle of the {name}", pickle.dumps(value).decode("latin-1")
    while error is not None:
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        yield "error", f"{error} {error!r} {vars(error) if hasattr(error, '__dict__') else ''}"
        for frame in told.stack:
            if not frame.filename.startswith(_OWN):
                yield f"locals of {Path(frame.filename).name}:{frame.name}", str(frame.locals)
        error = error.__cause__ or error.__context__


@contextmanager
def _log() -> Iterator[io.StringIO]:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        yield out
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def _search(backend: str, place: str, form: str, change: str, key: str) -> None:
    server = server_of(backend)
    server.clear()
    server.respond(lambda request: _echo(request, CHANGES[change], form))
    if form == "reset":
        server.respond(lambda _: replies.text("half an answer").reset_after(1))
    url = server.origin if backend == "azure" else server.url
    if form == "nobody":
        url = "http://127.0.0.1:9/v1"
    caught: BaseException | None = None
    events: list[str] = []
    model = None
    with _log() as log:
        try:
            with _placed(backend, place, key, url) as model:
                sync.run(_listen(model, events))
        except JackfieldError as error:
            caught = error
    if model is not None and form == "well" and not caught:
        _check_sent(server.requests[-1].headers, place, key)
    shown = [("log", log.getvalue()), ("events", "\n".join(events))]
    if model is not None:
        shown += _surfaces(model, caught)
    elif caught is not None:
        shown.append(("error", f"{caught} {caught!r}"))
    for where, text in shown:
        law(key.casefold() not in text.casefold(), f"the key stands in {where}")


def _check_sent(headers: Mapping[str, str], place: str, key: str) -> None:
    """Check that a key is sent at all, because otherwise the attack would find nothing."""
    if place == "userinfo":
        import base64

        basic = base64.b64encode(f"user:{key}".encode()).decode()
        law(basic in str(headers), "userinfo of the URL neither authenticates nor is refused")
    else:
        law(key in str(headers), "the key is not sent")


async def _listen(model: BaseChatModel, events: list[str]) -> None:
    async for event in model.astream([Message("user", "hello")]):
        # One by one, because events before an error may contain a key as well.
        events.append(f"{event!r} {json.dumps(asdict(event), default=str)}")  # noqa: PERF401


def _cached(key: str) -> None:
    """Check that the key is neither in cached answers nor in the files next to them."""
    server = server_of("openai")
    server.clear()
    server.respond(lambda _: replies.text("kept"))
    with tempfile.TemporaryDirectory() as folder:
        names = {name: str(Path(folder) / name) for name in ("cache", "budget", "rate_limits")}
        model = model_of("openai", key=key, processors=[{"name": name, "path": path} for name, path in names.items()])
        law(says(model) == "kept", "it is not answered")
        for path in Path(folder).iterdir():
            law(key.encode() not in path.read_bytes(), f"the key stands in {path.name}")
            if path.suffix == "":
                sqlite3.connect(path).close()


def _random_key(dice: random.Random) -> str:
    """Return a key of unusual characters that is too strong to be left unhidden."""
    odd = "\"'\\\n\t{}[]()*+?^$|. :/é密🔑" + string.ascii_letters + string.digits
    return f"Zq{dice.getrandbits(32):x}#" + "".join(dice.choice(odd) for _ in range(dice.randint(8, 60)))


def _forms(key: str) -> set[str]:
    raw = base64.b64encode(key.encode()).decode().rstrip("=")
    forms = {key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], quote(key, safe=""), raw}
    return forms | {form[:12] for form in forms}


def _talker(key: str, **options: Any) -> FnCallAgent:
    """Create an agent whose tool has the key and whose run repeats it in all fields."""

    class Holder(BaseTool):
        name = "show"
        description = "Shows a text."

        def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            return f"{params['text']} {quote(key)} {json.dumps([key])}"

    Holder.parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    model = ScriptedModel([calls(("show", {"text": f"a{key}b"})), answer(f"It is {key}.")])
    return FnCallAgent([Holder({"api_key": key})], model, name="talker", **options)


def _written_by(writer: str, key: str, folder: Path) -> str:
    agent = _talker(key)
    secrets = secrets_of(agent, settings=agent.host.settings)
    match writer:
        case "record":
            store = MemoryStore()
            _talker(key, store=store).ask(f"Is it {key}?")
            return "\n".join(line for kept in store.kept.values() for line in (str(kept.run), *kept.entries))
        case "events":
            hidden = HiddenEvents(secrets)
            events = sync.iterate(agent.astream(f"Is it {key}?"))
            told = [one for event in events for one in hidden.feed(event)] + hidden.rest()
            return "\n".join(map(json.dumps, told)) + "".join(str(one.get("text", "")) for one in told)
        case "saved run":
            call = Message("assistant", "", function_call=FunctionCall("show", json.dumps({"text": key})))
            save_run(folder / "run", [Message("user", key), call], "approval_needed", secrets)
            law(load_run(folder / "run", secrets)[-1] == call, "what is resumed is not what was saved")
            return (folder / "run").read_text()
        case "cassette":
            with Cassette(folder / "tape", "record") as tape:
                tape.add_secrets(secrets_in(agent))
                FnCallAgent([*agent.function_map.values()], tape.wrap(agent.model)).ask(f"Is it {key}?")
            return (folder / "tape").read_text()
        case _:
            log = io.StringIO()
            handler = logging.StreamHandler(log)
            handler.addFilter(HideInLogs(secrets))
            handler.handle(logging.makeLogRecord({"msg": "failed with %s", "args": (key,)}))
            return log.getvalue()


WRITERS = ("record", "events", "saved run", "cassette", "log")


def _write(writer: str, key: str) -> None:
    """Check that no writer reveals a key, and that a key which is an ordinary word changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        written = _written_by(writer, key, Path(folder))
        for path in Path(folder).iterdir():
            law(path.stat().st_mode & 0o077 == 0, f"others can read {path.name}")
    for form in _forms(key):
        law(form not in written, f"the key stands in the {writer} as {form!r}")
    with tempfile.TemporaryDirectory() as folder:
        law("[secret" not in _written_by(writer, "assistant", Path(folder)), "a word was hidden")


def _command(form: str, place: str, key: str, words: tuple[str, ...]) -> None:
    server = server_of("openai")
    server.clear()
    server.respond(lambda request: _echo(request, str, form))
    url = server.url.replace("://", f"://user:{key}@") if place == "userinfo" else server.url
    more = {"OPENAI_API_KEY": key} if place == "environment" else {"OPENAI_API_KEY": "sk-other"}
    command = [
        sys.executable,
        "-m",
        "jackfield",
        "--trace",
        "run",
        "-m",
        "openai:m",
        "--base-url",
        url,
        *words,
        "hello",
    ]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **more}, timeout=60, check=False)
    law(b"Traceback" not in done.stderr, "a traceback")
    law(key.encode() not in done.stdout + done.stderr, "the key stands in what the command prints")


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    def key() -> str:
        return f"sk-Marked-{dice.getrandbits(64):x}Zz"

    places = [(backend, place) for backend, place in itertools.product(BACKENDS, PLACES) if _can(backend, place)]
    for (backend, place), form in itertools.product(places, FORMS):
        yield Attempt(f"{backend}, key in {place}, server: {form}", partial(_search, backend, place, form, "", key()))
        if form in ("401", "well"):
            yield Attempt("files of processors", partial(_cached, key()))
    for form, place, words in itertools.product(("401", "stream"), ("environment", "userinfo"), ((), ("--json",))):
        name = f"the command, key in {place}, server: {form} {' '.join(words)}"
        yield Attempt(name, partial(_command, form, place, key(), words), timeout_s=60)
    for _ in range(4):
        for writer in WRITERS:
            yield Attempt(f"a {writer}", partial(_write, writer, _random_key(dice)))
    while True:
        yield Attempt("a writer", partial(_write, dice.choice(WRITERS), _random_key(dice)))
        (backend, place), form, change = dice.choice(places), dice.choice(FORMS), dice.choice(list(CHANGES))
        name = f"{backend}, key in {place}, server: {form} {change}"
        yield Attempt(name, partial(_search, backend, place, form, change, key()))


def _can(backend: str, place: str) -> bool:
    return place != "token" or backend == "azure"


KIND = Kind("A key is sent to its own server and appears nowhere else.", _attempts, quick=30)
