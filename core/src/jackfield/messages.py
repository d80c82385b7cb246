"""Messages, their content, and the usage of answers.

Messages are immutable values: instead of changing a message, Jackfield creates a new one. Because many callers store
histories as JSON, plain dicts are accepted wherever messages are, and messages can be dumped to dicts.
"""

from __future__ import annotations

import os
import re
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
"""The reason why an answer ended, in the same terms for all providers.

`stop`: the model finished, or reached a stop word. `tool_calls`: the model finished and waits for tools. `length`: the
answer reached its maximum length. `content_filter`: the provider withheld the rest, or the model refused. `other`:
another reason, given in `provider_reason`; the answer may be incomplete.
"""
FINISH_REASONS: tuple[FinishReason, ...] = get_args(FinishReason)
ITEM_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)

_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\|\\\\")  # starts with a drive letter or a share

PART_SEPARATOR = " › "
"""Separator between a file's name and the name of a file inside it."""

_ROLES = get_args(Role)
_LISTS = (list, tuple)  # `list | tuple` would be evaluated for each check
_SHORT_CHARS = 100  # text up to this length is shown in full instead of its size


# The default of required arguments, so that a missing one raises ValidationError, not TypeError.
_MISSING: Any = object()


class DictCompatibleModel(BaseModel):
    """A pydantic model that also supports dict access: `m["role"]`, `m.get("name")`, `"content" in m`."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def __init__(self, **fields: Any) -> None:
        try:
            BaseModel.__init__(self, **fields)
        except (ValidationError, TypeError) as error:
            raise _explain(self, error) from None

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setattr__(self, name: str, value: object) -> None:
        before = dict(self.__dict__)
        try:
            super().__setattr__(name, value)
        except (ValueError, TypeError) as error:
            # Validators of several fields run after the value is set, so undo a rejected value.
            self.__dict__.update(before)
            if isinstance(error, ValidationError | TypeError):
                raise _explain(self, error) from None
            raise InvalidMessageError(f"cannot set {name!r} of a {type(self).__name__}: {error}") from error

    def __setitem__(self, key: str, value: object) -> None:
        setattr(self, key, value)

    def __contains__(self, key: object) -> bool:
        return key in type(self).model_fields and getattr(self, str(key)) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field's value, or `default` if the field is missing, None or empty."""
        return getattr(self, key, default) or default

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Dump to a dict as pydantic does, but omit fields that are None unless `exclude_none=False` is passed."""
        return super().model_dump(**{"exclude_none": True, **options})

    def model_dump_json(self, **options: Any) -> str:
        """Dump to JSON like pydantic, but omit fields that are None unless `exclude_none=False` is passed."""
        return super().model_dump_json(**{"exclude_none": True, **options})

    def __str__(self) -> str:
        return str(_shorten(self.model_dump()))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the fields that are set, with media replaced by their size."""
        return ((name, _shorten(value)) for name, value in super().__repr_args__() if value is not None)


def _explain(model: BaseModel, error: ValidationError | TypeError) -> InvalidMessageError:
    """Describe the innermost problem and the path of its field. Leave out the value, which may be long or secret."""
    if isinstance(error, TypeError):
        return InvalidMessageError(f"a {type(model).__name__} is not valid: all keys must be strings")
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    problem = max(problems, key=lambda one: len(one["loc"]))  # the innermost problem; others concern alternatives
    same = [one["msg"] for one in problems if len(one["loc"]) == len(problem["loc"]) > 1]
    # If a value may have several types, pydantic names each type as if it were a field.
    fields = [str(part) for part in problem["loc"] if part != "str" and "[" not in str(part)]
    where = f"{'.'.join(fields)!r} of " if fields else ""
    reason = " or ".join(same[:2] or [problem["msg"]]).removeprefix("Value error, ")
    known = f" (its fields are {', '.join(type(model).model_fields)})" if problem["type"] == "extra_forbidden" else ""
    return InvalidMessageError(f"{where}a {type(model).__name__} is not valid: {reason}{known}")


def _shorten(value: Any) -> Any:
    """Replace `data:` URIs and other media data with their size."""
    match value:
        case str() if value.startswith("data:"):
            return _shorten_data(value, value.partition(",")[0])
        case {"data": str() as data, **others}:
            return {**value, **_shorten(others), "data": _shorten_data(data, "")}
        case dict():
            return {key: _shorten(entry) for key, entry in value.items()}
        case list():
            return [_shorten(entry) for entry in value]
    return value


