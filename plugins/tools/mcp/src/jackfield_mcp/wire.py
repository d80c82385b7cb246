"""Salvage messages from a server that contain a single invalid value or entry.

The SDK rejects a whole message because of one value that is nested too deeply, and a whole list because of one entry
that violates the protocol. Here, such a value is replaced by a placeholder, and such an entry is dropped and recorded.

Over stdio, `parse_message` replaces the SDK's parser. Over HTTP, `repair_body` prepares the bytes for the SDK's parser.
In both cases, `SiftedStream` then filters the parsed messages.
"""

from __future__ import annotations

import json
import marshal
import math
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import mcp_types
from mcp.shared.message import SessionMessage
from mcp_types import methods
from pydantic import ValidationError

from jackfield import sync
from jackfield.jsonschemas import SchemaChecker, UncheckableError, fault_of_schema

MOST_LEVELS = 150
"""The maximum nesting depth of a message. The SDK's parser fails at about 200 levels."""
TOO_DEEP = f"[omitted: nested more than {MOST_LEVELS} levels deep]"

STARTED_TASK = "jackfield/started-task"
"""The `_meta` key of a result that only reports a started task."""

_MOST_REPAIRED_BYTES = 2**20  # a larger message is not repaired, because looking at each bracket takes time
_MOST_ENTRIES = 10_000  # of one page
_MOST_LEFT_OUT = 100  # that are named
_MOST_CAUSE = 300  # characters
# Matches strings as a whole, even unterminated ones, so each byte is looked at once.
_BRACKETS_AND_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_LISTS = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}
# No listing has any of these keys, so the lists in a result that has one are left alone.
_KEYS_OF_OTHER_RESULTS = ("content", "contents", "messages")
# The bytes of a schema times those of a result that the event loop checks itself. A keyword has about 20 bytes and a
# value about 5, so this is 2,000 steps of a few microseconds. A worker thread costs a third as much as the whole call.
_QUICK_PRODUCT = 200_000
_COSTLY_KEYWORDS = ("$ref", "$dynamicRef", "pattern", "unevaluated")


def parse_message(line: bytes) -> SessionMessage | None:
    """Parse a line from a server, or return None if it is not a message."""
    try:
        return _parse(line)
    except ValueError:
        fixed = _repair(line)
    try:
        return None if fixed is None else _parse(fixed)
    except ValueError:
        return None


def _parse(line: bytes) -> SessionMessage:
    return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))


def repair_body(body: bytes) -> bytes:
    """Repair JSON that the SDK could not parse. The body is returned unchanged if it is valid or beyond repair."""
    # So few brackets cannot be nested too deeply, and without escapes there is no lone surrogate. Most
    # messages pass here, and only the SDK parses them.
    if body.count(b"{") + body.count(b"[") <= MOST_LEVELS and b"\\u" not in body:
        return body
    try:
        _parse(body)
    except ValueError:
        return _repair(body) or body
    return body


def _repair(text: bytes) -> bytes | None:
    """Replace lone surrogates and values that are nested too deeply. Return None if the text is still not JSON."""
    if len(text) > _MOST_REPAIRED_BYTES:
        return None
    try:
        value = json.loads(_prune(text).decode(errors="replace"))
        return json.dumps(value, ensure_ascii=False).encode(errors="replace")
    except (ValueError, RecursionError):
        return None


def _prune(text: bytes) -> bytes:
    pieces: list[bytes] = []
    level = start = 0
    for match in _BRACKETS_AND_STRINGS.finditer(text):
        if match[0] in (b"{", b"["):
            level += 1
            if level == MOST_LEVELS + 1:
                pieces.append(text[start : match.start()])
        elif match[0] in (b"}", b"]"):
            level -= 1
            if level == MOST_LEVELS:
                pieces.append(json.dumps(TOO_DEEP).encode())
                start = match.end()
    return b"".join([*pieces, text[start:]])


