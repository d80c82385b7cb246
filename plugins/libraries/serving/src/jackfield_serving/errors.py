"""The errors of serving, by what a client can do about them.

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
    └── InputTooLargeError        send less
```
"""

from __future__ import annotations

from jackfield.errors import JackfieldError


class ServingError(JackfieldError):
    """A request to a service of agents is refused."""


class AgentNotFoundError(ServingError, LookupError):
    """The service has no agent of this name."""


class TooManyRunsError(ServingError):
    """A limit of the service is reached; it may have room in `retry_after_s` seconds."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DrainingError(TooManyRunsError):
    """The service ends, and begins no runs."""


class SessionBusyError(ServingError):
    """A run of the session is still going on, or waits for an answer; `run_id` names it."""

    def __init__(self, message: str, *, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class NotWaitingError(ServingError):
    """The run does not wait for these answers: they came too late, or name other calls."""


class InputTooLargeError(ServingError):
    """The messages, or the conversation before them, are larger than the service allows."""
