"""Processor that asks the next model when one fails."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, ModelResponseError, ModelServiceError, PluginError
from jackfield.events import ModelEvent, PluginEvent, StreamReset
from jackfield.models import ONLY_BEFORE_OUTPUT, BaseChatModel
from jackfield.plugins import Plugins, default_host
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield_fallback.attempts import Attempts
from jackfield_fallback.candidate import Candidate, options_for
from jackfield_fallback.causes import cause_of
from jackfield_fallback.config import FallbackConfig
from jackfield_fallback.rests import Rests

METADATA = "jackfield-fallback"
"""Metadata key that names the model being replaced. A fallback model does not use fallbacks of its own."""
SWITCHED_EVENT = "jackfield-fallback.switched"

Model: TypeAlias = str | Mapping[str, Any] | LLMConfig | BaseChatModel
Models: TypeAlias = Model | Sequence[Model]

_FIRST = ""  # the first model's key for cooldowns; the others use their names
_NOTES = {
    "en": "{failed} could not answer ({cause}); calling {asked} instead",
    "zh": "{failed} 无法回答（{cause}），改为询问 {asked}",
}


class Fallback(Processor):
    """Asks other models when one fails, depending on the cause of the failure.

    Models for the specific cause are asked first, then those for `any`, each in order. Every model has its own
    configuration and processor chain, and receives the messages, functions and options as they were before being
    prepared for the first model. A `StreamReset` discards everything streamed so far; a consumer that cannot handle a
    reset gets the error instead.

    If all models fail, the first model's error is raised, with the other errors in its notes.

    Args:
        cfg, settings: The keys of `FallbackConfig`. A model object is also accepted, but is never closed here.
        host: The host used to look up backends. If None, the installed backends are used.
        clock: A monotonic clock, in seconds.

    Raises:
        ConfigError: A setting is invalid. The message contains no values.
        PluginError: A backend is not installed.
    """

    name: ClassVar[str] = "fallback"
    config_class = FallbackConfig
    config: FallbackConfig
    phase: ClassVar[Phase] = "format"
    # Inside redaction, so that redacted values do not reach other models either. Outside the call format, which each
    # model has for itself.
    after: ClassVar[tuple[str, ...]] = ("redaction",)
    before: ClassVar[tuple[str, ...]] = ("call_format",)

    def __init__(
        self,
        cfg: FallbackConfig | Mapping[str, object] | None = None,
        *,
        host: Plugins | None = None,
        clock: Callable[[], float] = time.monotonic,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._clock = clock
        self._rests = Rests(self.config.cooldown_s, self.config.max_rest_s, clock)
        self._models = _candidates(self.config.by_cause(), host)

    def __repr__(self) -> str:
        named = {cause: [one.name for one in models] for cause, models in self._models.items() if models}
        return f"<Fallback {named}>"

    async def aclose(self) -> None:
        """Close the models created by this processor. They can be used again."""
        for candidate in dict.fromkeys(one for models in self._models.values() for one in models):
            await candidate.aclose()

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Ask the first model, then the others until one answers."""
        if METADATA in request.metadata:
            return call_next(request)
        return self._answer(_Call(request, call_next, self._clock()))

    async def _answer(self, call: _Call) -> AsyncIterator[ModelEvent]:
        to_ask = self._whom_to_begin_with(call)
        while True:
            model = to_ask.pop(0)
            for note in call.announced(model):
                yield note
            try:
                async with closing(self._attempt(call, model)) as events:
                    async for event in events:
                        yield event
            except (ModelServiceError, ConfigError, PluginError) as error:
                self._record_or_raise(call, model, error)
                if model is None and len(call.failures) == 1:
                    to_ask = self._instead(cause_of(error))
            else:
                return
            if not to_ask or not call.may_go_on(self._clock()):
                break
        try:
            raise call.error()
        finally:
            call.failures.clear()  # break the cycle: the traceback refers to this frame, which refers to the call

    def _record_or_raise(self, call: _Call, model: Candidate | None, error: Exception) -> None:
        """Record a model's failure, or raise the error if asking another model would not help."""
        if model is None and not isinstance(error, ModelServiceError):
            raise error  # the error concerns the request, or the first model's own configuration
        call.failures[model] = error
        self._rests.note(_rest_key(model), error)

    async def _attempt(self, call: _Call, model: Candidate | None) -> AsyncIterator[ModelEvent]:
        async with closing(await self._asked(call, model)) as events:
            async for event in events:
                for out in call.attempts.seen(event):
                    yield out
        if not call.attempts.complete:
            raise ModelResponseError(f"{call.shown_name(model)} returned an incomplete response")

    async def _asked(self, call: _Call, model: Candidate | None) -> AsyncIterator[ModelEvent]:
        """Return a model's event stream, either from the rest of this chain or from another model."""
        if model is None:
            return call.call_next(_once(call.request))
        other = await sync.shared_in_worker(model.model)  # may import a backend
        left_s = call.time_left(self._clock())
        own = other.config.generate_cfg
        options = options_for(own, call.request.config, deadline_s=left_s).merged({"lang": call.request.lang})
        if "max_retries" not in own.merged(options).model_fields_set:
            options = options.merged({"max_retries": 0})
        return other.astream(
            call.request.messages,
            call.request.functions,
            config=options,
            metadata={**call.request.metadata, METADATA: call.request.model},
        )

    # --- whom to ask ---

    def _whom_to_begin_with(self, call: _Call) -> list[Candidate | None]:
        """Return the models to ask, in order: the first model, preceded by its substitutes during its cooldown."""
        rest = self._rests.of(_FIRST)
        awake = [one for one in self._for(rest.cause) if not self._rests.of(one.name)] if rest else []
        if rest is None or not awake:
            return [None]
        call.cause = rest.cause
        return [*awake, None]

    def _instead(self, cause: str) -> list[Candidate | None]:
        """Return the models to ask after the first one failed, without those in cooldown unless all of them are."""
        models = self._for(cause)
        return [*([one for one in models if not self._rests.of(one.name)] or models)]

    def _for(self, cause: str) -> list[Candidate]:
        """Return the models for a cause followed by those for any cause, without duplicates."""
        return list(dict.fromkeys([*self._models.get(cause, ()), *self._models["any"]]))


