"""Typed configurations for models, agents and components, validated from plain dicts.

Unknown settings raise an error that suggests the closest known setting. Provider-specific options belong in
`extra_body`, which is sent unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from jackfield._modelling import BaseModel
from jackfield._secretsources import StatesSecrets
from jackfield.errors import ConfigError
from jackfield.suggestions import close_names, suggest

Several = TypeVar("Several", bound=Iterable[Any])
Lang = Literal["en", "zh"]

HIDDEN = "**********"


class SettingsDict(dict[str, Any]):
    """Settings for a component that validates them itself. `repr` and pickles omit values that may be secret."""

    def __repr__(self) -> str:
        return repr(mask_secrets(self))

    def __reduce__(self) -> tuple[type[SettingsDict], tuple[dict[str, Any]]]:
        return SettingsDict, (without_secrets(self),)


def mask_secrets(value: object) -> object:
    """Replace values whose names suggest a secret with asterisks. Nested values are included."""
    from jackfield.secrets import is_secret  # importing agents does not need the rules for secrets

    if isinstance(value, Mapping):
        return {key: HIDDEN if is_secret(key, entry) else mask_secrets(entry) for key, entry in value.items()}
    return [mask_secrets(entry) for entry in value] if isinstance(value, list | tuple) else value


def without_secrets(value: object) -> Any:
    """Remove values whose names suggest a secret. Nested values are included."""
    from jackfield.secrets import is_secret

    if isinstance(value, Mapping):
        return {key: without_secrets(entry) for key, entry in value.items() if not is_secret(key, entry)}
    return [without_secrets(entry) for entry in value] if isinstance(value, list | tuple) else value


def _refuse_user(address: str) -> str:
    from jackfield.secrets import shows_no_user

    if not shows_no_user(address):
        raise ValueError("the URL must not contain a user name or password: set api_key, or a header in extra_headers")
    return address


def _hide_secrets(address: str) -> str:
    from jackfield.secrets import hide_in_address

    return hide_in_address(address)


ServerAddress = Annotated[str, AfterValidator(_refuse_user), PlainSerializer(_hide_secrets)]
"""A server address in a configuration. Addresses with a user name or a password are rejected and never shown.

`repr` and dumps hide keys in the query and random parts of the path.
"""

Headers = Annotated[dict[str, str], PlainSerializer(lambda headers: dict.fromkeys(headers, HIDDEN))]
"""HTTP headers in a configuration. Dumps hide their values, which may be keys. Also set `repr=False` on the field."""

PathText = Annotated[str, BeforeValidator(lambda path: os.fspath(path) if isinstance(path, os.PathLike) else path)]
"""A path in settings: a string or a `pathlib` path."""

ProgramText = Annotated[PathText, "program"]
"""A program to start. An agent file with such a setting needs consent."""

ComponentSettings = Annotated[dict[str, Any], AfterValidator(SettingsDict), PlainSerializer(mask_secrets)]
"""Settings that are validated elsewhere. `repr` and dumps hide values whose names suggest a secret."""


class Config(BaseModel):
    """Base class for all configurations. Configurations are frozen. Use `parse` to create one from a dict."""

    # Models are built on first use, because most programs use only two of these classes.
    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), defer_build=True, hide_input_in_errors=True
    )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, _hide_secrets(value) if isinstance(value, str) else value

    def __getstate__(self) -> dict[Any, Any]:
        """Return the state without API keys and headers.

        To give another process the API keys and headers, pass them separately.
        """
        state = super().__getstate__()
        values = {name: None if isinstance(value, SecretStr) else value for name, value in state["__dict__"].items()}
        if "extra_headers" in values:
            values["extra_headers"] = {}
        return {**state, "__dict__": values}

    @classmethod
    def parse(cls, value: Mapping[str, Any] | Self | None, *, what: str = "") -> Self:
        """Validate a dict. Configurations are returned unchanged, and None yields the default configuration.

        Args:
            value: The settings.
            what: The configuration's name in error messages. Defaults to the class name.

        Raises:
            ConfigError: A setting is unknown or a value is not valid. The message contains no values, because they may
                be secret.
        """
        if isinstance(value, cls):
            return value
        what = what or cls.__name__
        if not isinstance(value, Mapping | None):
            raise ConfigError(f"{what} must be a dict, got {type(value).__name__}")
        try:
            return cls.model_validate(dict(value or {}))
        except ValidationError as error:
            raise ConfigError(_explain(error, cls, what)) from None


def _explain(error: ValidationError, cls: type[BaseModel], what: str) -> str:
    lines: list[str] = []
    wanted: dict[tuple[int | str, ...], list[str]] = {}  # by path: each union member reports its own error
    given: dict[tuple[int | str, ...], object] = {}
    for problem in error.errors(include_url=False):
        place = _place(problem["loc"])
        path = ".".join(map(str, place)) or "value"
        if problem["type"] == "extra_forbidden":
            lines.append(f"unknown setting {path!r}{_hint_for_unknown(place, cls)}")
        elif form := _FORMS.get(problem["type"]):
            wanted.setdefault(place, []).append(form)
            given[place] = problem["input"]
        elif problem["type"] == "missing":
            lines.append(f"{path} is missing")
        elif problem["type"] != "value_error" and (rest := problem["msg"].partition(" should ")[2]):
            lines.append(f"{path} must {rest}{_meaning_of(place, cls) if 'pattern' in problem['type'] else ''}")
        else:
            text = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{path}: {text}" if place else text)  # a validator of the whole model has no place
    for place, forms in wanted.items():
        path = ".".join(map(str, place)) or "value"
        lines.append(f"{path} must be {' or '.join(dict.fromkeys(forms))}{_kind_of(given[place], forms)}")
    return f"{what}: " + "; ".join(lines)


_FORMS = {
    **dict.fromkeys(("string_type", "path_type"), "a string"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "a table"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), "a number"),
}
"""Descriptions of what a setting must be, by the type of pydantic's error."""
_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    str: "a string",
    dict: "a table",
    type(None): "an empty value",
}
_ALTERNATIVES = ("str", "int", "float", "bool", "constrained-str", "is-instance[Path]")


