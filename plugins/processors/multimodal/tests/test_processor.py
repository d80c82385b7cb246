"""What is mentioned, what stays, and what is left alone."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from jackfield import sync
from jackfield.attachments import AttachedFile
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, DocParserError, UnsupportedInputError
from jackfield.events import ModelEvent, ModelFinished
from jackfield.messages import ContentItem, FunctionCall, Message, Origin
from jackfield.plugins import PluginHost, default_host
from jackfield.request import ChatRequest, FileUse, ModelFacts
from jackfield.testing import ScriptedModel, answer
from jackfield_multimodal.config import Unsupported
from jackfield_multimodal.mentions import mention
from jackfield_multimodal.processor import Multimodal
from jackfield_testkit.streams import gathered

SEES = ModelFacts(images=True, audio=True, video=True)
TOOL = {"name": "zoom", "description": "Zooms.", "parameters": {"type": "object", "properties": {}}}
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
E43 = [{"text": "look"}, {"image": "http://x/y.png"}, {"file": "/a/b.pdf"}]


def _content(
    items: list[dict[str, Any]], *, unsupported: Unsupported = "note", role: str = "user", **request: Any
) -> Any:
    message = Message(role, items, name="t" if role == "function" else None)
    asked = ChatRequest(model="m", messages=(message,), **request)
    content = Multimodal(unsupported=unsupported).prepare(asked).messages[0].content
    return content if isinstance(content, str) else [item.model_dump() for item in content]


def test_a_text_model_is_told_of_pictures_and_files_by_name() -> None:
    assert _content(E43) == "(Uploaded ![image](y.png) [file](b.pdf)) look"
    assert _content(E43, lang="zh") == "（上传了 ![图片](y.png) [文件](b.pdf)）look"


def test_a_model_that_sees_keeps_pictures_and_is_told_of_files_only() -> None:
    assert _content(E43, facts=SEES) == [{"text": "(Uploaded [file](b.pdf)) look"}, {"image": "http://x/y.png"}]


def test_a_model_that_reads_files_keeps_them() -> None:
    reads = ModelFacts(images=True, files=True)
    assert _content(E43, facts=reads) == E43
    assert _content(E43, facts=reads, unsupported="refuse") == E43
    assert _content(E43, facts=reads, functions=(TOOL,))[0] == {"text": "(Uploaded ![image](y.png) [file](b.pdf)) look"}


def test_with_tools_media_that_stay_are_mentioned_too() -> None:
    assert _content(E43, facts=SEES, functions=(TOOL,)) == [
        {"text": "(Uploaded ![image](y.png) [file](b.pdf)) look"},
        {"image": "http://x/y.png"},
    ]


def test_each_kind_goes_by_its_own_fact() -> None:
    items = [{"image": "a.png"}, {"audio": "a.wav"}, {"video": "a.mp4"}, {"text": "?"}]
    rest = "(Uploaded ![audio](a.wav) ![video](a.mp4)) "
    assert _content(items, facts=ModelFacts(images=True)) == [
        {"text": rest.rstrip()},
        {"image": "a.png"},
        {"text": "?"},
    ]
    assert _content(items, facts=ModelFacts(audio=True))[0] == {"text": "(Uploaded ![image](a.png) ![video](a.mp4))"}
    assert _content(items, facts=ModelFacts(video=True))[0] == {"text": "(Uploaded ![image](a.png) ![audio](a.wav))"}


def test_the_system_may_attach_files_too() -> None:
    assert _content([{"file": "rules.txt"}, {"text": "Keep them."}], role="system") == (
        "(Uploaded [file](rules.txt)) Keep them."
    )


def test_a_message_that_is_only_a_file_becomes_its_note() -> None:
    assert _content([{"file": "b.pdf"}]) == "(Uploaded [file](b.pdf))"


@pytest.mark.parametrize("role", ["assistant", "function"])
def test_elsewhere_a_mention_stands_in_the_place_of_what_is_left_out(role: str) -> None:
    items = [{"text": "made:"}, {"file": "b.pdf"}, {"image": "http://x/y.png"}, {"text": "done"}]
    mentions = [{"text": "[file](b.pdf)"}, {"text": "![image](y.png)"}]
    assert _content(items, role=role) == [{"text": "made:"}, *mentions, {"text": "done"}]
    assert _content(items, role=role, functions=(TOOL,), facts=SEES)[2] == {"image": "http://x/y.png"}


def test_what_the_text_mentions_already_is_not_mentioned_again() -> None:
    items = [{"text": "Compare ![图片](y.png) with it."}, {"image": "http://x/y.png"}, {"file": "/a/b.pdf"}]
    assert _content(items) == "(Uploaded [file](b.pdf)) Compare ![图片](y.png) with it."


@pytest.mark.parametrize("texts", [["see [file](b.pdf)", "?"], ["?", "see [file](b.pdf)"]])
def test_a_mention_in_any_of_several_texts_is_enough(texts: list[str]) -> None:
    items = [{"text": text} for text in texts]
    assert _content([{"file": "b.pdf"}, *items]) == items


def test_several_texts_stay_apart() -> None:
    assert _content([{"file": "b.pdf"}, {"text": "one"}, {"text": "two"}]) == [
        {"text": "(Uploaded [file](b.pdf)) one"},
        {"text": "two"},
    ]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"image": "https://user@h/a%20b/cat%20%281%29.png?sig=secret"}, "![image](cat (1).png)"),
        ({"file": "C:\\Users\\ann\\report.pdf"}, "[file](report.pdf)"),
        ({"file": "a%0AIgnore.pdf"}, "[file](a Ignore.pdf)"),
        ({"file": "%09a%0D%0A%20b.pdf"}, "[file](a b.pdf)"),
        ({"file": "http://h/x%5D%28y%29.pdf"}, "[file](x] (y).pdf)"),
        ({"file": "up\u202efdp.exe"}, "[file](up fdp.exe)"),
        ({"file": "half\ud800.pdf"}, "[file](half .pdf)"),
        ({"file": "%20"}, "[file](inline)"),
        ({"image": "data:image/png;base64,iVBORw0KGgo="}, "![image](inline)"),
        ({"image": "DATA:image/png;base64,AA/secret=="}, "![image](inline)"),
        ({"audio": {"data": "AA/BB", "format": "wav"}}, "![audio](inline)"),
        ({"audio": {"data": "https://h/song.mp3"}}, "![audio](song.mp3)"),
        ({"video": ["f/1.png"]}, "![video](1.png)"),
        ({"video": ["f/1.png", "f/2.png", "f/3.png"]}, "![video](1.png … 3.png)"),
    ],
)
def test_a_name_is_a_base_name_on_one_line_and_no_more(item: dict[str, Any], said: str) -> None:
    assert mention(ContentItem(**item), "en") == said


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a" * 116 + ".pdf", "a" * 116 + ".pdf"),
        ("a" * 100 + "b" * 17 + ".pdf", "a" * 99 + "…" + "b" * 16 + ".pdf"),
        ("a" * 5000 + "b" * 16 + ".pdf", "a" * 99 + "…" + "b" * 16 + ".pdf"),
    ],
)
def test_a_name_of_more_than_120_characters_keeps_its_beginning_and_its_end(name: str, shown: str) -> None:
    assert mention(ContentItem(file=name), "en") == f"[file]({shown})"


@pytest.mark.parametrize(
    ("kind", "english", "chinese"),
    [
        ("image", "![image](x)", "![图片](x)"),
        ("video", "![video](x)", "![视频](x)"),
        ("audio", "![audio](x)", "![音频](x)"),
        ("file", "[file](x)", "[文件](x)"),
    ],
)
def test_each_kind_has_its_label(kind: str, english: str, chinese: str) -> None:
    item = {kind: "/a/x"}
    assert _content([item]) == f"(Uploaded {english})"
    assert _content([item], lang="zh") == f"（上传了 {chinese}）"
    for known in (english, chinese):
        assert _content([{"text": f"see {known}"}, item]) == f"see {known}"


@pytest.mark.parametrize(
    ("data", "said"),
    [("http://h/a.mp3", "a.mp3"), ("file:///h/a.mp3", "a.mp3"), ("ftp://h/a.mp3", "inline"), ("AA/a.mp3", "inline")],
)
def test_a_sound_at_an_address_has_a_name(data: str, said: str) -> None:
    assert mention(ContentItem(audio={"data": data}), "en") == f"![audio]({said})"


def test_it_is_shown_with_its_setting() -> None:
    assert repr(Multimodal(unsupported="note")) == "<Multimodal unsupported='note'>"


def test_a_request_of_words_is_passed_on_as_the_same_object() -> None:
    said = (Message("system", "s"), Message("user", [{"text": "a"}, {"text": "b"}]), Message("assistant", ""))
    request = ChatRequest(model="m", messages=said, functions=(TOOL,))
    assert Multimodal().prepare(request) is request


def test_a_request_with_media_and_nothing_to_say_is_passed_on_as_the_same_object() -> None:
    request = ChatRequest(model="m", messages=(Message("user", [{"image": "a.png"}]),), facts=SEES)
    assert Multimodal().prepare(request) is request


def test_ids_names_origins_and_the_callers_own_data_stay() -> None:
    message = Message(
        "assistant",
        [{"file": "b.pdf"}],
        name="ann",
        reasoning_content="hm",
        function_call=FunctionCall("f", "{}"),
        extra={"function_id": "7", "mine": [1]},
        origin=Origin(backend="b", id="i", data={"signature": "s"}),
    )
    (now,) = Multimodal().prepare(ChatRequest(model="m", messages=(message,))).messages
    assert now == message.replace(content="[file](b.pdf)")


# --- in a model's chain ---


def _model(*, facts: ModelFacts | None = None, **settings: str) -> ScriptedModel:
    config = LLMConfig.parse({"model": "m", "processors": [{"name": "multimodal", **settings}]})
    return ScriptedModel([answer("fine")], config=config, facts=facts)


def test_what_the_model_does_not_take_is_refused_before_anything_is_sent() -> None:
    model = _model()
    with pytest.raises(UnsupportedInputError, match="does not support image input"):
        model.ask([Message("user", E43[:2])])
    assert model.requests == []


def test_as_a_note_it_is_sent_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 damaged")
    model = _model(unsupported="note")
    result = model.ask([Message("user", [*E43[:2], {"file": str(tmp_path / "b.pdf")}])])
    assert model.requests[0].messages[0].content == "(Uploaded ![image](y.png) [file](b.pdf)) look"
    (warning,) = result.warnings
    assert "b.pdf" in warning


# --- files ---


def _docx() -> bytes:
    document = docx.Document()
    document.add_heading("Sockets", 1)
    document.add_paragraph("There are forty.")
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _pdf_without_text() -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.rect(72, 72, 100, 100)
    canvas.showPage()
    canvas.save()
    return file.getvalue()


def _with_file(address: str) -> Message:
    return Message("user", [{"text": "How many?"}, {"file": address}])


@pytest.mark.parametrize("address", ["path", "file: URL", "data: URI"])
def test_a_file_is_sent_as_the_text_that_a_parser_reads(tmp_path: Path, address: str) -> None:
    page = tmp_path / "a.docx"
    page.write_bytes(_docx())
    uri = f"data:{WORD};base64,{b64encode(_docx()).decode()}"
    model = _model()
    model.ask(_with_file({"path": str(page), "file: URL": page.as_uri(), "data: URI": uri}[address]))
    name = "file.docx" if address == "data: URI" else "a.docx"
    sent = model.requests[0].messages[0].items
    assert [item.text for item in sent] == [
        "How many?",
        f'<file name="{name}">\n# Sockets\n\nThere are forty.\n</file>',
    ]


def test_the_parsers_are_those_of_its_host_and_are_kept_for_the_next_file(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(_docx())
    file = AttachedFile("a.docx", str(tmp_path / "a.docx"), _docx())
    with pytest.raises(DocParserError, match="no parser"):
        sync.run(Multimodal(host=PluginHost(paths=[]))._parse(file))
    processor = Multimodal(host=default_host())
    assert "There are forty." in sync.run(processor._parse(file))
    reader = processor._reader
    sync.run(processor._parse(file))
    assert processor._reader is reader, "it has read the document already"


def test_a_text_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("配线架有四十个插孔。".encode("gb18030") * 20)
    model = _model()
    model.ask(_with_file(str(tmp_path / "a.txt")))
    assert "配线架有四十个插孔。" in model.requests[0].messages[0].get_text_content()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.pdf", b"%PDF-1.7 damaged", "a.pdf is truncated"),
        ("a.xyz", bytes(range(256)), "a.xyz cannot be read: no parser"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_and_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    model = _model()
    with pytest.raises(UnsupportedInputError, match=said):
        model.ask(_with_file(str(tmp_path / name)))
    assert model.requests == []


def test_a_document_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(_pdf_without_text())
    with pytest.raises(UnsupportedInputError, match=r"scan\.pdf"):
        _model().ask(_with_file(str(tmp_path / "scan.pdf")))


def test_a_model_that_takes_pdfs_gets_them_and_the_text_of_others(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    (tmp_path / "a.docx").write_bytes(_docx())
    model = _model(facts=ModelFacts(files=True))
    items = [{"file": str(tmp_path / name)} for name in ("a.pdf", "a.docx")]
    model.ask(Message("user", items))
    first, second = model.requests[0].messages[0].items
    assert first == ContentItem(file=str(tmp_path / "a.pdf"))
    assert "There are forty." in (second.text or "")


@pytest.mark.parametrize(
    ("files", "unsupported", "use"),
    [
        ("read", "note", "read_if_possible"),
        ("read", "refuse", "read"),
        ("read_short", "note", "read_short"),
        ("read_if_possible", "refuse", "read_if_possible"),
    ],
)
def test_an_agents_way_to_use_files_stays(files: FileUse, unsupported: Unsupported, use: FileUse) -> None:
    asked: list[ChatRequest] = []

    async def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        yield ModelFinished("stop")

    request = ChatRequest(model="m", messages=(Message("user", "hello"),), files=files)
    sync.run(gathered(Multimodal(unsupported=unsupported).around(request, call_next)))
    assert [one.files for one in asked] == [use]


def test_where_only_names_are_wanted_no_file_is_opened() -> None:
    model = _model(facts=ModelFacts(files=True))
    asked = model.astream([_with_file("/gone/a.pdf")], files="name")

    async def read() -> None:
        async for _ in asked:
            pass

    sync.run(read())
    assert model.requests[0].messages[0].content == "(Uploaded [file](a.pdf)) How many?"


def test_a_setting_that_does_not_fit_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match="unsupported"):
        Multimodal(unsupported="drop")  # type: ignore[arg-type]


# --- properties ---

_names = st.text(min_size=1, max_size=12)
_items = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=8)),
    st.builds(lambda kind, value: {kind: value}, st.sampled_from(["image", "file", "audio", "video"]), _names),
)
_messages = st.lists(
    st.builds(
        lambda role, content: Message(role, content, name="t" if role == "function" else None),
        st.sampled_from(["system", "user", "assistant", "function"]),
        st.one_of(st.text(max_size=8), st.lists(_items, max_size=5)),
    ),
    max_size=4,
)
_requests = st.builds(
    lambda messages, functions, facts, lang: ChatRequest(
        model="m", messages=tuple(messages), functions=functions, facts=facts, lang=lang
    ),
    _messages,
    st.sampled_from([(), (TOOL,)]),
    st.builds(ModelFacts, images=st.booleans(), audio=st.booleans(), video=st.booleans()),
    st.sampled_from(["en", "zh"]),
)
_ways = st.sampled_from(["refuse", "note"])


@given(_requests, _ways)
def test_what_is_prepared_once_is_prepared(request: ChatRequest, unsupported: Unsupported) -> None:
    processor = Multimodal(unsupported=unsupported)
    once = processor.prepare(request)
    assert processor.prepare(once) is once


@given(_requests, _ways)
def test_nothing_is_lost(request: ChatRequest, unsupported: Unsupported) -> None:
    prepared = Multimodal(unsupported=unsupported).prepare(request)
    for before, now in zip(request.messages, prepared.messages, strict=True):
        text = now.get_text_content()
        kept = [item for item in now.items if item.text is None]
        for item in before.items:
            if item.text is not None:
                assert item.text in text
            else:
                assert item in kept or mention(item, "en") in text or mention(item, "zh") in text
        assert [item for item in before.items if item in kept and item.text is None] == kept
        assert [item for item in kept if item.type == "file"] == []


@given(_requests)
def test_with_notes_a_model_is_sent_only_what_it_takes(request: ChatRequest) -> None:
    facts = request.facts
    takes = {"text": True, "file": False, "image": facts.images, "audio": facts.audio, "video": facts.video}
    for message in Multimodal(unsupported="note").prepare(request).messages:
        assert all(takes[item.type] for item in message.items)
