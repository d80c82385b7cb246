"""Load a case file: questions, scorers for the answers, and the agents to evaluate."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from jackfield import AgentConfig
from jackfield.config import Config
from jackfield.consent import Request, is_agreed, require_consent
from jackfield.errors import ConfigError
from jackfield.messages import Message, as_messages
from jackfield_agent_files.effects import request_for
from jackfield_agent_files.files import load_agent_config
from jackfield_agent_files.tables import FORMS, parse_table, read_text
from jackfield_eval.scorers import Contains, Scorer, parse_scorer

_MAX_BYTES = 16 << 20
_NAME = re.compile(r"\w[\w.-]{0,79}")


class _File(Config):
    """The contents of a case file."""

    agents: tuple[str, ...] = Field(default=(), description="Agent files, relative to this file")
    cases: tuple[dict[str, Any], ...] = Field(min_length=1)
    judge: str | dict[str, Any] | None = Field(default=None, description="Model for the scorer `judge`")
    repeat: int = Field(default=1, ge=1, le=1000, description="Number of runs per case")
    concurrency: int = Field(default=4, ge=1, description="Number of concurrent runs")
    timeout_s: float = Field(default=300, gt=0, description="Time limit of a run and its scores, in seconds")
    max_tokens: int | None = Field(default=None, ge=1, description="Number of tokens after which no further run starts")
    max_cost: float | None = Field(default=None, gt=0, description="Cost after which no further run starts")
    currency: str = "USD"
    approve: tuple[str, ...] = Field(default=(), description="Tools whose calls are approved; others are denied")
    cassettes: str | None = Field(default=None, description="Folder for recorded answers, relative to this file")
    results: str | None = Field(default=None, description="Folder for results, relative to this file")


class _Case(Config):
    name: str
    prompt: str | None = Field(default=None, min_length=1)
    messages: tuple[dict[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    expect: str | None = Field(default=None, min_length=1, description="Text that the answer must contain")
    score: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its scorers.

    Attributes:
        name: The name, unique within its file.
        messages: The question, optionally preceded by a conversation.
        files: Documents for the agent, in addition to its own.
        scorers: One or more scorers for the answer.
        digest: A hash of the case. Results are compared only if it is unchanged.
    """

    name: str
    messages: tuple[Message, ...]
    files: tuple[str, ...]
    scorers: tuple[Scorer, ...]
    digest: str

    @property
    def question(self) -> str:
        """The last message's text, for a judge."""
        return self.messages[-1].get_text_content()


@dataclass(frozen=True, slots=True)
class Suite:
    """A loaded case file.

    Attributes:
        path: The file.
        settings: The file's settings.
        cases: The file's cases.
        agents: The agents by name.
        folders: The directories of the file and the agents, whose paths differ between machines.
        text: The file's content.
        judged: The part of the file to which the user agreed, as values; its agents are omitted if others replace them.
        agent_texts: The contents of the agent files to which the user agreed, by path.
    """

    path: Path
    settings: _File
    cases: tuple[Case, ...]
    agents: Mapping[str, AgentConfig]
    folders: tuple[Path, ...]
    text: str
    judged: Mapping[str, Any]
    agent_texts: dict[str, str]

    def request(self) -> Request:
        """Return the effects of the file as loaded, together with the current cassettes."""
        return request_for(self.path, self.text, self.judged, read_as="cases", agents=self.agent_texts)

    @property
    def cassettes(self) -> Path:
        """The cassette directory."""
        return self.path.parent / (self.settings.cassettes or f"{self.path.stem}.cassettes")

    @property
    def results(self) -> Path:
        """The results directory."""
        return self.path.parent / (self.settings.results or f"{self.path.stem}.results")