def _place(path: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return a setting's path without pydantic's names for the members of a union."""
    return tuple(part for part in path if not (isinstance(part, str) and ("[" in part or part in _ALTERNATIVES)))


def _kind_of(value: object, forms: Sequence[str]) -> str:
    """Describe a wrong value's kind without showing the value, and add a hint to quote text that YAML misreads."""
    kind = _KINDS.get(type(value), "")
    if not kind or kind in forms or (kind == "a number" and "a whole number" in forms):
        return ""
    quotes = ": put it in quotes" if "a string" in forms and isinstance(value, bool | int | float) else ""
    return f", got {'a boolean' if isinstance(value, bool) else kind}{quotes}"


def _meaning_of(path: tuple[int | str, ...], cls: type[BaseModel]) -> str:
    """Return a setting's description in parentheses, or '' if it has none. A description is clearer than a pattern."""
    field = _model_at(cls, path[:-1]).model_fields.get(str(path[-1]))
    return f" ({field.description})" if field is not None and field.description else ""


def _hint_for_unknown(path: tuple[int | str, ...], cls: type[BaseModel]) -> str:
    """Return a hint for an unknown setting: where it belongs, or similar names."""
    key, model = str(path[-1]), _model_at(cls, path[:-1])
    if "generate_cfg" in cls.model_fields:
        if key in cls.model_fields:
            return f": put it next to generate_cfg, as in {{'model': ..., {key!r}: ...}}"
        if model is cls and key in GenerateConfig.model_fields:
            return f": put it in generate_cfg, as in {{'model': ..., 'generate_cfg': {{{key!r}: ...}}}}"
    if (model is GenerateConfig or "generate_cfg" in cls.model_fields) and (hint := _names_elsewhere(key)):
        return f": {hint}"
    if model is cls and "generate_cfg" in cls.model_fields and not close_names(key, list(model.model_fields)):
        close = close_names(key, list(GenerateConfig.model_fields))
        if close:
            return f"; did you mean {close[0]!r} in generate_cfg, as in 'generate_cfg': {{{close[0]!r}: ...}}?"
    return suggest(key, list(model.model_fields))


def _names_elsewhere(option: str) -> str:
    """Return a hint about Jackfield's counterpart of another library's option, or '' if the option is unknown."""
    import json
    import pkgutil  # both for errors only

    texts: dict[str, str] = json.loads(pkgutil.get_data("jackfield", "elsewhere.json") or b"{}")
    return texts.get(option, "")


def _model_at(cls: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel]:
    for part in path:
        field = cls.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            break
        cls = field.annotation
    return cls


class Configured(StatesSecrets):
    """Base class for components with settings: processors, tools, searchers, parsers, embedders and tokenizers.

    Subclasses set `config_class` to the class that the descriptor names as `config`, and read `self.config`. An
    `__init__` is not necessary. If a subclass takes other arguments (a clock, `host`), its `__init__` must call
    `super().__init__(cfg)` or `super().__init__(**settings)`.

    Args:
        cfg: The settings, as a `config_class` or a dict.
        settings: Settings as keyword arguments, which override `cfg`.

    Attributes:
        config_class: The settings class, or None if the component has no settings or reads `cfg` itself.
        cfg: The settings as they were passed. `repr` hides values whose names suggest a secret.
        config: The validated settings with defaults filled in. The attribute is only set if there is a `config_class`.

    Raises:
        ConfigError: A setting is unknown or not valid. The message contains no values.
    """

    config_class: ClassVar[type[Config] | None] = None
    cfg: Mapping[str, Any]
    config: Config

    def __init__(self, cfg: Config | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__()  # of the class that this one is mixed into
        what = str(getattr(self, "name", "") or type(self).__name__)
        values: Any = {**_as_dict(cfg), **settings} if settings else cfg
        if self.config_class is not None:
            self.config = self.config_class.parse(values, what=what)
        elif settings:
            raise ConfigError(f"{what} takes no settings; got {', '.join(repr(name) for name in settings)}")
        self.cfg = SettingsDict(_as_dict(values))


def _as_dict(cfg: Config | Mapping[str, object] | None) -> dict[str, object]:
    if isinstance(cfg, Config):
        return {name: getattr(cfg, name) for name in cfg.model_fields_set}
    return dict(cfg or {})


DEFAULT_RETRIES = 2
"""The default number of retries, the same as in the providers' SDKs."""


def _refuse_switch(cls: type[BaseModel], value: object, info: ValidationInfo) -> object:
    """Reject booleans where a number is expected. pydantic would accept True and False as 1 and 0."""
    if isinstance(value, bool) and info.field_name:
        annotation = cls.model_fields[info.field_name].annotation
        if not {bool, Any} & {annotation, *get_args(annotation)}:
            raise ValueError(f"must not be {value}")
    return value


Adjustable = Literal["temperature", "top_p", "max_tokens", "seed"]
"""The model options that an agent can let its users change."""


class GenerateConfig(Config):
    """Options for an answer. Each option can be set for a model and for a single call. The call's value wins."""

    model_config = ConfigDict(allow_inf_nan=False)
    _refuse_switches = field_validator("*", mode="before")(_refuse_switch)

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=0)
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1, description="Maximum length of an answer, in tokens")
    seed: int | None = None
    stop: tuple[str, ...] = Field(
        default=(), description="Strings at which the answer ends; a single string is allowed"
    )
    send_stop: bool = Field(
        default=True,
        description="false: do not send `stop` to the server, for servers that reject it or limit its length; "
        "answers still end there",
    )
    max_input_tokens: int | None = Field(
        default=None, description="Truncate histories longer than this; 0 or less: never"
    )
    max_retries: int = Field(
        default=DEFAULT_RETRIES,
        ge=0,
        le=100,
        description="Maximum number of retries of a failed call, if a retry may help",
    )
    max_retry_delay: float = Field(
        default=120.0,
        gt=0,
        allow_inf_nan=False,
        description="Longest wait before a retry, in seconds; no retry if the server asks for a longer one",
    )
    request_timeout: float | None = Field(
        default=None, gt=0, description="Maximum time without data from the server, in seconds"
    )
    event_timeout: float | None = Field(
        default=None,
        gt=0,
        description="Maximum time without an event, in seconds, even if comments arrive; unset: ten times "
        "request_timeout",
    )
    deadline: float | None = Field(
        default=None, gt=0, description="Maximum time for the whole call, in seconds, including retries"
    )
    lang: Lang | None = Field(
        default=None, description="Language of text that Jackfield adds; unset: detected from the messages"
    )
    function_choice: str = Field(default="auto", description="auto, none, required, or a function name")
    parallel_function_calls: bool | None = None
    thought_in_content: bool | None = Field(
        default=None,
        description="unset: a <think> at the start of an answer begins the reasoning; true: answers start inside the "
        "reasoning; false: reasoning stays in the text",
    )
    fncall_prompt_type: str | None = Field(default=None, description="native, or a call format (nous …)")
    use_raw_api: bool | None = Field(
        default=None, description="true: use native tool calls regardless of what is known about the model"
    )
    reasoning_effort: str | None = None
    response_format: dict[str, Any] | None = Field(
        default=None, description="In OpenAI's format, or a pydantic model whose schema is used"
    )
    extra_body: dict[str, Any] = Field(default_factory=dict, description="Sent to the provider unchanged")
    extra_headers: Headers = Field(default_factory=dict, repr=False)

    @field_validator("stop", mode="before")
    @classmethod
    def _take_one_text_as_list(cls, stop: object) -> object:
        return (stop,) if isinstance(stop, str) else stop

    @field_validator("response_format", mode="before")
    @classmethod
    def _take_schema_of_model(cls, wanted: object) -> object:
        if isinstance(wanted, type) and hasattr(wanted, "model_json_schema"):
            from jackfield._response_formats import response_format

            return response_format(wanted.model_json_schema())
        return wanted

    def merged(self, other: GenerateConfig | Mapping[str, object] | None) -> GenerateConfig:
        """Return a copy in which the options in `other` take precedence. `stop` and `extra_body` are combined."""
        if other is None:
            return self
        new = GenerateConfig.parse(other, what="generate_cfg")
        changes = {key: getattr(new, key) for key in new.model_fields_set}
        if "stop" in changes:
            changes["stop"] = tuple(dict.fromkeys((*self.stop, *new.stop)))
        if "extra_body" in changes:
            changes["extra_body"] = {**self.extra_body, **new.extra_body}
        return self.model_copy(update=changes) if changes else self


