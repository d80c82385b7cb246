"""What a notebook shows: Markdown that loads nothing and has no HTML but ours, calls folded, images as images."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import nbformat
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from nbclient import NotebookClient

from jackfield import FnCallAgent, Message, RunResult, ToolResult, tool
from jackfield.display import ProgressOutput, markdown_of, pictures_in, show
from jackfield.messages import ContentItem
from jackfield.testing import ScriptedModel, answer, calls

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
PICTURE = "data:image/png;base64," + base64.b64encode(PIXEL * 500).decode()
OURS = ("<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>")

_READER = MarkdownIt("commonmark", {"html": True})


def html_and_images_in(markdown: str) -> list[str]:
    """What a reader of Markdown takes for HTML that is not ours, or for an image."""
    found = []
    for block in _READER.parse(markdown):
        for token in (block, *(block.children or ())):
            if token.type in ("html_block", "html_inline", "image"):
                left = token.content
                for tag in OURS:
                    left = left.replace(tag, "")
                found += [left] if token.type == "image" or "<" in left else []
    return found


_NASTY = (
    *(
        "<img src=http://a.test/x>",
        "![a](http://a.test/x)",
        "![a][b]",
        "\n[b]: http://a.test/x\n",
        "<script>",
        "</details>",
    ),
    *("`", "``", "```", "````", "~~~", "~~~~", "```py\n", "\\", "\n", "\n\n", " ", "   ", "    ", "> ", "- ", "1. "),
    *(
        "<!--",
        "-->",
        "<http://a.test>",
        "<?",
        "<![CDATA[",
        "\t",
        "\r",
        "\x0b",
        "\u2028",
        "a",
        "é",
        "|",
        "*",
        "&lt;img>",
    ),
)
_TEXTS = st.lists(st.sampled_from(_NASTY), max_size=14).map("".join)


@example(text="```py\n<img src=http://a.test/x>", arguments="", result="", reasoning="", name="")
@given(text=_TEXTS, arguments=_TEXTS, result=_TEXTS, reasoning=_TEXTS, name=_TEXTS)
def test_nothing_that_a_model_or_a_tool_says_becomes_html_or_an_image(
    text: str, arguments: str, result: str, reasoning: str, name: str
) -> None:
    call = {"name": name or "f", "arguments": arguments}
    history = [
        Message("user", text),
        Message("assistant", text, reasoning_content=reasoning),
        Message("assistant", "", function_call=call, extra={"function_id": "1"}),
        Message("function", result, name=name or "f", extra={"function_id": "1"}),
        Message("function", result, name=name or "f"),
        Message("assistant", text),
    ]
    assert html_and_images_in(markdown_of(history)) == []


def test_the_check_would_find_them() -> None:
    assert len(html_and_images_in("<img src=x> ![a](b)\n\n<script>\n")) == 3


def test_code_is_shown_as_it_was_written() -> None:
    text = "Use it:\n\n```python\nx: list[int] = [1]  # <b> ![no]\n```\n\nand `List<String>` & more."
    shown = _READER.render(markdown_of([Message("assistant", text)]))
    assert "x: list[int] = [1]  # &lt;b&gt; ![no]" in shown
    assert "<code>List&lt;\u2060String&gt;</code> &amp; more." in shown


def picturing() -> RunResult[str]:
    @tool
    def draw(what: str) -> ToolResult:
        """Draw."""
        return ToolResult([ContentItem(text=f"drawn: {what}"), ContentItem(image=PICTURE)], {"sources": ["map.pdf"]})

    model = ScriptedModel([calls(("draw", {"what": "a <b>"})), answer("Here it is.")])
    return FnCallAgent([draw], model).ask("Draw.")


def test_a_result_is_its_answer_with_calls_folded_and_its_sources() -> None:
    shown = picturing()._repr_markdown_()
    assert shown.startswith("<details><summary>Called <code>draw</code></summary>")
    assert "drawn: a <b>" in shown
    assert shown.endswith("Here it is.\n\nSources: map.pdf")
    assert PICTURE[:60] not in shown


def test_pictures_are_shown_and_nothing_prints_kilobytes_of_base64() -> None:
    result = picturing()
    assert list(pictures_in(result.messages)) == [("image/png", PIXEL * 500)]
    texts = [result._repr_markdown_(), repr(result), repr(result.messages), str(result.messages[1])]
    audio = Message("user", [{"audio": {"data": PICTURE, "format": "wav"}}, {"video": [PICTURE, PICTURE]}])
    texts += [repr(audio), str(audio), markdown_of([audio])]
    assert max(map(len, texts)) < 1000


@pytest.mark.parametrize(
    "image",
    [
        "data:image/png;base64,%%%",
        "http://a.test/x.png",
        "/etc/x.png",
        "data:,",
        "data:image/svg+xml;base64,PHN2Zy8+",  # it can run scripts and load from elsewhere
    ],
)
def test_what_is_not_a_picture_of_its_own_is_neither_fetched_nor_opened(image: str) -> None:
    assert list(pictures_in([Message("assistant", [ContentItem(image=image)])])) == []


def test_a_run_that_ended_early_says_why() -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return ""

    paused = FnCallAgent([pay], ScriptedModel([calls(("pay", {}))])).ask("q")
    assert paused._repr_markdown_().endswith("Waiting for approval: <code>pay</code>")
    limited = FnCallAgent([pay], ScriptedModel([answer("a")]), limits={"turns": 1}).ask("q")
    assert limited._repr_markdown_() == "a"
    none = FnCallAgent(llm=ScriptedModel([answer("")])).ask("q")
    assert none._repr_markdown_() == "*The run ended early: empty reply.*"


CELLS = [
    "from jackfield.testing import ScriptedModel, answer\nfrom jackfield import BasicAgent, Message\n"
    "agent = BasicAgent(llm=ScriptedModel([answer('**Bonn**')] * 9))",
    "agent.ask('Which town?')",
    "agent.run_nonstream('Which town?')",
    f"Message('user', [{{'text': 'Look'}}, {{'image': {PICTURE!r}}}])",
    "await agent.aask('Which town?')",
    "stream = agent.stream('Which town?')\nasync for event in stream:\n    pass\nstream.result",
]


def test_a_real_notebook_shows_results_and_messages(tmp_path: Any) -> None:
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None} for cell in CELLS
    ]
    reads: Any = nbformat.reads
    notebook = reads(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}), 4)
    NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [[output.get("data", {}) for output in cell["outputs"]] for cell in notebook.cells]
    for number in (1, 2, 4, 5):
        assert [data.get("text/markdown") for data in shown[number]] == ["**Bonn**"], CELLS[number]
    assert [sorted(data) for data in shown[3]] == [["text/markdown", "text/plain"], ["image/png", "text/plain"]]
    assert shown[3][0]["text/markdown"].startswith("**user:**\n\nLook")
    assert all(len(data["text/plain"]) < 200 for outputs in shown for data in outputs)


PREPARING = """
from jackfield import FnCallAgent
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import toolset
@toolset
def later(context):
    context.report("connecting to a server")
    return []
