"""Attached files: their content reaches the model, or the request is refused, with the core alone."""

from __future__ import annotations

import base64
import codecs
import errno
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield import Agent, BasicAgent, FnCallAgent, Message, ToolContext, tool
from jackfield.attachments import decode_text
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, ContextLengthError, MissingFileError, UnsupportedInputError
from jackfield.events import HistoryTrimmed
from jackfield.messages import ContentItem
from jackfield.processors import Preprocessor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.testing import ScriptedModel, answer, calls

TEXT = "Forty sockets, 四十个插孔."
PDF = b"%PDF-1.7\n\xe2\xe3\xcf\xd3"
BINARY = bytes(range(256))


def model(*, facts: ModelFacts | None = None, **generate_cfg: Any) -> ScriptedModel:
    config = LLMConfig.parse({"model": "m", "generate_cfg": generate_cfg})
    return ScriptedModel(lambda _: answer("fine"), facts=facts, config=config, processors=[])


def asked(path: object, text: str = "How many?") -> Message:
    return Message("user", [ContentItem(text=text), ContentItem(file=str(path))])


def sent(scripted: ScriptedModel) -> str:
    return "\n".join(message.get_text_content() for message in scripted.requests[-1].messages)


# --- text files ---


@pytest.mark.parametrize(
    "content", [TEXT.encode(), codecs.BOM_UTF8 + TEXT.encode(), TEXT.encode("utf-16"), f"{TEXT}\r\n\n".encode()]
)
@pytest.mark.parametrize("address", ["path", "file: URL", "data: URI"])
def test_a_text_file_is_sent_as_it_is_below_its_name(tmp_path: Path, content: bytes, address: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    uri = f"data:text/plain;base64,{base64.b64encode(content).decode()}"
    scripted = model()
    scripted.ask(asked({"path": path, "file: URL": path.as_uri(), "data: URI": uri}[address]))
    name = "file.txt" if address == "data: URI" else "notes.txt"
    assert sent(scripted) == f'How many?\n<file name="{name}">\n{TEXT}\n</file>'
    assert str(tmp_path) not in sent(scripted), "nobody needs to know where the file is"


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    scripted = model()
    scripted.ask(asked(tmp_path / "a.txt"))
    assert '<file name="a.txt">\n(empty)\n</file>' in sent(scripted)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_every_text_is_decoded(text: str) -> None:
    content = text.encode()
    assert decode_text(content) in (text.removeprefix("\ufeff"), None)
    assert decode_text(b"x" + content) == f"x{text}"


@pytest.mark.parametrize(
    "content", [PDF, b"\n%PDF-1.7 ascii", b"{\\rtf1 a}", BINARY, b"a\0b", "Größe".encode("latin-1")]
)
def test_what_is_no_text_is_not_taken_for_one(content: bytes) -> None:
    assert decode_text(content) is None


@pytest.mark.parametrize("suffix", ["ipynb", "eml", "fodt", "fods", "fodp"])
def test_a_text_that_is_mostly_data_is_sent_as_it_is_where_nothing_reads_it(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.{suffix}").write_text(TEXT)
    scripted = model()
    scripted.ask(asked(tmp_path / f"a.{suffix}"))
    assert TEXT in sent(scripted)


# --- refusals ---


@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("a.pdf", "jackfield-multimodal jackfield-pdf"),
        ("a.docx", "jackfield-multimodal jackfield-office"),
        ("a.unknown", "jackfield-multimodal"),
    ],
)
def test_a_file_that_needs_a_parser_is_refused_with_the_command_that_installs_it(
    tmp_path: Path, name: str, packages: str
) -> None:
    (tmp_path / name).write_bytes(PDF if name == "a.pdf" else BINARY)
    scripted = model()
    with pytest.raises(UnsupportedInputError, match=f"{name} cannot be read.*pip install {packages}"):
        scripted.ask(asked(tmp_path / name))
    assert scripted.requests == []


