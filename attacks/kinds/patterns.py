"""Patterns, schemas, encodings and texts that cost far more than their length, from every external source."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import random
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, ClassVar

from attacks.kind import Attempt, Kind, law
from attacks.speaking import model_of, server_of
from jackfield import BaseTool, call_tool
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.jsonschemas import SchemaChecker, UncheckableError, fault_of_schema
from jackfield.normal_forms import normalize
from jackfield.patterns import PatternError, compile_pattern
from jackfield_documents import DocumentReader
from jackfield_testkit import replies

MOST_TURNS_MISSED_S = 2.0  # even on a busy machine; each of these once took minutes or hours
PATTERNS = (
    *(
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "(a*)*b",
        "(.*)*x",
        r"(\w+\s?)*$",
        "(x+x+)+y",
        "(.*a){20}",
        "a{0,900}a{0,900}b",
    ),
    *("[ab]*a[ab]{900}c", r"(\s*\s*)*x", "((a{0,30}){30}){1}b", "(?:a?){900}a{900}", r"^(\d+)*$", "(a|b|ab)*c"),
)
TEXT = "a" * 50_000 + "!"
CHARSETS = ("punycode", "idna", "unicode_escape", "utf-7", "hex", "zlib", "bz2", "quopri", "rot13", "undefined", "uu")


def _in_schema(keyword: str, pattern: str) -> None:
    schema: dict[str, Any] = {
        "pattern": {"properties": {"a": {"pattern": pattern}}},
        "patternProperties": {"patternProperties": {pattern: {}}, "additionalProperties": False},
        "propertyNames": {"propertyNames": {"pattern": pattern}},
        "$ref": {"$defs": {"x": {"pattern": pattern}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
    }[keyword]
    if not fault_of_schema({"type": "object", **schema}):
        with contextlib.suppress(UncheckableError):
            SchemaChecker(schema).misfits({"a": TEXT, TEXT: 1})


def _of_a_tool(pattern: str) -> None:
    class Hostile(BaseTool):
        name = "hostile"
        description = "A tool of somebody else."
        parameters: ClassVar = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}

        def call(self, params: Any, **_: object) -> str:
            return "called"

    try:
        called = asyncio.run(_called(Hostile()))
    except (ConfigError, ToolServiceError):
        return
    law(called == "called", f"it gave {called!r}")


async def _called(tool: BaseTool) -> object:
    return await asyncio.to_thread(call_tool, tool, {"a": "a" * 3000 + "!"})


def _of_an_answer(pattern: str) -> None:
    server = server_of("openai")
    server.clear()
    server.respond(lambda _: replies.text('{"a": "' + "a" * 3000 + '!"}'))
    model_of("openai").ask("x", output={"type": "object", "properties": {"a": {"pattern": pattern}}}, attempts=1)


def _ladder(keyword: str) -> dict[str, Any]:
    steps = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    return {"type": "object", "$defs": {**steps, "d60": False}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


def _nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return {"type": "object", **schema}


SCHEMAS: dict[str, tuple[Callable[[], dict[str, Any]], Any]] = {
    **{f"a ladder of {keyword}": (partial(_ladder, keyword), {"a": 1}) for keyword in ("allOf", "anyOf", "oneOf")},
    "a circle": (lambda: {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, {}),
    "a tree of itself": (lambda: {"additionalProperties": {"allOf": [{"$ref": "#"}] * 3}}, _nested(40)),
    "a long enum of many": (lambda: {"additionalProperties": {"items": {"enum": [*range(9000)]}}}, {"a": [-1] * 9000}),
    "many required objects": (lambda: {"required": [{"a": n} for n in range(4000)]}, {}),
    "a bad reference": (lambda: {"$ref": "http://["}, {}),
    "5000 levels": (lambda: _nested(5000), {}),
    "unique numbers of one hash": (
        lambda: {"additionalProperties": {"uniqueItems": True}},
        {"a": [n * (2**61 - 1) for n in range(1, 20_000)]},
    ),
}


def _schema(make: Callable[[], dict[str, Any]], value: Any) -> None:
    schema = make()
    if not fault_of_schema(schema):
        with contextlib.suppress(UncheckableError):
            SchemaChecker(schema).misfits(value)


class _Page(http.server.BaseHTTPRequestHandler):
    """Serves a page in the encoding named in its path."""

    def do_GET(self) -> None:
        body = b"a" * 400_000 + b"-" + b"z9" * 400_000
        self.send_response(200)
        self.send_header("Content-Type", f"text/html; charset={self.path.rpartition('/')[2]}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@cache
def _pages() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def _charset(charset: str) -> None:
    reader = DocumentReader(fetch_cfg={"allow": ["127.0.0.1"]})
    longest = asyncio.run(_longest_wait(reader.read(f"{_pages()}/{charset}")))
    law(longest < MOST_TURNS_MISSED_S, f"nothing else ran for {longest:.1f} s")


async def _longest_wait(work: Any) -> float:
    """Return how long `work` kept the event loop from its next iteration."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    longest, last = 0.0, loop.time()
    while not task.done():
        await asyncio.sleep(0.01)
        longest, last = max(longest, loop.time() - last), loop.time()
    with contextlib.suppress(ToolServiceError):
        await task
    return longest


def _marks(form: Any) -> None:
    law(len(normalize(form, "a" + "\u0301\u0316" * 300_000)) > 100_000, "marks are lost")


def _any_pattern(text: str) -> None:
    with contextlib.suppress(PatternError):
        compile_pattern(text).occurs_in("ab1_ -" * 3000)


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    for charset in CHARSETS:
        yield Attempt(f"a page in {charset}", partial(_charset, charset), timeout_s=30)
    for name, (make, value) in SCHEMAS.items():
        yield Attempt(f"a schema with {name}", partial(_schema, make, value))
    for pattern in PATTERNS:
        for keyword in ("pattern", "patternProperties", "propertyNames", "$ref"):
            yield Attempt(f"{keyword} {pattern}", partial(_in_schema, keyword, pattern))
        yield Attempt(f"a tool with {pattern}", partial(_of_a_tool, pattern))
        yield Attempt(f"an answer with {pattern}", partial(_of_an_answer, pattern))
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield Attempt(f"endless marks in {form}", partial(_marks, form))
    pieces = [*"ab1()[]{},*+?|\\^$.-:=!<&~", "(?:", "(?=", "(?<n>", "{1,99}", r"\w", r"\d", r"\p{L}", "\ud800", "é"]
    while True:
        text = "".join(dice.choices(pieces, k=dice.randrange(1, 40)))
        yield Attempt(f"the pattern {text!r}", partial(_any_pattern, text))


KIND = Kind(
    "The time to process an untrusted pattern, schema, encoding or text is proportional to its length.",
    _attempts,
    0.7,
    quick=60,
)