class LLMConfig(Config):
    """A model, its server, and options for its answers. Backends with additional settings subclass this class."""

    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        description="The model's name on the server; no default"
    )
    model_type: str | None = Field(default=None, description="The backend: openai, offline …")
    model_server: ServerAddress | None = Field(
        default=None, description="Same as base_url, or a name known to the backend"
    )
    api_base: ServerAddress | None = Field(default=None, description="Same as base_url, and takes precedence")
    base_url: ServerAddress | None = Field(default=None, description="URL of the server")
    api_key: SecretStr | None = Field(default=None, description="Better stored as a secret: see the backend's page")
    generate_cfg: GenerateConfig = Field(default_factory=GenerateConfig)
    processors: tuple[str | ComponentSettings, ...] = Field(
        default=(),
        description="Processor names or addresses, or dicts with `name` and settings; added to the enabled processors",
    )

    @field_validator("api_base", "base_url")
    @classmethod
    def _require_http(cls, address: str | None) -> str | None:
        if address and not address.lower().startswith(("http://", "https://")):
            raise ValueError("the URL must start with http:// or https://, as in http://localhost:8000/v1")
        return address

    @property
    def server_url(self) -> str | None:
        """The server's address: the first of `api_base`, `base_url` and `model_server` (if a URL) that is set."""
        server = self.model_server if (self.model_server or "").startswith(("http://", "https://")) else None
        return self.api_base or self.base_url or server


