"""Record a model's answers once, and replay them without its backend, API key or network.

```python
with Cassette("tests/cassettes/weather.json", mode="replay") as tape:
    agent = FnCallAgent(llm=tape.chat_model("openai:gpt-x"), function_list=[weather])
```

Recording happens between the core and its backends, so it works with any backend. Retries, call formats and other
processors run as usual.
"""

from __future__ import annotations

import difflib
import json
import threading
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from jackfield import ChatRequest, GenerateConfig, LLMConfig, ModelFacts
from jackfield.errors import ModelServiceError
from jackfield.events import ModelEvent, ModelFinished
from jackfield.models import BaseChatModel, get_chat_model
from jackfield.processors import Processor, closing
from jackfield.secrets import Secret, environment_secrets, secrets_in
from jackfield_records.eventjson import model_event_from_json
from jackfield_testkit.redaction import Redaction
from jackfield_testkit.tape import (
    Call,
    CassetteError,
    Json,
    error_json,
    error_of,
    event_json,
    key_of,
    read_tape,
    redact_events,
    request_json,
    write_tape,
)

__all__ = ["Cassette", "CassetteError", "Mode", "TapedModel"]

Mode = Literal["replay", "record", "auto"]
_LONGEST_DIFFERENCE = 40  # lines


class Cassette:
    """Recorded answers, looked up by request.

    Calls are matched by model, messages, functions and options, regardless of their order. Identical calls are answered
    in the order in which they were recorded. Options that only affect waiting are ignored, and so are `metadata`,
    headers and the caller's own `extra`. Local files are compared by content.

    Args:
        path: The JSON file, which is written when the block exits, even with an error.
        mode: `replay` never calls a model. `record` always calls the model and overwrites the file. `auto` replays
            calls on the tape and records the others.
        secrets: Strings that must not be written, in addition to the secrets of the recorded models and the environment
            (`jackfield.secrets`) and strings that look like a key. They are not restored.
        names: Strings that differ between runs, such as a temporary directory, with their replacements. They are
            restored on replay.
    """

    def __init__(
        self,
        path: str | Path,
        mode: Mode = "replay",
        *,
        secrets: Iterable[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        if mode not in ("replay", "record", "auto"):
            raise ValueError(f"mode must be 'replay', 'record' or 'auto', got {mode!r}")
        self.path = Path(path)
        self.mode: Mode = mode
        self._redaction = Redaction(secrets, names, environment_secrets())
        self._models: dict[str, ModelFacts] = {}
        self._calls: list[Call] = []
        self._waiting: defaultdict[str, deque[Call]] = defaultdict(deque)
        self._missed: list[CassetteError] = []
        self._lock = threading.Lock()
        self._opened = False
        self._asked = 0

    def __enter__(self) -> Self:
        if self.mode == "replay" or (self.mode == "auto" and self.path.exists()):
            self._models, self._calls = read_tape(self.path)
            for call in self._calls:
                self._waiting[call.key].append(call)
        self._opened = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened = False
        if self._asked or self.mode == "record":
            # Requests made before an error cost money as well.
            whole = [call for call in self._calls if call.events or call.error]
            write_tape(self.path, self._models, self._clean(whole))
        if kind is None and self._missed:
            # The error was turned into an answer, as agents do with tool errors.
            raise self._missed[0].with_traceback(None)

    @property
    def unplayed(self) -> int:
        """The number of recorded calls that were not replayed."""
        return sum(not call.played for call in self._calls)

    @property
    def asked(self) -> int:
        """The number of calls that were made to a model instead of being replayed."""
        return self._asked

    # --- models ---

    def wrap(self, model: BaseChatModel) -> TapedModel:
        """Wrap a model to record or replay its answers, preserving its processors."""
        return TapedModel(self, model.config, backend=model.backend, inner=model)

    def chat_model(self, cfg: str | Mapping[str, Any] | LLMConfig) -> TapedModel:
        """Create a model like `jackfield.get_chat_model`. On replay, the backend does not have to be installed.

        Raises:
            CassetteError: The mode is `replay`, and the tape does not contain this model.
        """
        if self.mode != "replay":
            return self.wrap(get_chat_model(cfg))
        config = _generic_config(cfg)
        return TapedModel(self, config, backend=self._backend_of(config), inner=None)

    def _backend_of(self, config: LLMConfig) -> str:
        """Return the backend with which a model was recorded."""
        recorded = [name.partition(":") for name in self._models]
        backends = [backend for backend, _, model in recorded if model == config.model]
        wanted = (config.model_type or "").rpartition("/")[2]
        if wanted in backends:
            return wanted
        if len(backends) == 1:
            return backends[0]
        known = ", ".join(sorted(self._models)) or "none"
        raise CassetteError(
            f"{self.path} contains no model {wanted}:{config.model}; available: {known}. Record the model first"
        )

    def facts_of(self, name: str) -> ModelFacts:
        """Return the facts of a recorded model.

        Raises:
            CassetteError: The tape does not contain the model.
        """
        if name not in self._models:
            raise CassetteError(f"{self.path} contains no model {name}: record it with mode='record' or mode='auto'")
        return self._models[name]

    def add_secrets(self, known: Iterable[Secret]) -> None:
        """Keep more secrets off the tape, such as an agent's: `add_secrets(secrets_in(agent))`."""
        with self._lock:
            self._redaction.add(known)

    def add_model(self, name: str, facts: ModelFacts, secrets: Iterable[Secret]) -> None:
        """Register a model for recording."""
        self.add_secrets(secrets)
        with self._lock:
            if self.mode != "replay":
                self._models[name] = facts

    # --- calls ---

    def ask(self, name: str, request: ChatRequest) -> Call | None:
        """Return the recorded answer to a request, or None if the model must be called.

        Raises:
            CassetteError: No answer is recorded, and the mode is `replay`. The message shows the most similar request.
        """
        if not self._opened:
            raise CassetteError(f"cassette {self.path} is not open: use the model inside `with Cassette(…)`")
        if self.mode == "record":
            return None
        asked = request_json(request, self._redaction)
        key = key_of(name, asked)
        with self._lock:
            if self._waiting[key]:
                call = self._waiting[key].popleft()
                call.played = True
                return call
        if self.mode == "auto":
            return None
        error = CassetteError(self._absence(name, asked, key))
        self._missed.append(error)
        raise error

    def start(self, name: str, request: ChatRequest) -> Call:
        """Start recording an answer."""
        call = Call(name, request_json(request, self._redaction), played=True)
        with self._lock:
            self._asked += 1
            self._calls.append(call)
        return call

    def drop(self, call: Call) -> None:
        """Discard a recording that ended with an error that a tape cannot represent."""
        with self._lock:
            self._calls = [one for one in self._calls if one is not call]

    def played(self, call: Call) -> Iterable[ModelEvent]:
        """Return the events of a recorded answer, in order."""
        return [model_event_from_json(self._redaction.restored(event)) for event in call.events]

    def error_of(self, error: ModelServiceError) -> Json:
        """Serialize an error for the tape."""
        return error_json(error, self._redaction)

    def _clean(self, calls: list[Call]) -> list[Call]:
        # Once more at the end, because a key that was added late may occur in an early call.
        return [
            Call(
                call.model,
                self._redaction.value(call.request),
                redact_events(call.events, self._redaction),
                self._redaction.value(call.error),
                call.left,
            )
            for call in calls
        ]

    def _absence(self, name: str, asked: Json, key: str) -> str:
        same = sum(call.key == key for call in self._calls)
        if same:
            return (
                f"{self.path}: {name} received the same request more often than recorded; recorded responses: {same}. "
                f"Re-record the cassette, or make fewer requests"
            )
        wanted = _shown(name, asked)
        nearest = max(self._calls, key=lambda call: _likeness(wanted, _shown(call.model, call.request)), default=None)
        if nearest is None:
            return f"{self.path} is empty: record it with mode='record'"
        shown = _shown(nearest.model, nearest.request)
        lines = list(difflib.unified_diff(shown, wanted, "on the tape", "asked now", n=1, lineterm=""))
        more = [f"… {len(lines) - _LONGEST_DIFFERENCE} more lines"] if len(lines) > _LONGEST_DIFFERENCE else []
        place = self._calls.index(nearest) + 1
        return (
            f"{self.path} contains no response to this request; the most similar is call {place} of "
            f"{len(self._calls)}. If the change is intended, re-record the cassette (mode='record', or 'auto' "
            "to keep the rest):\n" + "\n".join(lines[:_LONGEST_DIFFERENCE] + more)
        )


class TapedModel(BaseChatModel):
    """A model whose answers are recorded or replayed. Created by `Cassette.wrap` and `Cassette.chat_model`."""

    backend = "cassette"

    def __init__(self, tape: Cassette, config: LLMConfig, *, backend: str, inner: BaseChatModel | None) -> None:
        # Set on the instance, although backends have them on the class, so that errors and histories look the same as
        # without the tape.
        vars(self).update(backend=backend, config_class=type(config))
        super().__init__(config, host=None if inner is None else inner.host)
        self._tape = tape
        self._inner = inner
        self._name = f"{backend}:{config.model}"
        if inner is not None:
            tape.add_model(self._name, inner.facts, secrets_in(inner))

    @property
    def facts(self) -> ModelFacts:
        """The model's facts, either live or as recorded."""
        return self._tape.facts_of(self._name) if self._inner is None else self._inner.facts

    def processors(self, config: GenerateConfig | None = None) -> list[Processor]:
        """Return the model's own processor chain."""
        return super().processors(config) if self._inner is None else self._inner.processors(config)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Replay the answer, or ask the model and record its answer."""
        call = self._tape.ask(self._name, request)
        events = self._recorded(request) if call is None else self._replayed(call)
        async with closing(events):
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Close the model if it was used."""
        if self._inner is not None and self._tape.mode != "replay":
            await self._inner.aclose()

    async def _replayed(self, call: Call) -> AsyncIterator[ModelEvent]:
        for event in self._tape.played(call):
            yield event
        if call.error is not None:
            raise error_of(call.error)
        if call.left:
            raise CassetteError(
                f"{self._tape.path}: the recorded response is incomplete, because the caller stopped reading early: "
                "re-record the cassette"
            )

    async def _recorded(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        inner = self._inner
        if inner is None:
            raise CassetteError(f"{self._tape.path}: {self._name} can only be replayed: record it with mode='record'")
        call = self._tape.start(self._name, request)
        call.left = True
        try:
            async with closing(inner.stream(request)) as events:
                async for event in events:
                    call.events.append(event_json(event))
                    call.left = not isinstance(event, ModelFinished)
                    yield event
            call.left = False
        except ModelServiceError as error:
            call.left = False
            call.error = self._tape.error_of(error)
            raise
        except Exception:
            self._tape.drop(call)
            raise


def _generic_config(cfg: str | Mapping[str, Any] | LLMConfig) -> LLMConfig:
    """Return a configuration without backend-specific settings, keys and addresses."""
    if isinstance(cfg, str):
        backend, colon, model = cfg.partition(":")
        cfg = {"model_type": backend, "model": model} if colon else {"model": cfg}
    elif isinstance(cfg, LLMConfig):
        cfg = {name: getattr(cfg, name) for name in cfg.model_fields_set}
    kept = ("model", "model_type", "generate_cfg", "processors")
    return LLMConfig.parse({name: cfg[name] for name in kept if name in cfg}, what="the model of a cassette")


def _shown(model: str, request: Json) -> list[str]:
    """Format a request as lines that can be compared."""
    return json.dumps({"model": model, **request}, indent=1, ensure_ascii=False, sort_keys=True).splitlines()


def _likeness(wanted: list[str], shown: list[str]) -> int:
    """Count the lines that two requests share. This takes linear time, unlike a real diff."""
    return 2 * (Counter(wanted) & Counter(shown)).total() - len(shown)
