"""The errors that Jackfield raises, grouped by what the caller can do about them.

```
JackfieldError
├── ConfigError                   change the configuration
│   ├── MissingSecretError            set the named variable
│   └── ConsentNeededError            review the file, then allow its effects or not
├── InvalidMessageError           correct the message: the text names the field
├── PluginError                   install, choose or repair a plugin
│   ├── PluginNotFoundError           install it, or correct the name
│   ├── AmbiguousPluginError          write distribution/name
│   ├── PluginBlockedError            change the policy
│   ├── BrokenPluginError             repair or remove the package
│   └── IncompatiblePluginError       upgrade or downgrade the package or the core
├── ModelServiceError             depends on the class; `retryable` is true if waiting can help
│   ├── ModelRequestError             change the request
│   │   ├── UnsupportedInputError         remove the unsupported content; nothing was sent
│   │   │   └── MissingFileError              correct the path
│   │   ├── ContextLengthError            shorten the history
│   │   ├── ContentFilterError            change the content
│   │   └── ModelNotFoundError            correct the model's name
│   ├── ModelAuthError                correct the API key or its permissions
│   ├── RateLimitedError              wait `retry_after_s`
│   ├── ModelOverloadedError          wait and retry
│   ├── ModelConnectionError          check the address or the network, then retry
│   ├── ModelTimeoutError             allow more time, then retry
│   ├── ModelResponseError            retry: the server's answer violates the protocol
│   └── InvalidAnswerError            rephrase, or use another model: no answer matched the output type
├── ToolServiceError              pass it to the model, which reads the text
│   ├── ToolArgumentError             call again with other arguments
│   ├── ToolTimeoutError              do less in one call
│   ├── InDoubtError                  find out what was done, then allow the repetition or skip it
│   └── DocParserError                leave out or replace the named document
├── SandboxError                  install what the message names, or set `sandbox="none"`
├── StoreError                    repair the store; existing records are kept
│   ├── StoreUnavailableError         wait, or follow the message; the same call may work later
│   ├── RunBusyError                  wait until the other process has finished the run
│   └── RunNotFoundError              correct the run's id
└── LimitReachedError             raise the limit, or ask for less
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class JackfieldError(Exception):
    """Base class of all errors: `except JackfieldError` catches everything that Jackfield raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross processes with their runs, and BaseException would call the class with only the text.
        return (_restore, (type(self), self.args, self.__dict__))


