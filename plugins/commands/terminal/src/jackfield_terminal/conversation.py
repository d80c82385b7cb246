"""Conduct and save a conversation with an agent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jackfield import sync
from jackfield.agents import RunView, with_calls_closed
from jackfield.cli import escape_line
from jackfield.defaults import STORE
from jackfield.errors import ConfigError, ContextLengthError, JackfieldError, UnsupportedInputError
from jackfield.events import ModelEvent
from jackfield.messages import ASSISTANT, USER, ContentItem, Message
from jackfield.plugins import default_host
from jackfield.runs import RunResources
from jackfield.secrets import Secrets, secrets_of
from jackfield_terminal.approval import Asker, can_ask
from jackfield_terminal.inputs import make_attachment, make_question
from jackfield_terminal.interrupts import cancel_on_ctrl_c
from jackfield_terminal.options import create_agent_from, read_agent_file
from jackfield_terminal.recording import name_session, open_store
from jackfield_terminal.saved_runs import load_run, save_run, write_text
from jackfield_terminal.screen import Screen, show_warnings
from jackfield_terminal.stored_runs import choose_model, find_last_chat, load_conversation


class Conversation:
    """The state of a conversation.

    Attributes:
        options: The command's options, including changes made during the conversation.
        session: The session's name in the agent's store, or '' if the conversation is not recorded.
        agent: The agent that answers.
        documents: The agent's documents, and the files skipped.
        history: The messages, oldest first.
        attachments: The files to send with the next question.
        screen: The screen.
        unused_prompt: The agent file's prompt, which only `jackfield run` uses, or ''.
    """

    def __init__(self, options: argparse.Namespace, screen: Screen) -> None:
        self.options = options
        self.screen = screen
        # A user who names a session relies on its record.
        if options.session or options.continue_last:
            if options.no_record:
                raise ConfigError(
                    "--no-record records nothing, so it cannot be used with --session or --continue: remove one of them"
                )
            if not options.config:  # a file names its own model, and perhaps its own store
                store = open_store(options.store, default_host())
                choose_model(options, find_last_chat(store, options.session), store)
            options.store = options.store or STORE
        settings = read_agent_file(options)
        self.unused_prompt: str = settings.get("prompt", "")
        self.agent, self.documents = create_agent_from(options, settings)
        self.session = self._find_session()
        self.history: list[Message] = self._load_history()
        self.attachments: list[str] = list(options.attach)
        for name in self.attachments:
            make_attachment(name)  # reports a missing file before the first question
        self._asker = Asker() if can_ask() else None
        # Shared by all turns, so that the state of a code interpreter persists.
        self._resources = RunResources()

    def _find_session(self) -> str:
        """Return the session to record, or '' if nothing is recorded.

        Raises:
            ConfigError: There is no session to continue.
        """
        if self.options.session:
            return str(self.options.session)
        if not self.options.continue_last:
            return "" if self.agent.store is None else name_session()
        last = None if self.agent.store is None else find_last_chat(self.agent.store, None)
        if last is None:
            raise ConfigError("no recorded chat to continue: start a chat without --continue")
        return last.session

    def _load_history(self) -> list[Message]:
        if self.options.resume:
            return with_calls_closed(load_run(Path(self.options.resume), self._secrets(), trust=self.options.trust))
        if (self.options.session or self.options.continue_last) and self.agent.store is not None:
            return load_conversation(self.agent.store, self.session, self.agent)
        return []

    def _secrets(self) -> Secrets:
        return secrets_of(self.agent, settings=self.agent.host.settings)

    @property
    def model(self) -> str:
        """The model's name, as `backend:model`."""
        return f"{self.agent.model.backend}:{self.agent.model.config.model}"

    def use_model(self, model: str) -> None:
        """Switch to another model.

        Raises:
            JackfieldError: The model cannot be used; the previous one stays in use.
        """
        options = argparse.Namespace(**{**vars(self.options), "model": model})
        self.agent, self.documents = create_agent_from(options)
        self.options = options

    def ask(self, text: str) -> None:
        """Ask a question and show the answer.

        After an error, the question is removed from the history unless tools were called. In that case, their results
        are retained, and calls without a result are marked as having an unknown outcome.
        """
        try:
            messages = [*self.history, make_question(text, self.attachments)]
        except JackfieldError as error:
            self._report(error)
            return
        view, completed = RunView(self.agent.name), RunView(self.agent.name)
        self.screen.start_run()
        try:
            self._run(messages, view, completed)
        except JackfieldError as error:
            self._report(error)
            if self.attachments and isinstance(error, UnsupportedInputError | ContextLengthError):
                self.attachments = []  # otherwise every further question would fail
                self.screen.renderer.warn("the next question has no attachments")
            if not any(message.function_call for message in completed.messages()):
                return
            view = completed  # without the start of an answer that never arrived
        except KeyboardInterrupt:  # the second Ctrl-C
            self.screen.renderer.warn("interrupted")
        self.attachments = []
        self.history = with_calls_closed([*messages, *view.messages()])

    def _run(self, messages: Sequence[Message], view: RunView, completed: RunView) -> None:
        """Run the agent, feeding all events to `view` and all but partial answers to `completed`."""
        screen = self.screen
        with cancel_on_ctrl_c() as cancel, show_warnings(screen.renderer, self._secrets()):
            if self._asker:
                self._asker.start_run(cancel, screen.renderer.make_room)
            events = self.agent.astream(
                messages,
                lang=self.options.lang,
                cancel=cancel,
                resources=self._resources,
                approve=self._asker,
                session=self.session,
            )
            try:
                for event in sync.iterate(events):
                    if self._asker and cancel.cancelled:
                        self._asker.end_line()
                    screen.show(event)
                    view.feed(event)
                    if not isinstance(event.event, ModelEvent):
                        completed.feed(event)
            finally:
                if self._asker:
                    self._asker.end_line()
                screen.renderer.end_line()

    def _report(self, error: JackfieldError) -> None:
        sys.stderr.write(f"jackfield: {escape_line(str(error))}\n")

    def undo(self) -> str:
        """Remove the last question and everything after it, and return its text, or '' if there is none."""
        for index in reversed(range(len(self.history))):
            if self.history[index].role == USER:
                text = self.history[index].get_text_content()
                self.history = self.history[:index]
                return text
        return ""

    def clear(self) -> None:
        """Clear the history."""
        self.history = []

    def save(self, path: Path) -> None:
        """Save the conversation, as Markdown if the file name ends in `.md`, otherwise in a format that can be resumed.

        Raises:
            ConfigError: The file cannot be written.
        """
        if path.suffix.lower() == ".md":
            write_text(path, self._secrets().hide(_transcript(self.history)))
        else:
            save_run(path, self.history, "finished", self._secrets())

    def close(self) -> None:
        """Close the tools' resources."""
        sync.run(self._resources.aclose())


def _transcript(history: Sequence[Message]) -> str:
    """Format the questions and answers as Markdown."""
    names = {USER: "You", ASSISTANT: "Answer"}
    parts = [
        f"## {names[message.role]}\n\n{_format_items(message.items)}"
        for message in history
        if message.role in names and message.items
    ]
    return "\n\n".join(parts) + "\n"


def _format_items(items: Sequence[ContentItem]) -> str:
    texts: list[str] = []
    for item in items:
        value = str(item.value)
        short = value if len(value) <= 200 else f"{value[:60]}…"
        texts.append(f"({item.type}: {short})" if item.text is None else item.text)
    return "\n\n".join(texts)
