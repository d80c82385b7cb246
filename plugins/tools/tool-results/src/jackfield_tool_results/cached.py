"""The `cached_results` toolset: reuse a tool's result for the same arguments."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple, Protocol

from pydantic import Field

from jackfield import sync
from jackfield.config import PathText, without_secrets
from jackfield.errors import ConfigError
from jackfield.messages import ContentItem
from jackfield.secrets import secrets_of
from jackfield.tools import BaseTool, FunctionTool, PluginTool, Safety, ToolContext, ToolResult
from jackfield_local_state.cachefile import CacheFile
from jackfield_tool_results.watched import watch_deps
from jackfield_tool_results.wrapping import WrappedTool, WrappingConfig, WrappingToolset

FORMAT = 2
"""Incremented whenever call keys or the result format change, so that older results are never found."""
APPLICATION_ID = 0x4A465452
_log = logging.getLogger(__name__)


class CachedResultsConfig(WrappingConfig):
    """Settings for caching: which tools, where, for how long and how much."""

    ttl_s: float = Field(default=3600.0, gt=0, description="Seconds after which a result expires")
    max_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=1,
        description="Maximum total size in bytes; the least recently used results are deleted first",
    )
    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="SQLite file for the results; if unset, they are kept in memory with the agent",
    )
    scope: str = Field(
        default="", description="Scope within which results are reused: an account, a tenant, a data set"
    )
    key: Callable[[ToolContext[Any]], str] | None = Field(
        default=None,
        repr=False,
        description="Function that takes the call's context and returns the name of the caller, such as the "
        "user in `deps`",
    )


class CachedResults(WrappingToolset):
    """Reuses a tool's result for the same arguments. Errors are not cached.

    A tool that reads `context.deps` may return a different result to each caller. Its results are cached only if `key`
    or `scope` is set; otherwise, a warning is logged and the tool is called each time.
    """

    config_class = CachedResultsConfig
    config: CachedResultsConfig
    name = "cached_results"
    needs = "cacheable"

    def __init__(
        self,
        cfg: CachedResultsConfig | Mapping[str, object] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._clock = clock
        self._store = _store_of(self, clock)
        self._here = uuid.uuid4().hex
        self._personal: set[str] = set()  # names of tools whose results are for one caller

    def applies_to(self, safety: Safety) -> bool:
        """Return True if the tool's results may be cached."""
        return safety.cacheable

    def wrapped(self, tool: BaseTool) -> WrappedTool:
        """Wrap a tool so that its results are cached."""
        return _CachedTool(tool, self._store, self.config, self._personal, here=self._here, clock=self._clock)