def _restore(error_class: type[JackfieldError], args: tuple[object, ...], facts: dict[str, object]) -> JackfieldError:
    error = error_class.__new__(error_class, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class ConfigError(JackfieldError, ValueError):
    """A setting is not valid. The message names the setting and the allowed values."""


class ConsentNeededError(ConfigError):
    """A file has effects that the user has not approved.

    Attributes:
        path: The file.
        effects: One line per effect.
        request: The `jackfield.consent.Request`.
        by_command: True if `jackfield trust` supports the file.
    """

    def __init__(
        self, path: object, effects: Sequence[str], request: object = None, *, by_command: bool = True
    ) -> None:
        self.path, self.effects, self.request, self.by_command = path, tuple(effects), request, by_command
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> list[str]:
        """The message, line by line."""
        from jackfield.suggestions import shell_path  # only needed for this error

        command = f"run: jackfield trust {shell_path(self.path)}, or " if self.by_command else ""
        return [
            f"{self.path} needs your consent, because it",
            *(f"  - {effect}" for effect in self.effects),
            f"To allow this, {command}pass --trust (in code: trust=True)",
        ]


class MissingSecretError(ConfigError):
    """A required API key or token is not set.

    Attributes:
        variable: The environment variable to set.
        needed_by: The component that needs the secret.
        others: Everything else that the agent is missing: one string per component, with its variables and name.
    """

    def __init__(self, variable: str, *, needed_by: str, others: Sequence[str] = ()) -> None:
        from jackfield._folders import user_folder  # only needed for this error

        super().__init__(
            f"{needed_by} needs an API key: set the environment variable {variable}, "
            f"run `jackfield keys set {variable}`, or add it under [secrets] in {user_folder() / 'config.toml'}"
            + (f". Also not set: {', '.join(others)}" if others else "")
        )
        self.variable, self.needed_by, self.others = variable, needed_by, tuple(others)


class InvalidMessageError(JackfieldError, ValueError):
    """A message or part of a message is malformed. The error text names the field and says what to write."""


class PluginError(JackfieldError):
    """A plugin cannot be used. Other plugins are not affected."""


class PluginNotFoundError(PluginError, LookupError):
    """No installed plugin provides this name. `component` is `kind.name`, or '' if unknown."""

    def __init__(self, message: str, *, component: str = "") -> None:
        super().__init__(message)
        self.component = component


class AmbiguousPluginError(PluginError):
    """Several packages provide this name. The message lists their addresses."""


class PluginBlockedError(PluginError):
    """A policy blocks the plugin. The plugin was not imported."""


class BrokenPluginError(PluginError):
    """An installed plugin fails to load or violates its contract."""


class IncompatiblePluginError(PluginError):
    """A plugin was built for a different major version of the plugin API."""


class ModelServiceError(JackfieldError):
    """A request to a model failed.

    Attributes:
        backend: The backend that sent the request.
        code: The provider's own error code, or None.
        status: The HTTP status, or None.
        retry_after_s: The wait that the server requests, in seconds, or None.
        request_id: The provider's request id, for support requests.
        partial_text: The text received before the failure.
    """

    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        backend: str = "",
        code: str | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        partial_text: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.backend = backend
        self.code = code
        self.status = status
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.partial_text = partial_text


class ModelRequestError(ModelServiceError):
    """The provider rejected the request. Sending the same request again will not help."""


class UnsupportedInputError(ModelRequestError):
    """The model does not accept this kind of content. Nothing was sent."""


class MissingFileError(UnsupportedInputError):
    """A file named by a message or an agent does not exist or cannot be opened. Nothing was sent."""


class ContextLengthError(ModelRequestError):
    """The request is longer than the model's context."""


class ContentFilterError(ModelRequestError):
    """The provider's content filter blocked the request or the answer."""


class ModelNotFoundError(ModelRequestError):
    """The server has no model with this name."""


class ModelAuthError(ModelServiceError):
    """The API key is wrong or expired, or does not give access to this model."""


class RateLimitedError(ModelServiceError):
    """The provider's rate limit was exceeded. `retry_after_s` is the requested pause, or None."""

    retryable = True


class ModelOverloadedError(ModelServiceError):
    """The provider is overloaded or failed internally (HTTP 5xx)."""

    retryable = True


class ModelConnectionError(ModelServiceError):
    """The server could not be reached, or the connection was lost."""

    retryable = True


class ModelTimeoutError(ModelServiceError):
    """The server did not respond within the allowed time."""

    retryable = True


class ModelResponseError(ModelServiceError):
    """The server's answer violates the protocol."""

    retryable = True


class InvalidAnswerError(ModelServiceError):
    """No answer from the model matched the requested output. `partial_text` is the last answer.

    `usage` is the total usage of all attempts: a `jackfield.Usage`, or None.
    """

    usage: object = None


class ToolServiceError(JackfieldError):
    """A tool failed. The model reads the error text, so the text should say what to do instead.

    Attributes:
        may_be_done: True if the tool may have done some or all of its work despite the error.
    """

    def __init__(self, message: str, *, code: str | None = None, may_be_done: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.may_be_done = may_be_done


class ToolArgumentError(ToolServiceError, ValueError):
    """A call's arguments are not JSON or do not match the tool's schema. Nothing was done."""


class ToolTimeoutError(ToolServiceError):
    """The tool did not finish in time.

    Attributes:
        still_running: True if the tool could not be stopped.
    """

    def __init__(
        self, message: str, *, code: str | None = None, still_running: bool = False, may_be_done: bool = False
    ) -> None:
        super().__init__(message, code=code, may_be_done=may_be_done)
        self.still_running = still_running


class InDoubtError(ToolServiceError):
    """Part of an interrupted run may have taken effect and cannot be resumed. Repeating that part requires approval.

    Attributes:
        agent: The agent that was interrupted.
        call_id: The tool call that ran the agent, or '' if an agent kind ran it without a call.
        place: The position in the run at which the agent was called.
        question: The question that the agent was asked.
        is_denied: True if a person has denied the repetition.
    """

    def __init__(
        self, message: str, *, agent: str, call_id: str, place: str, question: str, is_denied: bool = False
    ) -> None:
        super().__init__(message)
        self.agent, self.call_id, self.place = agent, call_id, place
        self.question, self.is_denied = question, is_denied


class DocParserError(ToolServiceError):
    """A document cannot be read. The message names the file."""


class SandboxError(JackfieldError):
    """The code was not run because this machine has no working sandbox. The message says what is missing."""


class StoreError(JackfieldError):
    """A run's record cannot be read or written. Earlier records are kept."""


class StoreUnavailableError(StoreError):
    """A store is locked, full or unreachable. The same call may work later."""


class RunBusyError(StoreError):
    """Another process, or another task in this process, has locked the run."""


class RunNotFoundError(StoreError, LookupError):
    """The store has no run with this id."""


class LimitReachedError(JackfieldError):
    """The work reached a limit that the caller set. `limit` is the limit's name."""

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit
