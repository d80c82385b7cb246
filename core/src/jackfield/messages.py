"""Messages, their parts, and what a model's answer cost.

These are values. Jackfield never changes a message; a changed message is a new one. Plain dicts can be used instead of
them, and they can be turned into dicts, because many callers keep their histories as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Literal, Self, TypeAlias, cast, get_args
from urllib.parse import unquote, urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from jackfield._modelling import BaseModel
from jackfield.errors import InvalidMessageError, ToolArgumentError
from jackfield.jsontext import dumps, loads_lenient

Role = Literal["system", "user", "assistant", "function"]
SYSTEM: Literal["system"] = "system"
USER: Literal["user"] = "user"
ASSISTANT: Literal["assistant"] = "assistant"
FUNCTION: Literal["function"] = "function"

ItemKind = Literal["text", "image", "file", "audio", "video"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "other"]
"""Why an answer ended, in the same terms for all providers.

`stop`: the model ended by itself, or at a stop text. `tool_calls`: it ended by itself, and waits for tools. `length`:
it was cut off at its longest. `content_filter`: the provider's inspection kept the rest back, or the model refused.
`other`: something else, which `provider_reason` names; whatever it is, the answer may be half of one.
"""
FINISH_REASONS: tuple[FinishReason, ...] = get_args(FinishReason)
ITEM_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)

_ROLES = get_args(Role)
_SHORT = 100  # in characters; less says more than its size


# In place of a required argument, so that a dict without it is a ValidationError and not a TypeError.
_MISSING: Any = object()


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not _MISSING}


class DictCompatibleModel(BaseModel):
    """A pydantic model that also reads like a dict: `m["role"]`, `m.get("name")`, `"content" in m`."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def __init__(self, **fields: Any) -> None:
        try:
            BaseModel.__init__(self, **fields)
        except (ValidationError, TypeError) as error:
            raise _malformed(self, error) from None

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setattr__(self, name: str, value: object) -> None:
        before = dict(self.__dict__)
        try:
            super().__setattr__(name, value)
        except (ValueError, TypeError) as error:
            # The rules that look at several fields see the new value in place; refused, it must not stay there.
            self.__dict__.clear()
            self.__dict__.update(before)
            if isinstance(error, ValidationError | TypeError):
                raise _malformed(self, error) from None
            raise InvalidMessageError(f"{name!r} of a {type(self).__name__} cannot be set: {error}") from error

    def __setitem__(self, key: str, value: object) -> None:
        setattr(self, key, value)

    def __contains__(self, key: object) -> bool:
        return key in type(self).model_fields and getattr(self, str(key)) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a field, or `default` where it is missing, None or empty."""
        return getattr(self, key, default) or default

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """As pydantic's, without the fields that are None unless asked for."""
        return super().model_dump(**{"exclude_none": True, **options})

    def model_dump_json(self, **options: Any) -> str:
        """As pydantic's, without the fields that are None unless asked for."""
        return super().model_dump_json(**{"exclude_none": True, **options})

    def __str__(self) -> str:
        return str(_shortened(self.model_dump()))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What `repr` shows: the fields that are set, media by their size."""
        return ((name, _shortened(value)) for name, value in super().__repr_args__() if value is not None)


def _malformed(model: BaseModel, error: ValidationError | TypeError) -> InvalidMessageError:
    """The first thing that is wrong, with the path of its field; without the value, which may be long or secret."""
    if isinstance(error, TypeError):
        return InvalidMessageError(f"a {type(model).__name__} is not valid: a part of it has a key that is not a text")
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    problem = max(problems, key=lambda one: len(one["loc"]))  # the innermost: the others say what else it might be
    same = [one["msg"] for one in problems if len(one["loc"]) == len(problem["loc"]) > 1]
    # Where a value may be of several types, pydantic names each as if it were a field.
    fields = [str(part) for part in problem["loc"] if part != "str" and "[" not in str(part)]
    where = f"{'.'.join(fields)!r} of " if fields else ""
    reason = " or ".join(same[:2] or [problem["msg"]]).removeprefix("Value error, ")
    known = f" (its fields are {', '.join(type(model).model_fields)})" if problem["type"] == "extra_forbidden" else ""
    return InvalidMessageError(f"{where}a {type(model).__name__} is not valid: {reason}{known}")


def _shortened(value: Any) -> Any:
    """A value for people: data URIs, and the data of media, by their size."""
    match value:
        case str() if value.startswith("data:"):
            return _by_size(value, value.partition(",")[0])
        case {"data": str() as data, **others}:
            return {**value, **_shortened(others), "data": _by_size(data, "")}
        case dict():
            return {key: _shortened(entry) for key, entry in value.items()}
        case list():
            return [*map(_shortened, value)]
    return value


def _by_size(data: str, name: str) -> str:
    count = len(data)
    size = f"{count} characters" if count < 10_000 else f"{count / 1000:.0f} thousand characters"
    return data if count <= _SHORT else f"{name[:60]}… ({size})"


class FunctionCall(DictCompatibleModel):
    """A tool call: its name, and its arguments as the JSON text the model wrote.

    The text may be unfinished (in a stream) or broken (a model's slip); `get_parsed_arguments` is where that shows.
    """

    name: str = Field(min_length=1)
    arguments: str

    def __init__(self, name: str = _MISSING, arguments: str = _MISSING, **fields: Any) -> None:
        try:
            BaseModel.__init__(self, **_given(name=name, arguments=arguments), **fields)
        except (ValidationError, TypeError) as error:
            raise _malformed(self, error) from None

    def get_parsed_arguments(self) -> dict[str, Any]:
        """The arguments as a dict; an empty text is an empty dict.

        Raises:
            ToolArgumentError: The text is not a JSON object.
        """
        return read_arguments(self.name, self.arguments)

    def add_argument(self, key: str, value: object) -> FunctionCall:
        """A new call with one argument added or replaced."""
        return FunctionCall(self.name, dumps({**self.get_parsed_arguments(), key: value}))


def read_arguments(name: str, given: object) -> dict[str, Any]:
    """The arguments of a call of a tool as a dict, given as one or as JSON text; an empty text is an empty dict.

    Raises:
        ToolArgumentError: They are not a JSON object; it has a cause if the text is not JSON at all.
    """
    try:
        value = loads_lenient(given if given.strip() else "{}") if isinstance(given, str) else given
    except ValueError as error:
        raise ToolArgumentError(f"the arguments of {name!r} must be one JSON object: {error}") from error
    if not isinstance(value, _MAPPINGS):
        raise ToolArgumentError(f"the arguments of {name!r} must be a JSON object, not {type(value).__name__}")
    return dict(value)


class ContentItem(DictCompatibleModel):
    """One part of a message: exactly one of text, image, file, audio and video is set.

    Media are given as a URL, a path or a `data:` URI; audio also as the dict OpenAI takes, video also as a list of
    frames.
    """

    text: str | None = None
    image: str | None = None
    file: str | None = None
    audio: str | dict[str, Any] | None = None
    video: str | list[str] | None = None

    @model_validator(mode="after")
    def _check_exactly_one(self) -> Self:
        given = [kind for kind in ITEM_KINDS if getattr(self, kind) is not None]
        if not given:
            raise ValueError(f"a content item needs one of {', '.join(ITEM_KINDS)}; none is set")
        if len(given) > 1:
            raise ValueError(
                f"a content item holds one thing, but {' and '.join(given)} are set; use one item for each"
            )
        if not self.value and self.text is None:
            raise ValueError(f"the {given[0]} of a content item is empty")
        return self

    @property
    def type(self) -> ItemKind:
        """Which of the five kinds this is."""
        return self.get_type_and_value()[0]

    @property
    def value(self) -> Any:
        """The value that is set."""
        return self.get_type_and_value()[1]

    def get_type_and_value(self) -> tuple[ItemKind, Any]:
        """The kind and the value, as a pair."""
        return next((kind, value) for kind in ITEM_KINDS if (value := getattr(self, kind)) is not None)

    def is_media_content(self) -> bool:
        """Whether this is an image, audio or video."""
        return self.type in ("image", "audio", "video")

    def get_file_extension(self) -> str:
        """The lower-case extension of the path or URL, without its dot; '' for text, `data:` URIs and no extension."""
        kind, value = self.get_type_and_value()
        if kind == "text" or not isinstance(value, str) or value.startswith("data:"):
            return ""
        path, _ = _path_and_host(value)
        return PurePosixPath(unquote(path.rstrip("/").rpartition("/")[2])).suffix[1:].lower()


def basename_of(location: str) -> str:
    """The last part of a path or URL, percent-decoded: the name that a reader knows.

    It is for display only. A decoded name may hold separators: never open it.
    """
    path, host = _path_and_host(location)
    return unquote(path.rstrip("/").rpartition("/")[2]) or host or location


def _path_and_host(location: str) -> tuple[str, str]:
    """The path of a URL, and its host; of anything else the whole, with slashes."""
    try:
        parts = urlsplit(location)
    except ValueError:  # what begins like a URL and is none
        return location.replace("\\", "/"), ""
    if parts.scheme in ("http", "https", "file"):
        return parts.path, parts.netloc.rpartition("@")[2]  # a user and a password are nobody's to read
    return location.replace("\\", "/"), ""


class Origin(BaseModel):
    """Where a message came from: data that its own backend needs back, and every other backend ignores.

    `data` is opaque (a signature over a model's reasoning, a provider's item id).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: str
    id: str | None = None
    data: dict[str, Any] | None = None


class Message(DictCompatibleModel):
    """One message of a conversation.

    A model's tool calls are one assistant message each; the result of a call is a `function` message with the tool's
    name. `extra["function_id"]` ties the two together, and `extra["error"]` names the failure of a call. `extra` is
    also for the caller's own data; no backend sends it.
    """

    role: Role
    content: str | list[ContentItem] = ""
    reasoning_content: str | list[ContentItem] | None = None
    name: str | None = None
    function_call: FunctionCall | None = None
    extra: dict[str, Any] | None = None
    origin: Origin | None = None

    def __init__(self, role: str = _MISSING, content: str | Sequence[Any] | None = "", **fields: Any) -> None:
        fields["content"] = content
        if role is not _MISSING:
            fields["role"] = role
        try:
            BaseModel.__init__(self, **fields)
        except (ValidationError, TypeError) as error:
            raise _malformed(self, error) from None

    @field_validator("role", mode="before")
    @classmethod
    def _check_role(cls, role: object) -> object:
        if not isinstance(role, str) or role not in _ROLES:
            hint = "; the result of a tool is 'function' here" if role == "tool" else ""
            said = repr(role[:_SHORT]) if isinstance(role, str) else f"a value of type {type(role).__name__}"
            raise ValueError(f"{said} is not a valid role: use one of {', '.join(_ROLES)}{hint}")
        return role

    @field_validator("content", mode="before")
    @classmethod
    def _no_content_is_empty(cls, content: object) -> object:
        if content is None:
            return ""
        if isinstance(content, list | tuple) and any(isinstance(part, Mapping) and "type" in part for part in content):
            from jackfield._openai_forms import translate_part

            return [translate_part(part) for part in content]
        return content

    @model_validator(mode="after")
    def _check_function_has_a_name(self) -> Self:
        if self.role == FUNCTION and not self.name:
            raise ValueError("a function message needs `name`, the tool whose result it is")
        return self

    @property
    def items(self) -> list[ContentItem]:
        """The content as items, however it was written; no items for an empty text."""
        if isinstance(self.content, str):
            return [ContentItem(text=self.content)] if self.content else []
        return self.content

    @property
    def function_id(self) -> str | None:
        """The id that ties a call and its result together."""
        value = (self.extra or {}).get("function_id")
        return None if value is None else str(value)

    @property
    def error(self) -> str:
        """The kind of failure of the call whose result this is; '' if it succeeded, or nothing is known of it."""
        value = (self.extra or {}).get("error")
        return "" if value is None else str(value)

    def is_multimodal(self) -> bool:
        """Whether the content has anything other than text."""
        return not isinstance(self.content, str) and any(item.text is None for item in self.content)

    def get_text_content(self) -> str:
        """The texts of the content, joined by newlines."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(item.text for item in self.content if item.text is not None)

    def replace(self, **changes: Any) -> Message:
        """A new message with some fields changed; everything else is kept, ids included."""
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return Message(**{**kept, **changes})

    def _repr_markdown_(self) -> str:
        from jackfield.display import markdown_of

        return markdown_of([self])

    def _ipython_display_(self) -> None:
        from jackfield.display import show

        show(self._repr_markdown_(), self.get_text_content(), [self])


MessageLike: TypeAlias = Message | Mapping[str, Any]
Messages: TypeAlias = str | MessageLike | Sequence[MessageLike]
"""What a model can be asked: a text, a message, or a whole conversation, oldest first."""
_KEYS = frozenset(Message.model_fields)
# `dict` first: whether something is a Mapping is asked in Python, and a history is long.
_MAPPINGS = (dict, Mapping)


def as_message(value: MessageLike) -> Message:
    """A message from a message or a dict.

    Raises:
        InvalidMessageError: The dict is not a valid message; the text names the key.
    """
    if not isinstance(value, dict) and isinstance(value, Message):
        return value
    if not isinstance(value, _MAPPINGS):
        raise InvalidMessageError(
            f"a message is a Message or a dict with 'role' and 'content', not {type(value).__name__}"
        )
    if not _KEYS.issuperset(value):
        keys: set[Any] = set(value) - _KEYS
        unknown = min(repr(key[:_SHORT]) if isinstance(key, str) else f"of type {type(key).__name__}" for key in keys)
        known = ", ".join(Message.model_fields)
        raise InvalidMessageError(f"a message has no key {unknown} (it has {known}); put your own data into 'extra'")
    if "role" not in value:
        raise InvalidMessageError(f"a message needs 'role', one of {', '.join(_ROLES)}")
    return Message(**value)


def as_messages(values: Messages) -> tuple[Message, ...]:
    """Messages from a text (a user's message), from one message or dict, or from several; messages stay unchanged.

    Dicts may also be OpenAI's: a `tool` message becomes a `function` message, a `developer` one the system's, and an
    assistant's `tool_calls` one message each; their ids are kept.

    Raises:
        InvalidMessageError: `values` is nothing of these, or one of them is not a valid message; the text names which
            one, if there are several, and its key.
    """
    if isinstance(values, str):
        return (Message(USER, values),)
    if isinstance(values, Message | Mapping):
        values = (values,)
    elif not isinstance(cast("Any", values), Iterable) or isinstance(values, bytes | bytearray):
        raise InvalidMessageError(f"messages are a text, a message, or a list of messages, not {type(values).__name__}")
    values = tuple(values)
    if set(map(type, values)) <= {Message}:
        return cast("tuple[Message, ...]", values)
    from jackfield._openai_forms import is_openai_message, translate_messages

    if any(is_openai_message(value) for value in values):
        return tuple(as_message(value) for value in translate_messages(values, _KEYS))
    return tuple(_numbered(place, value, len(values)) for place, value in enumerate(values, start=1))


def _numbered(place: int, value: MessageLike, count: int) -> Message:
    try:
        return as_message(value)
    except InvalidMessageError as error:
        raise error if count == 1 else InvalidMessageError(f"message {place} of {count}: {error}") from None


def want_dicts(values: Messages) -> bool:
    """Whether a caller who sent `values` wants dicts back: all of them are dicts, and there is one."""
    given = [values] if isinstance(values, str | Message | Mapping) or not isinstance(values, Iterable) else values
    return bool(given) and all(isinstance(value, _MAPPINGS) for value in given)


def with_system_text(history: Sequence[Message], text: str, *, first: bool) -> tuple[Message, ...]:
    """The history with a text added to its system message, before or after its text; a new message if there is none."""
    place = _place_of_system(history)
    if not text:
        return tuple(history)
    if place is None:
        return (Message(SYSTEM, text), *history)
    joined = history[place].replace(content=_joined(history[place].content, text, first=first))
    return (*history[:place], joined, *history[place + 1 :])


def without_system_text(history: Sequence[Message], text: str) -> tuple[Message, ...]:
    """The history as it was before `with_system_text(…, text, first=True)`, if that is how it came about."""
    place = _place_of_system(history)
    if place is None or not text:
        return tuple(history)
    message = history[place]
    own = _without_beginning(message.content, text)
    kept = () if message.content and own == "" else (message.replace(content=own),)
    return (*history[:place], *kept, *history[place + 1 :])


def _place_of_system(history: Sequence[Message]) -> int | None:
    return next((place for place, message in enumerate(history) if message.role == SYSTEM), None)


def _joined(content: str | list[ContentItem], text: str, *, first: bool) -> str | list[ContentItem]:
    if isinstance(content, str):
        return "\n\n".join(filter(None, (text, content) if first else (content, text)))
    return [ContentItem(text=text + "\n\n"), *content] if first else [*content, ContentItem(text="\n\n" + text)]


def _without_beginning(content: str | list[ContentItem], text: str) -> str | list[ContentItem]:
    if isinstance(content, str):
        return "" if content == text else content.removeprefix(text + "\n\n")
    return content[1:] if content[:1] == [ContentItem(text=text + "\n\n")] else content


class Usage(DictCompatibleModel):
    """What answers cost. `cost` is None if no price is known; it is never guessed."""

    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    total_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(
        default=0, ge=0, description="Part of prompt_tokens that the provider read from its cache"
    )
    cache_write_tokens: int = Field(
        default=0, ge=0, description="Part of prompt_tokens that the provider wrote to its cache"
    )
    reasoning_tokens: int = Field(default=0, ge=0, description="Part of completion_tokens spent on reasoning")
    cost: Decimal | None = None
    currency: str | None = None

    @model_validator(mode="after")
    def _fill_total(self) -> Self:
        if not self.total_tokens and (self.prompt_tokens or self.completion_tokens):
            # Around the validator of assignments, which would come back here.
            self.__dict__["total_tokens"] = self.prompt_tokens + self.completion_tokens
        return self

    def __add__(self, other: Usage) -> Usage:
        """The sum. If one cost is unknown, or the currencies differ, the cost of the sum is unknown.

        An empty usage adds nothing, so it can start a sum.
        """
        if self._is_empty:
            return other
        if other._is_empty:
            return self
        is_cost_known = self.cost is not None and other.cost is not None and self.currency == other.currency
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost=self.cost + other.cost if is_cost_known else None,  # type: ignore[operator]
            currency=self.currency if is_cost_known else None,
        )

    @property
    def _is_empty(self) -> bool:
        return not self.total_tokens and self.cost is None


class ModelResponse(DictCompatibleModel):
    """One whole answer of a model, as one object.

    `created` is in seconds since 1970, UTC; `provider_reason` is the provider's own word for `finish_reason`.
    """

    messages: list[Message] = Field(default_factory=list)
    usage: Usage = Field(default_factory=Usage)
    model: str = ""
    finish_reason: FinishReason | None = None
    response_id: str | None = None
    created: int | None = None
    provider_reason: str = ""

    def get_content(self) -> str:
        """The text of the answer, without reasoning and calls."""
        return "".join(message.get_text_content() for message in self.messages)

    def get_function_calls(self) -> list[FunctionCall]:
        """The tool calls of the answer, in order."""
        return [message.function_call for message in self.messages if message.function_call]