class _CachedTool(WrappedTool):
    def __init__(
        self,
        inner: BaseTool,
        store: _Store,
        config: CachedResultsConfig,
        personal: set[str],
        *,
        here: str,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(inner)
        self._store = store
        self._scope = config.scope
        self._key_of_caller = config.key
        self._personal = personal
        self._here = here
        self._clock = clock

    async def around(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        key = self._key(arguments, context) if self.safety().cacheable and self.name not in self._personal else None
        if key is None:
            return await self.call_inner(arguments, context)
        hit = await self._store.get(key)
        if hit is not None and (result := _decode(hit.content)) is not None:
            age_s = round(max(0.0, self._clock() - hit.made_at), 3)
            return ToolResult(result.content, {**result.metadata, "cached": True, "age_s": age_s})
        is_for_anybody = not (self._scope or self._key_of_caller)
        watched = watch_deps(context, self._note_deps) if is_for_anybody else context
        result = await self.call_inner(arguments, watched)
        if self.name not in self._personal and (content := _encode(result)) is not None:
            await self._store.put(key, content)
        return result

    def _note_deps(self) -> None:
        if self.name not in self._personal:
            self._personal.add(self.name)
            _log.warning(
                "results of %s are not cached: the tool reads context.deps, so they may be specific to a "
                "caller; set `key` (a "
                "function of the context) or `scope` of cached_results",
                self.name,
            )

    def _key(self, arguments: Mapping[str, Any], context: ToolContext) -> bytes | None:
        """Return a 32-byte key that is the same for equal calls, or None if the arguments are not JSON."""
        caller = self._caller(context)
        called = [FORMAT, self._scope, caller, context.lang, _identity_of(self.inner, self._here), arguments]
        try:
            text = json.dumps(called, sort_keys=True, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            _log.warning("not caching a result of %s: its arguments are not JSON-serializable (%s)", self.name, error)
            return None
        return hashlib.sha256(text.encode("ascii")).digest()

    def _caller(self, context: ToolContext) -> str:
        """Return the name of the caller whose results may be reused, or '' if no `key` is set.

        Raises:
            ConfigError: `key` did not return a non-empty string.
        """
        if self._key_of_caller is None:
            return ""
        caller = self._key_of_caller(context)
        if type(caller) is not str or not caller:
            raise ConfigError(
                f"cached_results: `key` must return a string that identifies the caller, got {caller!r:.100}"
            )
        return caller


def _identity_of(tool: BaseTool, here: str) -> list[object]:
    """Return a tool's identity: its version and its settings without secrets.

    Parts that cannot be identified outside this process, such as objects or closures, are replaced by `here`.
    """
    if isinstance(tool, WrappedTool):
        return [type(tool).__qualname__, *_identity_of(tool.inner, here)]
    if isinstance(tool, PluginTool):
        settings = json.loads(json.dumps(without_secrets(tool.cfg), default=repr))
        return [tool.row.distribution, tool.row.version, tool.name, settings]
    if isinstance(tool, FunctionTool) and isinstance(function := tool.function_called, FunctionType):
        code = _instructions_of(function.__code__)
        defaults = repr((function.__defaults__, function.__kwdefaults__))
        state = here if function.__closure__ else ""
        return [function.__module__, function.__qualname__, tool.name, code, defaults, state]
    return [type(tool).__module__, type(tool).__qualname__, tool.name, here]


def _instructions_of(code: CodeType) -> list[object]:
    """Return a function's behaviour: its instructions with their names and constants.

    `marshal` is unsuitable because its output for the same function changes once a constant is referenced elsewhere.
    """
    constants = [_instructions_of(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    names = [code.co_names, code.co_varnames, code.co_freevars]
    return [code.co_code.hex(), code.co_exceptiontable.hex(), names, constants]


def _encode(result: ToolResult) -> bytes | None:
    content = result.content
    items = None if isinstance(content, str) else [item.model_dump(mode="json") for item in content]
    try:
        text = json.dumps([content if items is None else items, dict(result.metadata)], separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        _log.warning("not caching a result: its metadata is not JSON-serializable (%s)", error)
        return None
    return text.encode("ascii")


def _decode(data: bytes) -> ToolResult | None:
    """Decode a result that may have been modified on disk, or return None if it is invalid."""
    try:
        content, metadata = json.loads(data)
        if not isinstance(content, str):
            content = [ContentItem.model_validate(item) for item in content]
        return ToolResult(content, dict(metadata))
    except (ValueError, TypeError, RecursionError) as error:
        _log.warning("cannot read a cached result, so calling the tool (%s)", type(error).__name__)
        return None


# --- storage -------------------------------------------------------------------------------------------------


class _Entry(Protocol):
    @property
    def content(self) -> bytes: ...

    @property
    def made_at(self) -> float: ...


class _Store(Protocol):
    async def get(self, key: bytes) -> _Entry | None: ...

    async def put(self, key: bytes, content: bytes) -> None: ...


def _store_of(entry: CachedResults, clock: Callable[[], float]) -> _Store:
    config = entry.config
    if config.path is None:
        return _Memory(ttl_s=config.ttl_s, max_bytes=config.max_bytes, clock=clock)
    return _Disk(
        CacheFile(
            Path(config.path).expanduser().absolute(),
            application_id=APPLICATION_ID,
            owner="jackfield-tool-results",
            what="tool results",
            instead="tools will be called instead",
            ttl_s=config.ttl_s,
            max_bytes=config.max_bytes,
            clock=clock,
        ),
        entry,
    )


class _Disk:
    """Stores results in a file, except those that contain a known secret. Redacting a result would change it."""

    def __init__(self, file: CacheFile, entry: CachedResults) -> None:
        self._file = file
        self._entry = entry

    async def get(self, key: bytes) -> _Entry | None:
        return await sync.in_worker(self._file.get, key)

    async def put(self, key: bytes, content: bytes) -> None:
        # A call that is cancelled now has still been made.
        await asyncio.shield(sync.in_worker(self._put, key, content))

    def _put(self, key: bytes, content: bytes) -> None:
        if secrets_of(self._entry).are_in(content.decode("ascii")):
            _log.warning("not caching a result: it contains a secret")
        else:
            self._file.put(key, content)


class _Kept(NamedTuple):
    content: bytes
    made_at: float


class _Memory:
    """Stores results in this process. Safe for several event loops because no method awaits anything."""

    def __init__(self, *, ttl_s: float, max_bytes: int, clock: Callable[[], float]) -> None:
        self._ttl_s = ttl_s
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[bytes, _Kept] = OrderedDict()
        self._size = 0

    async def get(self, key: bytes) -> _Entry | None:
        hit = self._entries.get(key)
        if hit is None or self._clock() - hit.made_at >= self._ttl_s:
            return None
        self._entries.move_to_end(key)
        return hit

    async def put(self, key: bytes, content: bytes) -> None:
        if len(content) > self._max_bytes:
            return  # it would evict all the others, and then itself
        self._drop(key)
        self._entries[key] = _Kept(content, self._clock())
        self._size += len(content)
        while self._size > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: bytes) -> None:
        gone = self._entries.pop(key, None)
        self._size -= len(gone.content) if gone else 0