def test_a_url_is_refused_with_the_command_that_installs_what_fetches_it() -> None:
    with pytest.raises(UnsupportedInputError, match=r"b\.pdf cannot be read.*pip install .*jackfield-fetch"):
        model().ask(asked("http://127.0.0.1:1/a/b.pdf"))


def test_a_broken_data_uri_is_refused() -> None:
    with pytest.raises(UnsupportedInputError, match="not valid base64"):
        model().ask(asked("data:text/plain;base64,a"))


def test_a_file_that_is_longer_than_the_context_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 10_000)
    for scripted in (model(facts=ModelFacts(context_tokens=4_000)), model(max_input_tokens=4_000)):
        with pytest.raises(ContextLengthError, match=r"long\.txt is too long.*4,000.*'assistant'"):
            scripted.ask(asked(tmp_path / "long.txt"))
    model(facts=ModelFacts(context_tokens=40_000)).ask(asked(tmp_path / "long.txt"))


# --- PDFs that the model takes ---


def test_a_pdf_stays_a_file_for_a_model_that_takes_it(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(PDF)
    (tmp_path / "pdf.txt").write_text(TEXT)
    scripted = model(facts=ModelFacts(files=True))
    scripted.ask([asked(tmp_path / "a.pdf"), asked(tmp_path / "pdf.txt")])
    first, second = scripted.requests[0].messages
    assert first.items[1] == ContentItem(file=str(tmp_path / "a.pdf"))
    assert TEXT in second.get_text_content()
    with pytest.raises(UnsupportedInputError, match=r"a\.pdf"):
        scripted.ask([Message("system", [ContentItem(file=str(tmp_path / "a.pdf"))]), Message("user", "?")])


class Hider(Preprocessor):
    name = "hider"
    needs_text = True

    def prepare(self, request: ChatRequest) -> ChatRequest:
        return request


def test_no_pdf_passes_a_processor_that_must_see_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(PDF)
    scripted = ScriptedModel([answer("fine")], facts=ModelFacts(files=True), processors=[Hider()])
    with pytest.raises(UnsupportedInputError, match=r"a\.pdf"):
        scripted.ask(asked(tmp_path / "a.pdf"))
    assert scripted.requests == []


def test_a_url_of_a_pdf_stays_for_a_server_that_fetches_it() -> None:
    url = "https://h.test/a.pdf?v=1"
    scripted = model(facts=ModelFacts(files=True, file_urls=True))
    scripted.ask(asked(url))
    assert scripted.requests[0].messages[0].items[1].file == url
    for facts in (ModelFacts(files=True), ModelFacts(file_urls=True)):
        with pytest.raises(UnsupportedInputError, match=r"a\.pdf"):
            model(facts=facts).ask(asked(url))


def test_a_text_that_is_shortened_on_its_way_is_a_warning(tmp_path: Path) -> None:
    trimmed = HistoryTrimmed(dropped=0, shortened=1, tokens_before=900, tokens_after=400)
    (tmp_path / "a.txt").write_text(TEXT)
    scripted = ScriptedModel([[trimmed, *answer("fine")]], processors=[])
    (warning,) = BasicAgent(llm=scripted).ask(asked(tmp_path / "a.txt")).warnings
    assert "0 messages dropped, 1 shortened" in warning


# --- earlier questions ---


def test_a_file_of_an_earlier_question_may_be_gone(tmp_path: Path) -> None:
    history = [asked(tmp_path / "gone.txt"), Message("assistant", "Forty.")]
    scripted = model()
    for result in (
        scripted.ask("Sure?", history=history),
        BasicAgent(llm=scripted).ask("Sure?", history=history),
    ):
        (warning,) = result.warnings
        assert "gone.txt" in warning
        assert result.to_dict()["warnings"] == [warning]
    with pytest.raises(MissingFileError, match=r"gone\.txt"):
        scripted.ask(asked(tmp_path / "gone.txt"), history=[Message("user", "Hi"), Message("assistant", "Hi.")])


# --- agents ---


@tool
def with_deps(context: ToolContext) -> str:
    """Uses what the caller passes."""
    return str(context.deps)


@tool(effects={"files"})
def count(context: ToolContext) -> int:
    """Counts the files."""
    return len(context.files)


class InQwensWay(Agent):
    def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Any:
        yield from self._call_llm(messages)


def agents(scripted: ScriptedModel, **options: Any) -> list[Agent]:
    return [
        BasicAgent(llm=scripted, **options),
        FnCallAgent(llm=scripted, **options),
        FnCallAgent([with_deps], scripted, **options),
    ]


def test_the_files_of_an_agent_are_in_its_first_question_and_not_in_the_history(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    for agent in agents(model(), files=[str(path)]):
        scripted = agent.llm
        assert isinstance(scripted, ScriptedModel)
        first = agent.ask("How many?")
        assert TEXT in sent(scripted)
        assert first.history[0] == Message("user", "How many?")
        agent.ask(asked(path, "Sure?"), history=first.history)
        assert sent(scripted).count(TEXT) == 1, "the conversation has it already"


@pytest.mark.parametrize("way", ["files", "message"])
def test_a_missing_file_is_an_error_for_every_agent(tmp_path: Path, way: str) -> None:
    gone, scripted = str(tmp_path / "gone.txt"), model()
    for agent in [
        *agents(scripted, files=[gone] if way == "files" else []),
        FnCallAgent([count], scripted, files=[gone] if way == "files" else []),
    ]:
        with pytest.raises(MissingFileError, match=r"gone\.txt") as caught:
            agent.ask("hi" if way == "files" else asked(gone))
        assert str(tmp_path) not in str(caught.value)
    assert scripted.requests == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    for agent in agents(model(), files=[str(tmp_path)]):
        with pytest.raises(MissingFileError, match="can only be read by agent kind 'assistant'"):
            agent.ask("hi")


def test_an_agent_that_takes_a_conversation_over_brings_its_files_along(tmp_path: Path) -> None:
    path, scripted = tmp_path / "a.txt", model()
    path.write_text(TEXT)
    for other in (
        BasicAgent(llm=scripted, name="other", description="Knows.", files=[str(path)]),
        InQwensWay([], scripted, name="other", description="Knows.", files=[str(path)]),
    ):
        first = ScriptedModel([calls(("transfer_to_other", {}))] * 2, processors=[])
        agent = FnCallAgent(llm=first, handoffs=[other])
        agent.ask("How many?")
        assert TEXT in sent(scripted)
        path.rename(tmp_path / "b.txt")
        with pytest.raises(MissingFileError, match=r"a\.txt"):
            agent.ask("How many?")
        (tmp_path / "b.txt").rename(path)


@pytest.mark.parametrize(("content", "is_sent"), [(TEXT.encode(), True), (b"word " * 10_000, False), (BINARY, False)])
def test_where_a_tool_opens_files_short_texts_are_sent_and_the_names_of_others(
    tmp_path: Path, content: bytes, is_sent: bool
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    scripted = ScriptedModel([calls(("count", {})), answer("One.")], processors=[])
    result = FnCallAgent([count], scripted, files=[str(path)]).ask("How many files?")
    assert (TEXT in sent(scripted)) == is_sent
    assert ("[file: a.txt]" in sent(scripted)) != is_sent
    assert [message.content for message in result.messages if message.role == "function"] == ["1"]
    assert [warning.partition(":")[0] for warning in result.warnings] == ["only the file's name was sent"] * (
        not is_sent
    )


def test_an_unreadable_file_is_named_with_a_warning_where_a_tool_may_open_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.bin").write_bytes(BINARY)
    scripted = ScriptedModel([calls(("with_deps", {})), answer("One.")], processors=[])
    files = [str(tmp_path / name) for name in ("a.txt", "b.bin")]
    stream = FnCallAgent([with_deps], scripted, files=files).stream("How many?")
    names = [type(event).__name__ for event in stream]
    assert TEXT in sent(scripted)
    assert "[file: b.bin]" in sent(scripted)
    (warning,) = stream.result.warnings
    assert warning.startswith("only the file's name was sent: b.bin cannot be read")
    assert names.count("PluginEvent") == 1, "once, and not in each turn"
    assert "Warnings:" in stream.result._repr_markdown_()


@pytest.mark.parametrize("tools", [[], [with_deps], [count]])
def test_an_agent_in_qwens_way_reads_files_as_well(tmp_path: Path, tools: list[Any]) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    scripted = model()
    InQwensWay(tools, scripted, files=[str(tmp_path / "a.txt")]).ask("How many?")
    assert (TEXT in sent(scripted)) == (count not in tools)
    assert "a.txt" in sent(scripted)


def test_a_history_of_plain_texts_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(ContentItem, "__init__", lambda item, **_: made.append(item))
    agent = FnCallAgent([], ScriptedModel([answer("four")]), system_message="Count.")
    history = [Message("user", "two"), Message("assistant", "three")] * 50
    assert agent.ask("next?", history=history).text == "four"
    assert made == []


# --- files in `data:` URIs, for tools ---


@tool(name="look", description="Reads the files.")
def look(context: ToolContext) -> str:
    return " | ".join(f"{Path(file).name}={Path(file).read_text()}" for file in context.files)


def contained(name: str, text: str) -> ContentItem:
    data = base64.b64encode(text.encode()).decode()
    return ContentItem(file=f"data:text/plain;name={quote(name, safe='')};base64,{data}")


def looked_at(*items: ContentItem, earlier: tuple[Message, ...] = ()) -> str:
    agent = FnCallAgent([look], ScriptedModel([calls(("look", {})), answer("fine")]))
    result = agent.ask([*earlier, Message("user", [ContentItem(text="What do they say?"), *items])])
    return next(str(message.content) for message in result.messages if message.role == "function")


def test_files_of_one_name_are_both_there_for_tools_and_equal_ones_once() -> None:
    one, two = contained("a.txt", "one"), contained("a.txt", "two")
    assert looked_at(one, two, one) == "a.txt=one | a.txt=two"


@given(name=st.text(max_size=300))
@example(name="../../etc/passwd")
@example(name="..")
@example(name="\\..\\boot.ini")
@example(name="a\0b.txt")
@example(name="四" * 200 + ".csv")
def test_the_name_of_a_contained_file_never_leads_elsewhere(name: str) -> None:
    shown, _, text = looked_at(contained(name, "one")).rpartition("=")
    assert text == "one"
    assert not {"/", "\\", "\0"} & set(shown)
    assert len(shown.encode()) <= 200
    assert shown.endswith(".csv") or not name.endswith("四.csv")


def test_a_broken_contained_file_is_refused_unless_its_question_was_answered() -> None:
    broken = ContentItem(file="data:text/plain;name=a.txt;base64,!!!")
    with pytest.raises(UnsupportedInputError, match="not valid base64"):
        looked_at(broken)
    earlier = (Message("user", [ContentItem(text="Well?"), broken]), Message("assistant", "No."))
    assert looked_at(contained("b.txt", "two"), earlier=earlier) == "b.txt=two"


def test_no_file_is_saved_where_nothing_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryDirectory", None)
    scripted = model()
    BasicAgent(llm=scripted).ask([Message("user", [ContentItem(text="Well?"), contained("a.txt", TEXT)])])
    assert TEXT in sent(scripted)
    assert "a.txt" in sent(scripted)


def test_a_full_disk_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigError, match=r"No space left on device\. Free some space, or set TMPDIR"):
        looked_at(contained("a.txt", "one"))