def _shorten_data(data: str, prefix: str) -> str:
    count = len(data)
    size = f"{count} characters" if count < 10_000 else f"{count / 1000:.0f} thousand characters"
    return data if count <= _SHORT_CHARS else f"{prefix[:60]}… ({size})"


class FunctionCall(DictCompatibleModel):
    """A tool call: the tool's name, and the arguments as the JSON text that the model wrote.

    The text may be malformed, or incomplete while the answer is streaming. `get_parsed_arguments` then raises an error.
    """

    name: str = Field(min_length=1)
    arguments: str

    def __init__(self, name: str = _MISSING, arguments: str = _MISSING, **fields: Any) -> None:
        try:
            if name is not _MISSING:
                fields["name"] = name
            if arguments is not _MISSING:
                fields["arguments"] = arguments
            BaseModel.__init__(self, **fields)
        except ValidationError as error:
            raise _explain(self, error) from None

    def get_parsed_arguments(self) -> dict[str, Any]:
        """Return the arguments as a dict, or an empty dict if the text is empty.

        Raises:
            ToolArgumentError: The text is not a JSON object.
        """
        return read_arguments(self.name, self.arguments)

    def add_argument(self, key: str, value: object) -> FunctionCall:
        """Return a new call with one argument added or replaced."""
        return FunctionCall(self.name, dumps({**self.get_parsed_arguments(), key: value}))


def read_arguments(name: str, arguments: object) -> dict[str, Any]:
    """Return the arguments of a tool call as a dict.

    Args:
        name: The tool's name, for error messages.
        arguments: A dict, or JSON text. Empty text yields an empty dict.

    Raises:
        ToolArgumentError: The arguments are not a JSON object. If the text is not valid JSON, the error has a cause.
    """
    try:
        value = loads_lenient(arguments if arguments.strip() else "{}") if isinstance(arguments, str) else arguments
    except ValueError as error:
        raise ToolArgumentError(f"the arguments to {name!r} must be a single JSON object: {error}") from error
    if not isinstance(value, _MAPPINGS):
        raise ToolArgumentError(f"the arguments to {name!r} must be a JSON object, got {type(value).__name__}")
    return dict(value)


class ContentItem(DictCompatibleModel):
    """One item of a message's content. Exactly one of text, image, file, audio and video is set.

    Media are URLs, paths or `data:` URIs. Audio can also be a dict in OpenAI's format. Video can also be a list of
    frames.
    """

    text: str | None = None
    image: str | None = None
    file: str | None = None
    audio: str | dict[str, Any] | None = None
    video: str | list[str] | None = None

    @model_validator(mode="after")
    def _check_exactly_one(self) -> Self:
        kinds = [kind for kind in ITEM_KINDS if getattr(self, kind) is not None]
        if not kinds:
            raise ValueError(f"a content item must set one of {', '.join(ITEM_KINDS)}")
        if len(kinds) > 1:
            raise ValueError(f"a content item can set only one of {' and '.join(kinds)}; use a separate item for each")
        if not self.value and self.text is None:
            raise ValueError(f"the {kinds[0]} of a content item is empty")
        return self

    @property
    def type(self) -> ItemKind:
        """The item's kind: the name of the field that is set."""
        return self.get_type_and_value()[0]

    @property
    def value(self) -> Any:
        """The value of the field that is set."""
        return self.get_type_and_value()[1]

    def get_type_and_value(self) -> tuple[ItemKind, Any]:
        """Return the item's kind and value."""
        for kind in ITEM_KINDS:
            value = getattr(self, kind)
            if value is not None:
                return kind, value
        raise AssertionError("a content item has exactly one value")

    def is_media_content(self) -> bool:
        """Return True if the item is an image, audio or video."""
        return self.type in ("image", "audio", "video")

    def get_file_extension(self) -> str:
        """Return the lower-case extension of a path or URL, without the dot, or '' for any other content."""
        kind, value = self.get_type_and_value()
        if kind == "text" or not isinstance(value, str) or value.startswith("data:"):
            return ""
        path, _ = _path_and_host(value)
        return PurePosixPath(unquote(path.rstrip("/").rpartition("/")[2])).suffix[1:].lower()


