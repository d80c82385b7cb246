"""Addresses, names, headers and paths that underlying libraries reject, with exceptions that must not reach users."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import partial

from attacks.kind import Attempt, Kind, law
from attacks.speaking import BACKENDS, model_of, run, says, server_of
from jackfield import create_agent
from jackfield.agents import FnCallAgent
from jackfield.messages import ContentItem, Message
from jackfield.models import get_chat_model
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import Workspace
from jackfield_agent_files.files import load_agent_config
from jackfield_testkit import replies

URLS = (
    *(
        "http://a..b/v1",
        "http://.a/v1",
        "http://" + "a" * 300 + "/v1",
        "http://127.0.0.1:0/v1",
        "http://127.0.0.1:99999/v1",
    ),
    *(
        "http://127.0.0.1:-1/v1",
        "http://127.0.0.1:x/v1",
        "http://[::1/v1",
        "http://[zz]/v1",
        "http://",
        "http:///v1",
        "ftp://a/v1",
    ),
    *(
        "socks5://127.0.0.1:9",
        "http+unix://x",
        "HTTP://127.0.0.1:9/v1",
        "http://127.0.0.1:9/\x00",
        "http://127.0.0.1:9/ a\n",
    ),
    *(
        "http://\ud800/v1",
        "http://127.0.0.1:9/\ud800",
        "http://ä.test./v1",
        "http://xn--\x80/v1",
        "//127.0.0.1:9",
        "127.0.0.1:9",
    ),
    *(
        "http://a@b@127.0.0.1:9/v1",
        "http://127.0.0.1:9/v1?a=\r\nX: y",
        "http://%00/v1",
        "http://0x7f.1:9/v1",
        "data:,x",
        "",
    ),
)
TEXTS = ("\x00", "\ud800", "a\nb", "a\r\nX: y", "录音室", "\x7f", " ", "a" * 100_000, "\u2028", "é", "\U000e0041")
PATHS = ("a\0b", "\ud800", "x" * 5000, "", "/dev/null", "/proc/self/mem", ".", "/", "~\0", "a\nb", "\udcff.txt")


def _url(backend: str, url: str) -> None:
    said = says(model_of(backend, url))
    law(False, f"nobody is there, and answered {said!r}")


def _proxy(backend: str, url: str) -> None:
    says(model_of(backend, proxy=url))


def _text(place: str, backend: str, text: str) -> None:
    server = server_of(backend)
    server.clear()
    server.respond(lambda _: replies.text("fine"))
    match place:
        case "key":
            says(model_of(backend, key=text))
        case "model":
            says(model_of(backend, model=text))
        case "header name":
            says(model_of(backend, generate_cfg={"extra_headers": {text: "x"}}))
        case "header":
            says(model_of(backend, generate_cfg={"extra_headers": {"X-A": text}}))
        case "question":
            says(model_of(backend), text)
        case "stop":
            says(model_of(backend, generate_cfg={"stop": [text]}))
        case "tool":
            run(FnCallAgent([], model_of(backend), system_message=text, name=text))


def _path(place: str, path: str) -> None:
    script = ScriptedModel([answer("fine")])
    match place:
        case "file of an agent":
            run(create_agent("assistant", llm=script, files=[path]), "what?")
        case "file of a message":
            run(FnCallAgent([], script), [Message("user", [ContentItem(file=path)])])
        case "image of a message":
            says_image(path)
        case "configuration":
            load_agent_config(path)
        case "workspace":
            Workspace(path)
        case "cache":
            says(model_of("openai", processors=[{"name": "cache", "path": path}]))
        case "model":
            get_chat_model(path)


def says_image(path: str) -> None:
    """Ask a question about an image."""
    model = model_of("openai")
    run(FnCallAgent([], model), [Message("user", [ContentItem(text="what?"), ContentItem(image=path)])])


def _response(headers: dict[str, str], body: bytes, status: int) -> None:
    server = server_of("openai")
    server.clear()
    server.reply(replies.raw(body, headers, status=status))
    says(model_of("openai"))


RESPONSES: dict[str, tuple[dict[str, str], bytes, int]] = {
    "gzip that is none": ({"Content-Encoding": "gzip"}, b"no gzip", 200),
    "a bomb": ({"Content-Encoding": "gzip", "Content-Type": "application/json"}, b"", 200),
    "an unknown encoding": ({"Content-Encoding": "x-odd"}, b"{}", 200),
    "an unknown charset": ({"Content-Type": "application/json; charset=odd"}, b"{}", 200),
    "UTF-16": ({"Content-Type": "application/json"}, '{"choices": []}'.encode("utf-16-le"), 200),
    "a length that is none": ({"Content-Length": "many"}, b"{}", 200),
    "a length too short": ({"Content-Length": "1"}, b'{"a": 1}', 200),
    "two codings": ({"Transfer-Encoding": "gzip, chunked"}, b"zz\r\n", 200),
    "a redirect to itself": ({"Location": "/v1/chat/completions"}, b"", 307),
    "a redirect elsewhere": ({"Location": "http://a..b/"}, b"", 302),
    "no status": ({}, b"", 204),
    "an odd status": ({}, b"x", 999),
    "a pause of a century": ({"Retry-After": "1e10"}, b"{}", 429),
    "a pause that is none": ({"Retry-After": "nan"}, b"{}", 503),
    "deep JSON": ({"Content-Type": "application/json"}, b"[" * 200_000, 200),
    "a huge number": ({"Content-Type": "application/json"}, b'{"choices": ' + b"9" * 10_000 + b"}", 200),
    "a header of controls": ({"X-A": "\x01\x7f"}, b"{}", 400),
}


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    for backend, url in itertools.product(BACKENDS, URLS):
        yield Attempt(f"{backend} at {url[:60]!r}", partial(_url, backend, url))
    places = ("key", "model", "header name", "header", "question", "stop", "tool")
    for backend, place, text in itertools.product(BACKENDS, places, TEXTS):
        yield Attempt(f"{backend}, {place} {text[:30]!r}", partial(_text, place, backend, text))
    files = (
        "file of an agent",
        "file of a message",
        "image of a message",
        "configuration",
        "workspace",
        "cache",
        "model",
    )
    for place, path in itertools.product(files, PATHS):
        if not path and place.endswith("message"):
            continue  # messages have no such item
        yield Attempt(f"{place} {path[:30]!r}", partial(_path, place, path))
    for name, (headers, body, status) in RESPONSES.items():
        yield Attempt(f"a response with {name}", partial(_response, headers, body, status))
    letters = "ab.:/@[]%#?&=\x00\r\n \ud800é录0123456789-"
    while True:
        backend, text = dice.choice(list(BACKENDS)), "".join(dice.choices(letters, k=dice.randrange(1, 25)))
        if dice.random() < 0.5:
            yield Attempt(
                f"{backend} at http://127.0.0.1:9{text!r}", partial(_url, backend, f"http://127.0.0.1:9{text}")
            )
        else:
            place = dice.choice(places)
            yield Attempt(f"{backend}, {place} {text!r}", partial(_text, place, backend, text))


KIND = Kind(
    "If an underlying library rejects a value, a Jackfield error with a message is raised.", _attempts, 0.7, quick=140
)
