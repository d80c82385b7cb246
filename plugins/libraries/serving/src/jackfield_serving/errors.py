"""The errors of serving, grouped by what a client can do about them.

```
JackfieldError
├── StoreError
│   ├── RunNotFoundError          correct the id; also for a run of another owner
│   └── RunBusyError              wait until the run has ended
└── ServingError
    ├── AgentNotFoundError        correct the agent's name
    ├── TooManyRunsError          wait `retry_after_s`
    │   └── DrainingError             try another server
    ├── SessionBusyError          wait until the session's run has ended, or cancel it
    ├── NotWaitingError           read the run: it waits for nothing, or for other answers
    ├── OptionsRefusedError       leave out, or correct, the tools or options that the agent does not take
    └── InputTooLargeError        send less
```
"""

from __future__ import annotations

from jackfield.errors import ConfigError
from jackfield.servers import RequestRefusedError


class ServingError(RequestRefusedError):
    """A service rejected a request."""


class AgentNotFoundError(ServingError, LookupError):
    """The service has no agent with this name."""

    status = 404
    code = "agent_not_found"


class TooManyRunsError(ServingError):
    """A limit of the service has been reached. There may be room in `retry_after_s` seconds."""

    status = 429
    code = "busy"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message, retry_after_s=retry_after_s)


class DrainingError(TooManyRunsError):
    """The service is shutting down and starts no runs."""

    status = 503
    code = "draining"


class SessionBusyError(ServingError):
    """A run in the session has not ended or is waiting for an answer; `run_id` identifies it."""

    status = 409
    code = "session_busy"

    def __init__(self, message: str, *, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class NotWaitingError(ServingError):
    """The run does not wait for these answers, because they came too late or name other calls."""

    status = 409
    code = "not_waiting"


class OptionsRefusedError(ServingError, ConfigError):
    """The agent does not support the request's tools, options or answer format."""

    code = "unsupported_options"


class InputTooLargeError(ServingError):
    """The messages, or the conversation they continue, are larger than the service allows."""

    status = 413
    code = "too_large"