@dataclass(slots=True)
class _Call:
    """The state of one call.

    Attributes:
        request: The original request.
        call_next: The rest of the chain, ending with the first model.
        began_at: The start time, by the clock.
        cause: The reason another model is asked before the first one; '' if the first one comes first.
        failures: The failed models, in order, with their errors. None represents the first model.
    """

    request: ChatRequest
    call_next: CallNext
    began_at: float
    cause: str = ""
    failures: dict[Candidate | None, Exception] = field(default_factory=dict)
    attempts: Attempts = field(default_factory=Attempts)

    def announced(self, model: Candidate | None) -> Iterator[ModelEvent]:
        """Yield the events that announce a switch to this model, or none if it is the first to be asked."""
        if model is None and not self.failures:
            return
        failed = next(reversed(self.failures), None)
        cause = cause_of(self.failures[failed]) if self.failures else self.cause
        switch = {"failed": self.shown_name(failed), "asked": self.shown_name(model), "cause": cause}
        note = _NOTES[self.request.lang].format_map(switch)
        yield PluginEvent(SWITCHED_EVENT, {**switch, "note": note})
        if self.attempts.is_out:
            yield StreamReset(note)
        self.attempts.begin_another()

    def shown_name(self, model: Candidate | None) -> str:
        """Return a model's display name."""
        return self.request.model if model is None else model.name

    def time_left(self, now: float) -> float | None:
        """Return the seconds left before the deadline, or None if there is no deadline."""
        deadline = self.request.config.deadline
        return None if deadline is None else deadline - (now - self.began_at)

    def may_go_on(self, now: float) -> bool:
        """Return True if there is time to ask another model and the consumer can discard earlier output."""
        left_s = self.time_left(now)
        if left_s is not None and left_s <= 0:
            return False
        return not (self.attempts.is_out and self.request.metadata.get(ONLY_BEFORE_OUTPUT))

    def error(self) -> Exception:
        """Return the first model's error with the other errors in its notes."""
        blamed = None if None in self.failures else next(iter(self.failures))
        for model, error in self.failures.items():
            if model is not blamed:
                self.failures[blamed].add_note(f"{self.shown_name(model)}: {type(error).__name__}: {error}")
        return self.failures[blamed]


def _rest_key(model: Candidate | None) -> str:
    return _FIRST if model is None else model.name


def _once(request: ChatRequest) -> ChatRequest:
    """Disable retries unless the request sets their number, because a fallback is available."""
    if "max_retries" in request.config.model_fields_set:
        return request
    return replace(request, config=request.config.merged({"max_retries": 0}))


def _candidates(named: Mapping[str, Sequence[Model]], host: Plugins | None) -> Mapping[str, tuple[Candidate, ...]]:
    """Create the models for each cause. A model listed under several causes is created once."""
    if not any(named.values()):
        return dict.fromkeys(named, ())
    host = host or default_host()
    made: list[tuple[Model, Candidate]] = []

    def candidate(given: Model) -> Candidate:
        for known, one in made:
            if known is given or (not isinstance(given, BaseChatModel) and known == given):
                return one
        made.append((given, Candidate(given, host)))
        return made[-1][1]

    return {cause: tuple(map(candidate, models)) for cause, models in named.items()}
