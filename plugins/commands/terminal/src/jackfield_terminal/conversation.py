"""A conversation with an agent: what was said, what it cost, and how a turn of it goes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jackfield import sync
from jackfield.agents import RunView, with_calls_closed
from jackfield.cli import printable
from jackfield.errors import ConfigError, JackfieldError
from jackfield.events import ModelEvent
from jackfield.messages import ASSISTANT, USER, ContentItem, Message
from jackfield.runs import RunResources
from jackfield.secrets import Secrets, secrets_of
from jackfield_terminal.approval import Asker, can_ask
from jackfield_terminal.given import attachment, question
from jackfield_terminal.interrupts import cancelled_by_ctrl_c
from jackfield_terminal.options import STORE, agent_of
from jackfield_terminal.recorded import conversation_of, last_session
from jackfield_terminal.saved import load_run, save_run, write_text
from jackfield_terminal.screen import Screen, warnings_shown


class Conversation:
    """What is kept from turn to turn.

    Attributes:
        options: The options on the command line; changes made in the conversation apply to the next agent.
        session: The name by which it is kept in the agent's store; '' if it is not.
        agent, documents: The agent that answers, and the documents with those left out.
        history: The messages, oldest first.
        attachments: What will be sent with the next question.
        screen: Where it is shown.
    """

    def __init__(self, options: argparse.Namespace, screen: Screen) -> None:
        self.options = options
        self.screen = screen
        is_kept = bool(options.session or options.go_on)
        if is_kept:
            options.store = options.store or STORE
        self.agent, self.documents = agent_of(options)
        self.session = self._session() if is_kept else ""
        self.history: list[Message] = self._begun()
        self.attachments: list[str] = list(options.attach)
        for name in self.attachments:
            attachment(name)  # what is not there is said now
        self._asker = Asker() if can_ask() else None
        # Kept over all turns: what the code interpreter computed is still there.
        self._resources = RunResources()

    def _session(self) -> str:
        """The session that is kept.

        Raises:
            ConfigError: There is none to continue.
        """
        if self.options.session:
            return str(self.options.session)
        found = None if self.agent.store is None else last_session(self.agent.store)
        if found is None:
            raise ConfigError("there is no session to continue: begin one with jackfield chat --session NAME")
        return found

    def _begun(self) -> list[Message]:
        """What was said before."""
        if self.options.resume:
            return with_calls_closed(load_run(Path(self.options.resume), self._secrets(), trust=self.options.trust))
        if self.session and self.agent.store is not None:
            return conversation_of(self.agent.store, self.session, self.agent)
        return []

    def _secrets(self) -> Secrets:
        return secrets_of(self.agent, settings=self.agent.host.settings)

    @property
    def model(self) -> str:
        """The model's name, as it is typed."""
        return f"{self.agent.model.backend}:{self.agent.model.config.model}"

    def use_model(self, model: str) -> None:
        """Switch to another model.

        Raises:
            JackfieldError: There is no such model; the previous one stays.
        """
        changed = argparse.Namespace(**{**vars(self.options), "model": model})
        self.agent, self.documents = agent_of(changed)
        self.options = changed

    def ask(self, text: str) -> None:
        """Ask, and show the answer.

        An error is reported, and the question is removed again; but not if tools were called: what they did stays
        known, and a call without a result is said to have perhaps been made.
        """
        before = self.history
        try:
            asked = [*before, question(text, self.attachments)]
        except JackfieldError as error:
            self._report(error)
            return
        view, acted = RunView(self.agent.name), RunView(self.agent.name)
        self.screen.begin()
        try:
            self._run(asked, view, acted)
        except JackfieldError as error:
            self._report(error)
            if not any(message.function_call for message in acted.messages()):
                return
            view = acted  # without the beginning of an answer that never came
        except KeyboardInterrupt:  # the second: the run did not end by itself
            self.screen.renderer.note("! interrupted", always=True)
        self.attachments = []
        self.history = with_calls_closed([*asked, *view.messages()])

    def _run(self, asked: Sequence[Message], view: RunView, acted: RunView) -> None:
        screen = self.screen
        with cancelled_by_ctrl_c() as cancel, warnings_shown(screen.renderer, self._secrets()):
            if self._asker:
                self._asker.during(cancel, screen.renderer.end_line)
            events = self.agent.astream(
                asked,
                lang=self.options.lang,
                cancel=cancel,
                resources=self._resources,
                approve=self._asker,
                session=self.session,
            )
            try:
                for event in sync.iterate(events):
                    screen.show(event)
                    view.feed(event)
                    if not isinstance(event.event, ModelEvent):
                        acted.feed(event)
            finally:
                screen.renderer.end_line()

    def _report(self, error: JackfieldError) -> None:
        sys.stderr.write(f"jackfield: {printable(str(error))}\n")

    def undo(self) -> str:
        """Remove the last question and everything after it; returns its text, '' if there is none."""
        for at in reversed(range(len(self.history))):
            if self.history[at].role == USER:
                text = self.history[at].get_text_content()
                self.history = self.history[:at]
                return text
        return ""

    def clear(self) -> None:
        """Forget the conversation."""
        self.history = []

    def save(self, path: Path) -> None:
        """Write the conversation: as Markdown if the name ends in `.md`, else in a form that can be resumed.

        Raises:
            ConfigError: It cannot be written.
        """
        if path.suffix.lower() == ".md":
            write_text(path, self._secrets().hide(_transcript(self.history)))
        else:
            save_run(path, self.history, "finished", self._secrets())

    def close(self) -> None:
        """Close what the tools have open."""
        sync.run(self._resources.aclose())


def _transcript(history: Sequence[Message]) -> str:
    """What was asked and answered, for people."""
    names = {USER: "You", ASSISTANT: "Answer"}
    parts = [
        f"## {names[message.role]}\n\n{_shown(message.items)}"
        for message in history
        if message.role in names and message.items
    ]
    return "\n\n".join(parts) + "\n"


def _shown(items: Sequence[ContentItem]) -> str:
    texts = [item.text if item.text is not None else f"({item.type}: {_short(item.value)})" for item in items]
    return "\n\n".join(texts)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:60]}…"
