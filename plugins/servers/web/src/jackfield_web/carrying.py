"""Export conversations to files, and import such files as untrusted data."""

from __future__ import annotations

import uuid
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jackfield.errors import JackfieldError
from jackfield.messages import ASSISTANT, FUNCTION, USER, ContentItem, FunctionCall, Message
from jackfield.servers import RequestRefusedError
from jackfield_serving import RunInfo, Serving
from jackfield_web.wire import question_messages

FORMAT: Literal["jackfield-conversation"] = "jackfield-conversation"
_MOST_RUNS = 1000
_MOST_MESSAGES = 10_000
_MAX_NAME_CHARS = 200
_MAX_TITLE_CHARS = 1000


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ExportedItem(_Part):
    """A content item: text, or media as a `data:` URI.

    Paths and other URLs are refused, because the server would read them for the next answer.
    """

    text: str | None = None
    image: str | None = Field(default=None, pattern="^data:")
    audio: str | None = Field(default=None, pattern="^data:")
    video: str | None = Field(default=None, pattern="^data:")
    file: str | None = Field(default=None, pattern="^data:")

    @model_validator(mode="after")
    def _has_one_value(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("must contain exactly one of text, image, audio, video and file")
        return self


class ExportedCall(_Part):
    """A tool call."""

    id: str = Field(max_length=_MAX_NAME_CHARS)
    name: str = Field(max_length=_MAX_NAME_CHARS)
    arguments: str


class ExportedMessage(_Part):
    """A message. `call` is the assistant's call, and `call_id` the id of the call that a `function` message answers."""

    role: Literal["user", "assistant", "function"]
    content: str | list[ExportedItem] = ""
    reasoning: str = ""
    name: str = Field(default="", max_length=_MAX_NAME_CHARS)
    call: ExportedCall | None = None
    call_id: str = Field(default="", max_length=_MAX_NAME_CHARS)
    error: str = Field(default="", max_length=_MAX_NAME_CHARS)

    def as_message(self) -> Message:
        """Convert to a message that contains nothing but these fields."""
        content: str | list[ContentItem] = ""
        if isinstance(self.content, str):
            content = self.content
        else:
            content = [ContentItem(**item.model_dump(exclude_none=True)) for item in self.content]
        call = self.call if self.role == ASSISTANT else None
        call_id = call.id if call else self.call_id
        extra = {"function_id": call_id} if call_id else {}
        if self.error:
            extra["error"] = self.error
        return Message(
            self.role,
            content,
            name=self.name or None,
            reasoning_content=self.reasoning or None,
            function_call=call and FunctionCall(call.name, call.arguments),
            extra=extra or None,
        )


class ExportedRun(_Part):
    """A question and all messages of the answer. `continues` is the id of an earlier run in the file."""

    id: str = Field(min_length=1, max_length=_MAX_NAME_CHARS)
    continues: str = Field(default="", max_length=_MAX_NAME_CHARS)
    agent: str = Field(default="", max_length=_MAX_NAME_CHARS)
    messages: list[ExportedMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)


class ExportedConversation(_Part):
    """The contents of an exported file."""

    format: Literal["jackfield-conversation"]
    version: Literal[1]
    title: str = Field(default="", max_length=_MAX_TITLE_CHARS)
    runs: list[ExportedRun] = Field(min_length=1, max_length=_MOST_RUNS)


def export_conversation(title: str, runs: list[RunInfo]) -> ExportedConversation:
    """Export a conversation's completed runs, oldest first.

    Raises:
        RequestRefusedError: No run has ended.
    """
    exported = [
        ExportedRun(
            id=run.run_id,
            continues=str(run.request.get("continues", "")),
            agent=run.agent,
            messages=[_export(message) for message in (*question_messages(run.messages), *run.response)],
        )
        for run in runs
        if run.phase == "ended" and question_messages(run.messages)
    ]
    if not exported:
        raise RequestRefusedError("there are no answers to export yet: try again later")
    return ExportedConversation(format=FORMAT, version=1, title=_fit(title, _MAX_TITLE_CHARS), runs=exported)


def _export(message: Message) -> ExportedMessage:
    call = message.function_call
    reasoning, call_id = message.reasoning_content, _fit(message.function_id or "")
    return ExportedMessage(
        role=message.role if message.role in (USER, FUNCTION) else ASSISTANT,
        content=[_export_item(item) for item in message.items],
        reasoning=reasoning if isinstance(reasoning, str) else "",
        name=_fit(message.name or ""),
        call=ExportedCall(id=call_id, name=_fit(call.name), arguments=call.arguments) if call else None,
        call_id="" if call else call_id,
        error=_fit(message.error),
    )


def _fit(text: str, most: int = _MAX_NAME_CHARS) -> str:
    """Shorten a text to a field's limit, and replace lone surrogates, which fields reject."""
    return text.encode("utf-8", "replace").decode()[:most]


def _export_item(item: ContentItem) -> ExportedItem:
    """Convert a content item; media without inline data becomes a text such as `[image]`."""
    if item.text is None and isinstance(item.value, str) and item.value.startswith("data:"):
        return ExportedItem(**{item.type: item.value})
    return ExportedItem(text=item.text if item.text is not None else f"[{item.type}]")


async def import_conversation(serving: Serving, file: ExportedConversation, *, owner: str) -> str:
    """Store an exported conversation as a new one, and return its id.

    Nothing is executed: the imported runs contain only messages, and every call already has its result. An unknown
    agent is replaced by the first one of this service.

    Raises:
        RequestRefusedError: A run does not begin with a question, or the conversation is too large.
        JackfieldError: The service refuses a run.
    """
    plan = [_split(run) for run in file.runs]
    _check_size(serving, file)
    session, ids = uuid.uuid4().hex, dict[str, str]()
    try:
        for run, (question, response) in zip(file.runs, plan, strict=True):
            agent = run.agent if run.agent in serving.agents else next(iter(serving.agents))
            ids[run.id] = await serving.add_ended(
                agent, question, response, owner=owner, session=session, continues=ids.get(run.continues, "")
            )
        if file.title.strip():
            await serving.rename(session, file.title, owner=owner)
    except JackfieldError:
        for run_id in ids.values():
            await serving.delete(run_id, owner=owner)
        raise
    return session


def _split(run: ExportedRun) -> tuple[list[Message], list[Message]]:
    """Split a run into question and answer.

    Raises:
        RequestRefusedError: The run does not begin with a question.
    """
    messages = [message.as_message() for message in run.messages]
    count = 0
    while count < len(messages) and messages[count].role == USER:
        count += 1
    if not count:
        raise RequestRefusedError(f"run {run.id!r} in the file does not start with a question")
    return messages[:count], messages[count:]


def _check_size(serving: Serving, file: ExportedConversation) -> None:
    """Refuse a file that would take too much space, since the store repeats all earlier runs in each run."""
    sizes, total = dict[str, int](), 0
    for run in file.runs:
        if run.id in sizes:
            raise RequestRefusedError(f"the file contains run {run.id!r} twice")
        sizes[run.id] = sizes.get(run.continues, 0) + len(run.model_dump_json())
        total += sizes[run.id]
    most = serving.limits.history_bytes
    if total > most:
        raise RequestRefusedError(f"the conversation would take {total} bytes; the limit is {most}")