def basename_of(location: str) -> str:
    """Return the last segment of a path or URL, percent-decoded.

    Use the name for display only. Never use it to open a file, because it may contain separators.
    """
    path, host = _path_and_host(location)
    return unquote(path.rstrip("/").rpartition("/")[2]) or host or location


def name_in_file(name: str, part: str) -> str:
    """Return the display name of a file inside another file, such as `mail.eml › scans.zip › a.pdf`.

    If `part` is empty, return `name`.
    """
    return f"{name}{PART_SEPARATOR}{part}" if part else name


def _path_and_host(location: str) -> tuple[str, str]:
    """Return a URL's path and host. For text that is not a URL, return the text with forward slashes, and ''."""
    try:
        parts = urlsplit(location)
    except ValueError:  # starts like a URL, but is not a valid one
        return _with_slashes(location), ""
    if parts.scheme in ("http", "https", "file"):
        return parts.path, parts.netloc.rpartition("@")[2]  # without user name and password
    return _with_slashes(location), ""


def _with_slashes(path: str) -> str:
    # In other paths, a backslash is part of a name, or of an escape in a displayed name.
    return path.replace("\\", "/") if os.sep == "\\" or _WINDOWS_PATH.match(path) else path


class Origin(BaseModel):
    """The backend that wrote a message, plus data that only this backend needs in later requests.

    `data` is opaque: for example, a signature of a model's reasoning. Other backends ignore it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: str
    id: str | None = None
    data: dict[str, Any] | None = None


class Message(DictCompatibleModel):
    """A message in a conversation.

    Each tool call by a model is a separate assistant message. The result of the call is a `function` message with the
    tool's name. `extra["function_id"]` links the two messages, and `extra["error"]` is the kind of failure if the call
    failed. Callers may store their own data in `extra`; backends never send it.
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
            raise _explain(self, error) from None

    @field_validator("role", mode="before")
    @classmethod
    def _check_role(cls, role: object) -> object:
        if not isinstance(role, str) or role not in _ROLES:
            hint = "; for tool results, use 'function'" if role == "tool" else ""
            shown = repr(role[:_SHORT_CHARS]) if isinstance(role, str) else f"a value of type {type(role).__name__}"
            raise ValueError(f"{shown} is not a valid role: use one of {', '.join(_ROLES)}{hint}")
        return role

    @field_validator("content", mode="before")
    @classmethod
    def _no_content_is_empty(cls, content: object) -> object:
        if content is None:
            return ""
        if isinstance(content, _LISTS) and any(isinstance(part, Mapping) and "type" in part for part in content):
            from jackfield._openai_forms import translate_part

            return [translate_part(part) for part in content]
        return content

    @model_validator(mode="after")
    def _check_function_has_a_name(self) -> Self:
        if self.role == FUNCTION and not self.name:
            raise ValueError("a function message needs `name`, the name of the tool that returned the result")
        return self

    @property
    def items(self) -> list[ContentItem]:
        """The content as a list of items. The list is empty if there is no content."""
        if isinstance(self.content, str):
            return [ContentItem(text=self.content)] if self.content else []
        return self.content

    @property
    def function_id(self) -> str | None:
        """The id that links a call to its result, or None."""
        value = (self.extra or {}).get("function_id")
        return None if value is None else str(value)

    @property
    def error(self) -> str:
        """The kind of failure if the message is the result of a failed call.

        The value is '' if the call succeeded or the kind is unknown.
        """
        value = (self.extra or {}).get("error")
        return "" if value is None else str(value)

    def is_multimodal(self) -> bool:
        """Return True if the content includes anything other than text."""
        return not isinstance(self.content, str) and any(item.text is None for item in self.content)

    def get_text_content(self) -> str:
        """Return the content's text. Multiple text items are joined with newlines."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(item.text for item in self.content if item.text is not None)

    def replace(self, **changes: Any) -> Message:
        """Return a new message with the given fields changed. All other fields, including ids, stay the same."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Message(**{**fields, **changes})

    def _repr_markdown_(self) -> str:
        from jackfield.display import markdown_of

        return markdown_of([self])

    def _ipython_display_(self) -> None:
        from jackfield.display import show

        show(self._repr_markdown_(), self.get_text_content(), [self])