_LISTS = (tuple, list)  # checks against an abstract type are slow, and every request makes one


def checked_list(values: Several, what: str, of: str) -> Several:
    """Check that `values` is a list or another iterable of values, and return it.

    Args:
        values: The values. A single string or table is rejected, because iterating over it would split it.
        what: The setting's name, for the error message.
        of: A plural noun for the elements, for the error message.

    Raises:
        ConfigError: `values` is a single string, path or table, or is not iterable.
    """
    if isinstance(values, _LISTS):
        return values
    if isinstance(values, str | bytes | Mapping | os.PathLike) or not isinstance(values, Iterable):
        shown = repr(values) if isinstance(values, str | os.PathLike) else "…"
        raise ConfigError(f"{what} must be a list of {of}, got {type(values).__name__}: use [{shown}]")
    return values


class Limits(Config):
    """Limits for a run. None means unlimited. `RunFinished.stop_reason` names the limit that ended a run."""

    model_config = ConfigDict(allow_inf_nan=False)
    _refuse_switches = field_validator("*", mode="before")(_refuse_switch)

    turns: int | None = Field(default=20, ge=1, description="Maximum number of model calls")
    tool_calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(
        default=None, ge=1, description="Maximum prompt and completion tokens, summed over all turns"
    )
    seconds: float | None = Field(default=None, gt=0)
    cost: Decimal | None = Field(default=None, gt=0, description="Maximum cost in `currency`, summed over all turns")
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$", description="ISO 4217: USD, CNY, EUR")
