"""The file of cases: what is asked, by what answers are scored, and of which agents."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import Field

from jackfield import AgentConfig
from jackfield.config import Config
from jackfield.consent import Request, require_consent
from jackfield.errors import ConfigError
from jackfield.messages import Message, as_messages
from jackfield_agent_files.effects import request_for
from jackfield_agent_files.files import load_agent_config
from jackfield_agent_files.tables import FORMS, parse_table, read_text
from jackfield_eval.scorers import Contains, Scorer, scorer_of

_MAX_BYTES = 16 << 20
_NAME = re.compile(r"\w[\w.-]{0,79}")


class _File(Config):
    """The file as it is written."""

    agents: tuple[str, ...] = Field(default=(), description="Agent files, relative to this one")
    cases: tuple[dict[str, Any], ...] = Field(min_length=1)
    judge: str | dict[str, Any] | None = Field(default=None, description="The model of the scorer `judge`")
    repeat: int = Field(default=1, ge=1, le=1000, description="How often each case is asked")
    concurrency: int = Field(default=4, ge=1, description="How many runs at once")
    timeout_s: float = Field(default=300, gt=0, description="Seconds for one run and its scores")
    max_tokens: int | None = Field(default=None, ge=1, description="No run begins once this many tokens are used")
    max_cost: float | None = Field(default=None, gt=0, description="No run begins once this much money is spent")
    currency: str = "USD"
    approve: tuple[str, ...] = Field(default=(), description="Tools whose calls are approved; others are refused")
    cassettes: str | None = Field(default=None, description="A folder, relative to this file")
    results: str | None = Field(default=None, description="A folder, relative to this file")


class _Case(Config):
    name: str
    prompt: str | None = Field(default=None, min_length=1)
    messages: tuple[dict[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    expect: str | None = Field(default=None, min_length=1, description="The same as a scorer `contains`")
    score: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One question.

    Attributes:
        name: Unique in its file.
        messages: What is asked.
        files: Documents that the agent is given, besides its own.
        scorers: By what the answer is scored; at least one.
        digest: Of all that makes the case: a changed case is not compared with what it was.
    """

    name: str
    messages: tuple[Message, ...]
    files: tuple[str, ...]
    scorers: tuple[Scorer, ...]
    digest: str

    @property
    def question(self) -> str:
        """What the user said last, for a judge."""
        return self.messages[-1].get_text_content()


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of cases.

    Attributes:
        path: The file.
        settings: As in the file.
        agents: By their names.
        folders: Where the file and those of the agents are: paths in them differ from machine to machine.
        text: The file as it was read.
        agent_texts: The files of its agents as they were read and judged, by path.
    """

    path: Path
    settings: _File
    cases: tuple[Case, ...]
    agents: Mapping[str, AgentConfig]
    folders: tuple[Path, ...]
    text: str
    agent_texts: dict[str, str]

    def request(self) -> Request:
        """Say what the file can cause: as it was read, with the cassettes that there are now."""
        return request_for(self.path, self.text, _table(self.path, self.text), read_as="cases", agents=self.agent_texts)

    @property
    def cassettes(self) -> Path:
        """The folder of cassettes."""
        return self.path.parent / (self.settings.cassettes or f"{self.path.stem}.cassettes")

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.path.parent / (self.settings.results or f"{self.path.stem}.results")


def load_suite(
    path: Path, *, agents: Sequence[str] = (), changes: Mapping[str, object] | None = None, trust: bool = False
) -> Suite:
    """Read a file of cases and the agents that it names.

    Args:
        path: A YAML or JSON file.
        agents: Agent files, in place of those in the file.
        changes: Settings in place of those in the file.
        trust: The user vouches for the file, and for the agents that it names.

    Raises:
        ConsentNeededError: The file, or an agent, has effects that the user has not agreed to.
        ConfigError: Something in it does not fit; the message names the case.
    """
    text = read_text(path, max_bytes=_MAX_BYTES, what="a file of cases")
    table = _table(path, text)
    file = _File.parse({**table, **(changes or {})}, what=str(path))
    cases = tuple(map(partial(_case, path), count(1), file.cases))
    _check_names(path, [case.name for case in cases])
    named = list(map(Path, agents)) or list(map(path.parent.joinpath, file.agents))
    if not named:
        raise ConfigError(f"{path}: which agents? Add agents: [agent.yaml], or pass --agent FILE")
    _check_stems(named)
    folders = tuple(dict.fromkeys(_folder_of(one) for one in (path, *named)))
    texts: dict[str, str] = {}
    require_consent(request_for(path, text, table, read_as="cases", agents=texts), trust=trust)
    # Consent to the file covers the agents that it names, as they were judged, and no others.
    configs = _agents(named, {} if agents else texts, trust=trust or not agents)
    return Suite(path, file, cases, configs, folders, text, texts)


def _folder_of(path: Path) -> Path:
    try:
        return path.resolve().parent
    except (OSError, ValueError) as error:
        raise ConfigError(f"{ascii(str(path))[:200]} cannot be the path of a file: {type(error).__name__}") from None


def _table(path: Path, text: str) -> dict[str, Any]:
    try:
        table = parse_table(text, FORMS.get(path.suffix.lower(), "yaml"))
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(table, dict) or not table.get("cases"):
        raise ConfigError(f"{path} has no cases: it needs a list 'cases', each with name, prompt and expect or score")
    return {str(key): value for key, value in table.items()}


def _case(path: Path, number: int, entry: Mapping[str, Any]) -> Case:
    name = entry.get("name")
    label = name if name and isinstance(name, str) else number
    case = _Case.parse(entry, what=f"{path}, case {label!r}")
    where = f"{path}, case {case.name!r}"
    if not _NAME.fullmatch(case.name):
        raise ConfigError(f"{where}: a name is 1 to 80 letters, digits, '.', '-' and '_', and begins with none of '.-'")
    if (case.prompt is None) == (not case.messages):
        raise ConfigError(f"{where}: it needs a prompt, or messages in place of one")
    try:
        scorers = tuple(_scorers_of(case))
        messages = as_messages(case.prompt or case.messages)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None
    if not scorers:
        raise ConfigError(f"{where} has nothing to score its answer by: add expect: TEXT, or score: [{{regex: …}}]")
    return Case(case.name, messages, tuple(map(partial(_located, path), case.files)), scorers, _digest(entry))


def _located(path: Path, file: str) -> str:
    """A document of a case as agents take it: paths are relative to the file of cases."""
    return file if "://" in file else str(path.resolve().parent / file)


def _scorers_of(case: _Case) -> Iterator[Scorer]:
    yield from map(scorer_of, case.score)
    if case.expect is not None:
        yield Contains(expected=case.expect)


def _digest(entry: Mapping[str, Any]) -> str:
    text = json.dumps(entry, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _agents(paths: Iterable[Path], texts: Mapping[str, str], *, trust: bool) -> dict[str, AgentConfig]:
    # By its whole path, and so are its documents: from which folder it is run must not show in a request.
    return {path.stem: load_agent_config(path.resolve(), trust=trust, text=texts.get(str(path))) for path in paths}


def _check_stems(paths: Iterable[Path]) -> None:
    stems: set[str] = set()
    for path in paths:
        if path.stem in stems:
            raise ConfigError(f"two agents are named {path.stem!r}, which is the name of the file: rename {path}")
        stems.add(path.stem)


def _check_names(path: Path, names: Sequence[str]) -> None:
    # A case has a folder of cassettes, and some file systems see no difference between cases of letters.
    twice = [name for name, times in Counter(map(str.casefold, names)).items() if times > 1]
    if twice:
        raise ConfigError(f"{path}: {len(names)} cases, but several are named {twice[0]!r}: give each its own name")