def load_suite(
    path: Path, *, agents: Sequence[str] = (), changes: Mapping[str, object] | None = None, trust: bool = False
) -> Suite:
    """Load a case file and the agents it names.

    Args:
        path: A YAML or JSON file.
        agents: Agent files that replace those named by the file.
        changes: Settings that override those in the file.
        trust: True if the user vouches for the file and the agents it names.

    Raises:
        ConsentNeededError: The user has not agreed to the effects of the file or of an agent.
        ConfigError: The file is invalid. The message names the case.
    """
    text = read_text(path, max_bytes=_MAX_BYTES, what="a cases file")
    table = _table(path, text)
    file = _File.parse({**table, **(changes or {})}, what=str(path))
    cases = tuple(_parse_case(path, number, entry) for number, entry in enumerate(file.cases, start=1))
    _check_names(path, [case.name for case in cases])
    agent_paths = [Path(agent) for agent in agents] or [path.parent / agent for agent in file.agents]
    if not agent_paths:
        raise ConfigError(f"{path} specifies no agents. Add `agents: [agent.yaml]`, or pass --agent FILE")
    _check_stems(agent_paths)
    folders = tuple(dict.fromkeys(_folder_of(file_path) for file_path in (path, *agent_paths)))
    judged = _without_agents(path, text, table) if agents else table
    texts: dict[str, str] = {}
    require_consent(request_for(path, text, judged, read_as="cases", agents=texts), trust=trust)
    # Consent to the file covers only the agents it names, with the content that was shown.
    agreed_texts = {} if agents else texts
    configs = {
        # The absolute path, so that requests do not depend on the working directory.
        agent.stem: load_agent_config(agent.resolve(), trust=trust or not agents, text=agreed_texts.get(str(agent)))
        for agent in agent_paths
    }
    return Suite(path, file, cases, configs, folders, text, judged, texts)


def _without_agents(path: Path, text: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a file that needs consent when other agents replace its own, which may not exist."""
    rest = {key: value for key, value in table.items() if key != "agents"}
    if is_agreed(request_for(path, text, rest, read_as="cases")):
        return rest
    with suppress(ConfigError):
        # Consent to the file with its agents covers the file without them.
        if is_agreed(request_for(path, text, table, read_as="cases")):
            return table
    return rest


def _folder_of(path: Path) -> Path:
    try:
        return path.resolve().parent
    except (OSError, ValueError) as error:
        raise ConfigError(f"{ascii(str(path))[:200]} is not a valid file path: {type(error).__name__}") from None


def _table(path: Path, text: str) -> dict[str, Any]:
    try:
        table = parse_table(text, FORMS.get(path.suffix.lower(), "yaml"))
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(table, dict) or not table.get("cases"):
        raise ConfigError(
            f"{path} contains no cases: add a `cases` list whose entries have `name`, `prompt`, and `expect` or `score`"
        )
    return {str(key): value for key, value in table.items()}


def _parse_case(path: Path, number: int, entry: Mapping[str, Any]) -> Case:
    name = entry.get("name")
    label = name if name and isinstance(name, str) else number
    case = _Case.parse(entry, what=f"{path}, case {label!r}")
    where = f"{path}, case {case.name!r}"
    if not _NAME.fullmatch(case.name):
        raise ConfigError(
            f"{where}: a name must consist of 1 to 80 letters, digits, '.', '-' and '_', and not start with '.' or '-'"
        )
    if (case.prompt is None) == (not case.messages):
        raise ConfigError(f"{where}: either `prompt` or `messages` is required")
    try:
        scorers = [parse_scorer(entry) for entry in case.score]
        if case.expect is not None:
            scorers.append(Contains(expected=case.expect))
        messages = as_messages(case.prompt or case.messages)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None
    if not scorers:
        raise ConfigError(f"{where}: no scorer. Add `expect: TEXT` or `score: [{{regex: …}}]`")
    # Paths are relative to the case file.
    files = tuple(file if "://" in file else str(path.resolve().parent / file) for file in case.files)
    return Case(case.name, messages, files, tuple(scorers), _digest(entry))


def _digest(entry: Mapping[str, Any]) -> str:
    text = json.dumps(entry, sort_keys=True, default=str)  # ASCII, even if an entry contains a lone surrogate
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_stems(paths: Iterable[Path]) -> None:
    stems: set[str] = set()
    for path in paths:
        if path.stem in stems:
            raise ConfigError(
                f"two agent files are named {path.stem!r}, but agents are named after their files: rename {path}"
            )
        stems.add(path.stem)


def _check_names(path: Path, names: Sequence[str]) -> None:
    # Each case has its own cassette directory, and some file systems are case-insensitive.
    seen: set[str] = set()
    for name in names:
        folded = name.casefold()
        if folded in seen:
            raise ConfigError(f"{path}: several cases are named {folded!r}; case names must be unique")
        seen.add(folded)