agent = FnCallAgent([later], ScriptedModel([answer("Bonn")] * 2))
"""


class _Recorded(NotebookClient):
    """Keeps the texts that a cell shows, also those that others replace."""

    texts: list[str]

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.texts.append(msg["content"]["data"]["text/plain"])
        return super().process_message(msg, cell, cell_index)


def test_a_notebook_shows_the_progress_until_the_first_turn(tmp_path: Any) -> None:
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for source in (PREPARING, "_ = agent.ask('Which town?')", "_ = await agent.aask('Which town?')")
    ]
    reads: Any = nbformat.reads
    notebook = reads(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}), 4)
    client = _Recorded(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.texts = []
    client.execute()
    assert client.texts == ["connecting to a server", ""] * 2
    for cell in notebook.cells[1:]:
        assert [output["data"]["text/plain"] for output in cell["outputs"]] == [""]


# --- what is shown of each message, without a notebook ---


def test_roles_names_and_reasoning_are_shown() -> None:
    history = [
        Message("system", "Be brief."),
        Message("user", "one\ntwo"),
        Message("assistant", "So.", reasoning_content="because\n<b>"),
        Message("assistant", ""),
    ]
    assert markdown_of(history) == (
        "**system:** Be brief.\n\n**user:**\n\none\ntwo\n\n"
        "<details><summary>Reasoning</summary>\n\nbecause\n<\u2060b>\n\n</details>\n\nSo."
    )


def test_a_call_is_shown_with_its_result_and_a_result_without_a_call_by_itself() -> None:
    call = Message("assistant", "", function_call={"name": "add", "arguments": '{"a":1}'}, extra={"function_id": "1"})
    alone = Message("function", "3", name="add", extra={"function_id": "9"})
    assert markdown_of([call]) == (
        "<details><summary>Called <code>add</code></summary>\n\n"
        '```json\n{\n  "a": 1\n}\n```\n\n*no result*\n\n</details>'
    )
    assert markdown_of([alone]) == (
        "<details><summary>Result of <code>add</code></summary>\n\n```text\n3\n```\n\n</details>"
    )
    both = markdown_of([call, Message("function", "3", name="add", extra={"function_id": "1"})])
    assert both.count("<details>") == 1
    assert "```text\n3\n```" in both
    broken = Message("assistant", "", function_call={"name": "add", "arguments": "{"})
    told = markdown_of([broken, Message("function", "3", name="x")])
    assert "```json\n{\n```\n\n*no result*" in told
    silent = markdown_of([call, Message("function", "", name="add", extra={"function_id": "1"})])
    assert "```text\n\n```" in silent, "an empty result is a result"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [('{"city":"München"}', '{\n  "city": "München"\n}'), ("[" * 50_000 + "]" * 50_000, "[" * 4000 + "\n…")],
    ids=["letters", "too deep for JSON"],
)
def test_the_arguments_of_a_call_are_shown_for_reading(arguments: str, shown: str) -> None:
    call = Message("assistant", "", function_call={"name": "f", "arguments": arguments})
    assert f"```json\n{shown}" in markdown_of([call])


@pytest.mark.parametrize(
    ("length", "cut"),
    [(4000, ""), (4001, "… (4001 characters in total)"), (10_000, "… (10 thousand characters in total)")],
)
def test_a_result_is_shown_up_to_4000_characters(length: int, cut: str) -> None:
    shown = markdown_of([Message("function", "z" * length, name="f")])
    assert shown.count("z") == min(length, 4000)
    assert cut in shown
    assert ("in total" in shown) is bool(cut)


def test_code_of_an_answer_is_shown_whole_and_fences_are_longer_than_those_in_them() -> None:
    code = "y" * 5000
    assert markdown_of([Message("assistant", f"```\n{code}\n```")]).count("y") == 5000
    assert markdown_of([Message("function", "````\nx", name="f")]).count("`````") == 2


@pytest.mark.parametrize(
    ("item", "note"),
    [
        ({"image": "data:image/png;base64,AAAA"}, "[image, 26 characters]"),
        ({"image": f"data:image/png;base64,{'A' * 600_000}"}, "[image, 600 thousand characters]"),
        ({"file": f"https://acme.example/a/{'b' * 90}"}, f"[file: {'b' * 80}]"),
        ({"audio": {"data": "AAAA", "format": "wav"}}, "[audio]"),
    ],
)
def test_what_is_not_text_is_named(item: Any, note: str) -> None:
    assert markdown_of([Message("assistant", [{"text": "See"}, item])]) == f"See\n\n{note}"


def test_lists_below_an_answer_are_in_one_order_and_safe() -> None:
    history = [Message("assistant", "So.")]
    told = markdown_of(
        history, sources=["a.pdf", "b\n<b>"], warnings=["no & way"], waiting=["pay", "<x"], stop_reason="token_limit"
    )
    assert told == (
        "So.\n\nSources: a.pdf; b &lt;b>\n\nWarnings:\n\n- no &amp; way\n\n"
        "Waiting for approval: <code>pay</code>, <code>&lt;x</code>"
    )
    cited = markdown_of(history, sources=["a.pdf"], citations=["[1] a.pdf", "[2] !["], stop_reason="turn_limit")
    assert cited == "So.\n\nCitations:\n\n- [1] a.pdf\n- [2] !\u2060[\n\n*The run ended early: turn limit.*"


# --- publishing ---


class _Notebook:
    """Stands in for IPython, and keeps what is published."""

    def __init__(self, *, kernel: bool = True) -> None:
        self.published: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.display_pub = self
        if kernel:
            self.kernel = object()

    def get_ipython(self) -> _Notebook:
        return self

    def publish(self, data: dict[str, Any], **options: Any) -> None:
        self.published.append(data)
        self.calls.append(options)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> _Notebook:
    made = _Notebook()
    monkeypatch.setitem(sys.modules, "IPython", made)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("count", [1, 20, 21])
def test_twenty_pictures_are_shown_at_most(notebook: _Notebook, count: int) -> None:
    messages = [Message("assistant", [ContentItem(text="See"), *[ContentItem(image=PICTURE)] * count])]
    show("**a**", "a", messages)
    first, *pictures = notebook.published
    assert first == {"text/markdown": "**a**", "text/plain": "a"}
    shown = [data for data in pictures if "image/png" in data]
    assert len(shown) == min(count, 20)
    assert base64.b64decode(shown[0]["image/png"]) == PIXEL * 500
    assert shown[0]["text/plain"] == "<picture>"
    notes = [data["text/plain"] for data in pictures if "image/png" not in data]
    assert notes == (["*Only the first 20 images are shown; the rest are in the messages.*"] if count > 20 else [])


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_pictures_of_known_kinds_are_shown(kind: str) -> None:
    image = f"data:image/{kind};base64,{base64.b64encode(PIXEL).decode()}"
    broken = ContentItem(image="data:image/png;base64,AAA")
    messages = [Message("assistant", [broken, ContentItem(image=image)])]
    assert list(pictures_in(messages)) == [(f"image/{kind}", PIXEL)]


def test_one_line_of_progress_is_replaced_and_emptied(notebook: _Notebook) -> None:
    output = ProgressOutput()
    output.clear()
    assert notebook.published == []
    for text in ("one", "two"):
        output.show(text)
    output.clear()
    output.show("again")
    assert [data["text/plain"] for data in notebook.published] == ["one", "two", "", "again"]
    assert [options["update"] for options in notebook.calls] == [False, True, True, False]
    ids = [options["transient"]["display_id"] for options in notebook.calls]
    assert (ids[0], len(set(ids))) == (ids[1], 2)
    assert ids[0] != ids[3]


@pytest.mark.parametrize("module", [None, _Notebook(kernel=False)], ids=["no IPython", "IPython on a terminal"])
def test_progress_is_shown_in_notebooks_alone(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    if module is not None:
        monkeypatch.setitem(sys.modules, "IPython", module)
    output = ProgressOutput()
    output.show("one")
    output.clear()
    assert module is None or module.published == []