MessageLike: TypeAlias = Message | Mapping[str, Any]
Messages: TypeAlias = str | MessageLike | Sequence[MessageLike]
"""A question for a model: text, a message, or a whole conversation, oldest message first."""
_KEYS = frozenset(Message.model_fields)
# `dict` comes first because `isinstance(…, Mapping)` is slow and histories are long.
_MAPPINGS = (dict, Mapping)


def as_message(value: MessageLike) -> Message:
    """Convert a dict to a message. Messages are returned unchanged.

    Raises:
        InvalidMessageError: The dict is not a valid message. The error names the key.
    """
    if not isinstance(value, dict) and isinstance(value, Message):
        return value
    if not isinstance(value, _MAPPINGS):
        raise InvalidMessageError(
            f"a message must be a Message or a dict with 'role' and 'content', got {type(value).__name__}"
        )
    if not _KEYS.issuperset(value):
        keys: set[Any] = set(value) - _KEYS
        unknown = min(
            repr(key[:_SHORT_CHARS]) if isinstance(key, str) else f"of type {type(key).__name__}" for key in keys
        )
        from jackfield.suggestions import suggest  # only needed for errors

        hint = suggest(unknown.strip("'"), list(Message.model_fields))
        stop = "" if hint.endswith("?") else "."
        raise InvalidMessageError(f"a message has no key {unknown}{hint}{stop} Put custom data in 'extra'")
    if "role" not in value:
        raise InvalidMessageError(f"a message needs 'role', one of {', '.join(_ROLES)}")
    if "content" not in value and value["role"] in (USER, SYSTEM):
        raise InvalidMessageError(f"a {value['role']} message needs 'content', a string or a list of items")
    return Message(**value)


def as_messages(values: Messages) -> tuple[Message, ...]:
    """Convert text, a message or dict, or a sequence of messages or dicts to a tuple of messages.

    Text becomes a user message.

    Dicts may also be in OpenAI's format: a `tool` message becomes a `function` message, a `developer` message becomes a
    system message, and each entry in `tool_calls` becomes a separate message. Ids are preserved.

    Raises:
        InvalidMessageError: `values` has another type, or a message is not valid. The error names the key and, if there
            are several messages, the position of the message.
    """
    if isinstance(values, str):
        return (_read_question(values),)
    if not isinstance(values, _LISTS):  # checks against `Message` and `Mapping` are slow
        if isinstance(values, Message | Mapping):
            values = (values,)
        elif not isinstance(cast("Any", values), Iterable) or isinstance(values, bytes | bytearray):
            got = type(values).__name__
            raise InvalidMessageError(f"messages must be a string, a message or a list of messages, got {got}")
    values = tuple(values)
    if set(map(type, values)) <= {Message}:
        return cast("tuple[Message, ...]", values)
    from jackfield._openai_forms import is_openai_message, translate_messages

    if any(is_openai_message(value) for value in values):
        return tuple(as_message(value) for value in translate_messages(values, _KEYS))
    messages = []
    for number, value in enumerate(values, start=1):
        try:
            messages.append(as_message(value))
        except InvalidMessageError as error:
            if len(values) == 1:
                raise
            raise InvalidMessageError(f"message {number} of {len(values)}: {error}") from None
    return tuple(messages)


def refuse_empty_question(messages: Sequence[Message]) -> None:
    """Raise InvalidMessageError if the last message is an empty user message."""
    if not messages or messages[-1].role != USER:
        return
    content = messages[-1].content
    if (content.isspace() or not content) if isinstance(content, str) else not content:
        raise InvalidMessageError(_EMPTY_QUESTION)


_EMPTY_QUESTION = "the question is empty: pass some text, or pass [] to continue a history"


def _read_question(text: str) -> Message:
    if not text or text.isspace():
        raise InvalidMessageError(_EMPTY_QUESTION)
    return Message(USER, text)


def want_dicts(values: Messages) -> bool:
    """Return True if `values` is a dict or a non-empty list of dicts. In that case, the caller receives dicts."""
    if not isinstance(values, _LISTS):
        if isinstance(values, str | Message | Mapping):
            return isinstance(values, Mapping)
        if not isinstance(values, Iterable):
            return False
    return bool(values) and all(isinstance(message, _MAPPINGS) for message in values)


def with_system_text(history: Sequence[Message], text: str, *, first: bool) -> tuple[Message, ...]:
    """Add text to the start or end of the system message. If the history has no system message, add one."""
    if not text:
        return tuple(history)
    index = _index_of_system(history)
    if index is None:
        return (Message(SYSTEM, text), *history)
    message = history[index].replace(content=_join(history[index].content, text, first=first))
    return (*history[:index], message, *history[index + 1 :])


def without_system_text(history: Sequence[Message], text: str) -> tuple[Message, ...]:
    """Undo `with_system_text(…, text, first=True)`. A history without the text is returned unchanged."""
    index = _index_of_system(history)
    if index is None or not text:
        return tuple(history)
    message = history[index]
    rest = _without_beginning(message.content, text)
    if message.content and rest == "":
        return (*history[:index], *history[index + 1 :])
    return (*history[:index], message.replace(content=rest), *history[index + 1 :])


def _index_of_system(history: Sequence[Message]) -> int | None:
    for index, message in enumerate(history):
        if message.role == SYSTEM:
            return index
    return None


def _join(content: str | list[ContentItem], text: str, *, first: bool) -> str | list[ContentItem]:
    if isinstance(content, str):
        if not content:
            return text
        return f"{text}\n\n{content}" if first else f"{content}\n\n{text}"
    return [ContentItem(text=text + "\n\n"), *content] if first else [*content, ContentItem(text="\n\n" + text)]


def _without_beginning(content: str | list[ContentItem], text: str) -> str | list[ContentItem]:
    if isinstance(content, str):
        return "" if content == text else content.removeprefix(text + "\n\n")
    return content[1:] if content[:1] == [ContentItem(text=text + "\n\n")] else content


class Usage(DictCompatibleModel):
    """Tokens used by answers, and their cost. `cost` is None if the price is unknown, and never an estimate."""

    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    total_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(
        default=0, ge=0, description="Part of prompt_tokens that the provider read from its cache"
    )
    cache_write_tokens: int = Field(
        default=0, ge=0, description="Part of prompt_tokens that the provider wrote to its cache"
    )
    long_cache_write_tokens: int = Field(
        default=0, ge=0, description="Part of cache_write_tokens with the longer of the two lifetimes"
    )
    reasoning_tokens: int = Field(default=0, ge=0, description="Part of completion_tokens spent on reasoning")
    cost: Decimal | None = None
    currency: str | None = None

    @model_validator(mode="after")
    def _fill_total(self) -> Self:
        if not self.total_tokens and (self.prompt_tokens or self.completion_tokens):
            # An assignment would run this validator again.
            self.__dict__["total_tokens"] = self.prompt_tokens + self.completion_tokens
        return self

    def __add__(self, other: Usage) -> Usage:
        """Return the sum. The total cost is unknown if either cost is unknown or if the currencies differ.

        Empty usage adds nothing, so it can be the start value of a sum.
        """
        if other._is_empty:
            return self
        if self._is_empty:
            return other
        is_cost_known = self.cost is not None and other.cost is not None and self.currency == other.currency
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            long_cache_write_tokens=self.long_cache_write_tokens + other.long_cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost=self.cost + other.cost if is_cost_known else None,  # type: ignore[operator]
            currency=self.currency if is_cost_known else None,
        )

    @property
    def _is_empty(self) -> bool:
        return not self.total_tokens and self.cost is None


class ModelResponse(DictCompatibleModel):
    """One complete answer from a model.

    `created` is a Unix timestamp in seconds. `provider_reason` is the provider's own term for `finish_reason`.
    `warnings` contains one line for each attached file of which only the name was sent.
    """

    # With `default_factory=list`, pydantic would parse the signature of `list`, which takes 3 ms at start-up.
    messages: list[Message] = Field(default=[])
    usage: Usage = Field(default_factory=Usage)
    model: str = ""
    finish_reason: FinishReason | None = None
    response_id: str | None = None
    created: int | None = None
    provider_reason: str = ""
    warnings: tuple[str, ...] = ()

    def get_content(self) -> str:
        """Return the answer's text, without reasoning and tool calls."""
        return "".join(message.get_text_content() for message in self.messages)

    def get_function_calls(self) -> list[FunctionCall]:
        """Return the answer's tool calls, in order."""
        return [message.function_call for message in self.messages if message.function_call]