class Entries:
    """Filters malformed entries out of a server's lists, and records them.

    Attributes:
        version: The protocol version to validate against.
        left_out: The reason why an entry was dropped, by kind and name.
    """

    def __init__(self) -> None:
        self.version = "2025-11-25"
        self.left_out: dict[str, str] = {}
        self._output_checkers: dict[str, OutputChecker] = {}

    def leave_out(self, kind: str, name: object, fault: str) -> None:
        """Record that an entry cannot be used."""
        if len(self.left_out) < _MOST_LEFT_OUT:
            self.left_out[f"{kind} {str(name)[:200]!r}"] = fault[:_MOST_CAUSE]

    def leave_out_rest(self, key: str, fault: str) -> None:
        """Record that a list, such as `tools`, was not read to its end."""
        self.left_out[f"rest of the {key}"] = fault

    def sift(self, message: object) -> None:
        """Drop malformed entries from a list response."""
        response = _response_in(message)
        if response is None:
            return
        result = response.result
        for key, method in _LISTS.items():
            entries = result.get(key)
            if isinstance(entries, list) and not any(other in result for other in _KEYS_OF_OTHER_RESULTS):
                if len(entries) > _MOST_ENTRIES:
                    self.leave_out_rest(key, f"a page has more than {_MOST_ENTRIES:,} entries")
                first_entries = entries[:_MOST_ENTRIES]
                if key == "tools":
                    for entry in first_entries:
                        self._take_output_schema(entry)
                result[key] = [
                    entry
                    for position, entry in enumerate(first_entries)
                    if self._is_sound(method, result, key, position, entry)
                ]

    def check_output_schemas(self) -> None:
        """Check the output schemas of the listed tools, and drop those that are unusable.

        Call this in a worker thread, because a schema with 10,000 values takes a second.
        """
        for tool, checker in list(self._output_checkers.items()):
            try:
                checker.prepare()
            except UncheckableError as error:
                self.leave_out("output schema of tool", tool, str(error))
                del self._output_checkers[tool]

    async def misfits_of_output(self, tool: str, structured: object) -> list[str]:
        """Validate a tool's structured result against the output schema that the server declares.

        The check runs in a worker thread unless it is quick, because a result with 10,000 entries takes a third of a
        second.

        Returns:
            A sentence for each violation. Empty if the result is valid, or if there is no usable schema.
        """
        checker = self._output_checkers.get(tool)
        if checker is None:
            return []
        try:
            if checker.is_quick(structured):
                return checker.misfits(structured)
            return await sync.in_worker(checker.misfits, structured)
        except UncheckableError as error:
            self.leave_out("output schema of tool", tool, str(error))
            return []

    def _take_output_schema(self, entry: object) -> None:
        """Remove a tool's output schema before the SDK sees it, because the SDK matches patterns by backtracking."""
        schema = entry.pop("outputSchema", None) if isinstance(entry, dict) else None
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            return
        self._output_checkers.pop(name, None)
        if isinstance(schema, dict):
            self._output_checkers[name] = OutputChecker(schema)

    def _is_sound(self, method: str, result: Mapping[str, Any], key: str, at: int, entry: object) -> bool:
        try:
            methods.validate_server_result(method, self.version, {**result, key: [entry]})
        except KeyError:  # the version has no such list; the SDK says so
            return True
        except ValidationError as error:
            faults = [fault for fault in error.errors(include_url=False) if key in fault["loc"]]
            if not faults:  # the fault is not the entry's
                return True
            where = ".".join(str(part) for part in faults[0]["loc"] if part != key)
            name = entry.get("name") if isinstance(entry, dict) else None
            self.leave_out(key.rstrip("s"), name if isinstance(name, str) else at, f"{where}: {faults[0]['msg']}")
            return False
        return True


class OutputChecker:
    """Validates a tool's structured results. The schema itself is checked by `prepare`, or else on first use."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._checker: SchemaChecker | None = None
        self._schema_bytes = math.inf  # until it is prepared, and if a keyword may multiply the work

    def prepare(self) -> SchemaChecker:
        """Check and compile the schema, unless that has already been done.

        Raises:
            UncheckableError: The schema is invalid, or has a pattern that cannot be matched in bounded time.
        """
        if self._checker is None:
            if fault := fault_of_schema(self._schema):
                raise UncheckableError(fault)
            text = json.dumps(self._schema)
            if not any(keyword in text for keyword in _COSTLY_KEYWORDS):
                self._schema_bytes = len(text)
            self._checker = SchemaChecker(self._schema)
        return self._checker

    def is_quick(self, value: object) -> bool:
        """Return True if checking the value is too quick to hold up the event loop."""
        if self._schema_bytes > _QUICK_PRODUCT:
            return False
        value_bytes = len(marshal.dumps(value))  # type: ignore[arg-type]
        return self._schema_bytes * value_bytes <= _QUICK_PRODUCT

    def misfits(self, value: object) -> list[str]:
        """Return a sentence for each violation of the schema, or [] if the value is valid.

        Raises:
            UncheckableError: The schema is unusable as described in `prepare`, or the check takes too many steps.
        """
        return self.prepare().misfits(value)


def wrap_started_task(message: object) -> None:
    """Move a started task into the `_meta` of an empty result, because the SDK rejects a result that is only a task."""
    response = _response_in(message)
    if response is None or "content" in response.result:
        return
    task = response.result.get("task")
    if isinstance(task, dict):
        response.result = {"content": [], "_meta": {STARTED_TASK: task}}


class SiftedStream:
    """A server's message stream, adapted to what the SDK accepts.

    Malformed list entries are dropped, and started tasks are wrapped as results.
    """

    def __init__(self, stream: Any, entries: Entries) -> None:
        self._stream = stream
        self._entries = entries

    @property
    def last_context(self) -> Any:
        """The context of the last message, or None if the stream has none."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Wait for the next message."""
        return self._prepare(await self._stream.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self._prepare(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(kind, error, trace)

    def _prepare(self, message: Any) -> Any:
        wrap_started_task(message)
        self._entries.sift(message)
        return message


def _response_in(message: object) -> mcp_types.JSONRPCResponse | None:
    if isinstance(message, SessionMessage) and isinstance(message.message, mcp_types.JSONRPCResponse):
        return message.message
    return None
