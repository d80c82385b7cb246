"""The core's defaults. Only this module of the core names other packages and their components."""

from __future__ import annotations

DEFAULT_CHAIN = (
    "jackfield-system-message/language",
    "jackfield-multimodal/multimodal",
    "jackfield-truncation/truncation",
)
"""The processors that act around every model if they are installed, by full address.

This is the only exception to "installed is not active": without it, a long history or a document in a message would be
an error in every first program. Settings can block each of them. A processor of the same name that is enabled or named
in code replaces the default.
"""

CALL_FORMAT = "nous"
"""The call format for models without native tool calls."""

COMPATIBLE_SERVER = "openai"
"""The backend of a server if only its address is given."""

FIRST_BACKEND = "jackfield-openai"
"""The package that errors suggest if no backend is installed."""

FIRST_SANDBOX = "jackfield-bubblewrap"
"""The package that errors suggest if no sandbox can be used."""

READER_OF_FILES = "jackfield-multimodal"
"""The package of the default chain whose processor reads attached files with parsers."""

FETCHER = "jackfield-fetch"
"""The package that fetches files at URLs; errors suggest it."""

FIRST_PARSER = "jackfield-text"
"""The package that errors suggest for a file whose parser is unknown."""

AGENT_WITH_FILES = "assistant"
"""The agent kind that the command line uses for documents."""

STORE = "sqlite"
"""The store in which the command line records runs, if it is installed."""

MANAGER = "jackfield-manage"
"""The package whose commands manage the installation.

If the package is proven to be ours, it has two privileges: only a rule that names it can keep it from loading, and
other packages cannot take the names of its commands.
"""

EXPLAINED_BY = "jackfield_manage.judging.absences:explain_absence"
"""The manager's function that explains why nothing offers a name. It takes the host, the kind and the address."""

TERMINAL = "jackfield-terminal"
"""The package whose commands (`TERMINAL_COMMANDS`) run agents. Otherwise it is an ordinary plugin."""

TERMINAL_COMMANDS = {"run": "ask an agent one thing", "chat": "talk with an agent"}

LOG_OBSERVER = "observer.jackfield-log/log"
"""The observer that `JACKFIELD_LOG` enables."""
