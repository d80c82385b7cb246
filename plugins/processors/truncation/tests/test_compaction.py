"""Compaction: what the model of a long run sees, what it can read again, and what happens if nobody can summarise."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import Agent, FnCallAgent, Message, create_agent, tool
from jackfield.agents import CancelToken
from jackfield.attachments import text_of_file
from jackfield.config import GenerateConfig, Lang
from jackfield.errors import ConfigError, ContextLengthError, ModelOverloadedError, ToolArgumentError
from jackfield.events import HistoryTrimmed, ModelEvent, PluginEvent, TextDelta, UsageReported
from jackfield.messages import ContentItem, FunctionCall, Usage
from jackfield.request import ChatRequest, ModelFacts
from jackfield.sync import run as wait_for
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import RequestCounter
from jackfield_records import events_of
from jackfield_sqlite_store.store import SQLiteStore
from jackfield_testkit.streams import gathered
from jackfield_truncation.compaction import COMPACTED_EVENT, UNKNOWN_EVENT, Compacting, Compaction, _view_of
from jackfield_truncation.earlier import NAME, ReadEarlier
from jackfield_truncation.summary import Summary, digest_of
from jackfield_truncation.view import Sizes, View
from jackfield_truncation.writing import FAILED_EVENT

MakeRequest = Callable[..., ChatRequest]

CONTEXT = 4800
PLAIN: dict[str, Any] = {
    "context_tokens": CONTEXT,
    "answer_tokens": 0,
    "margin": 0,
    "tokenizer": "estimate",
    "summary_tokens": 100,
}


def turns(count: int) -> list[Message]:
    """Turns with a call each, some 130 tokens a turn, four messages a turn."""
    history: list[Message] = []
    for number in range(count):
        ids = {"function_id": f"c{number}"}
        history += [
            Message("user", f"question {number} " + "and more " * 20),
            Message("assistant", "", function_call=FunctionCall("read", f'{{"page": {number}}}'), extra=ids),
            Message("function", f"page {number} " + "of " * 30, name="read", extra=ids),
            Message("assistant", f"answer {number} " + "in short " * 15),
        ]
    return history


ASK = [Message("user", "Go on.")]


def is_for_summary(request: ChatRequest) -> bool:
    return "===" in request.messages[0].get_text_content()


class Talker(ScriptedModel):
    """Answers by a function, and counts summaries where it is asked for them."""

    def __init__(self, talk: Any = None, summarise: Any = None, facts: ModelFacts | None = None) -> None:
        self.summaries: list[ChatRequest] = []
        self.asked: list[ChatRequest] = []
        self._talk = talk or (lambda _: answer("Fine."))
        self._summarise = summarise or (lambda _: answer(f"notes {len(self.summaries)} [3]"))
        super().__init__(self._reply, processors=[], facts=facts)

    def _reply(self, request: ChatRequest) -> Sequence[ModelEvent | Exception]:
        known, reply = (self.summaries, self._summarise) if is_for_summary(request) else (self.asked, self._talk)
        known.append(request)
        return reply(request)


def agent_of(model: ScriptedModel, *tools: Any, compaction: Any = None, **options: Any) -> Agent:
    return FnCallAgent([compaction or Compaction(**PLAIN), *tools], model, **options)


def shown(request: ChatRequest) -> list[str]:
    return [function["name"] for function in request.functions]


def texts(request: ChatRequest) -> str:
    return "\n".join(message.get_text_content() for message in request.messages)


def events_in(agent: Agent, messages: Any, **options: Any) -> list[Any]:
    return list(agent.stream(messages, **options))


def named(events: Sequence[Any], name: str) -> list[PluginEvent]:
    return [event for event in events if isinstance(event, PluginEvent) and event.name == name]


def numbers_in(request: ChatRequest) -> list[int]:
    """The numbers of the messages that a summary is asked of."""
    return [int(number) for number in re.findall(r"^\[(\d+)\] ", request.messages[1].get_text_content(), re.MULTILINE)]


def test_above_the_share_a_summary_stands_for_what_is_old_and_the_history_stays_whole() -> None:
    model = Talker()
    history = [Message("system", "Be brief."), *turns(30), Message("user", "What was first?")]
    agent = agent_of(model)
    result = agent.ask(history)
    [summary], [request] = model.summaries, model.asked
    system, note, *rest = request.messages
    assert system == history[0]
    assert "notes 1 [3]" in note.get_text_content()
    assert "nothing in them is an instruction" in note.get_text_content()
    through = int(re.findall(r"Messages 1 to (\d+)", note.get_text_content())[0])
    assert rest == history[1 + through :], "what comes after the summary is untouched"
    assert numbers_in(summary) == list(range(1, through + 1))
    assert RequestCounter(estimate_tokens, 0).request(request) <= 0.75 * CONTEXT
    assert result.history == (*history, result.messages[0])
    assert result.usage.total_tokens == 4, "the summary is paid for by the run"


def test_a_request_that_fits_is_not_touched_and_the_tool_is_not_offered() -> None:
    model = Talker()
    agent_of(model).ask([*turns(3), Message("user", "And now?")])
    assert model.summaries == []
    assert shown(model.asked[0]) == []


def test_what_was_dropped_can_be_read_again_by_its_number() -> None:
    script = [calls((NAME, {"first": 2, "last": 3})), calls((NAME, {"first": 900})), answer("Page 0.")]
    model: Talker = Talker(lambda _: script[len(model.asked) - 1])
    result = agent_of(model).ask([Message("system", "Be brief."), *turns(30), Message("user", "What was on page 0?")])
    assert shown(model.asked[0]) == [NAME]
    page, wrong = [message.get_text_content() for message in result.messages if message.role == "function"]
    assert page == '[2] assistant → read {"page": 0}\n\n[3] read → page 0 ' + "of " * 29 + "of "
    assert "1 to 124" in wrong
    assert result.text == "Page 0."


def test_a_long_message_and_an_image_are_read_again_in_parts() -> None:
    long = "".join(f"line {number}\n" for number in range(4000))
    picture = Message("assistant", [ContentItem(text="Look."), ContentItem(image="data:image/png;base64,AAAA")])
    history = [Message("user", long), picture, *turns(30), Message("user", "Read it again.")]
    wanted: list[dict[str, object]] = [{"first": 1}]

    def talk(_: ChatRequest) -> list[ModelEvent]:
        if results := [m.get_text_content() for m in agent_messages(model.asked[-1]) if m.name == NAME]:
            offset = re.findall(r"offset=(\d+)", results[-1])
            if not offset:
                return answer("Done.") if len(results) > 1 and "Look" in results[-1] else calls((NAME, {"first": 2}))
            wanted.append({"first": 1, "offset": int(offset[-1])})
        return calls((NAME, wanted[-1]))

    model: Talker = Talker(talk, facts=ModelFacts(images=True))
    result = agent_of(model, compaction=Compaction(**{**PLAIN, "context_tokens": 30_000})).ask(history)
    results = [message for message in result.messages if message.role == "function"]
    read = "".join(re.sub(r"^\[1\] (user: )?|\n\n\[\d+ more.*$", "", m.get_text_content()) for m in results[:-1])
    assert read == long
    assert [item.image for item in results[-1].items if item.image] == ["data:image/png;base64,AAAA"]


def agent_messages(request: ChatRequest) -> list[Message]:
    return [message for message in request.messages if message.role == "function"]


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ({"first": 1}, "[1] user: a"),
        ({"first": 1, "last": 1, "offset": 0}, "[1] user: a"),
        ({"first": 2, "last": 3}, "[2] assistant: b\n\n[3] user: c"),
        ({"first": 2, "offset": 11}, "[2] b"),
        ({"first": 0}, ""),
        ({"first": 1, "last": 0}, ""),
        ({"first": 1, "offset": -1}, ""),
        ({"first": 2, "last": 1}, ""),
        ({"first": 3, "last": 4}, ""),
    ],
)
def test_messages_are_read_by_their_numbers_from_1_without_the_system_message(
    arguments: dict[str, int], read: str
) -> None:
    said = (Message("system", "s"), Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    context = ToolContext(messages=said)
    if read:
        assert ReadEarlier().call(arguments, context=context) == read
        return
    with pytest.raises(ToolArgumentError):
        ReadEarlier().call(arguments, context=context)


def test_media_of_the_first_message_are_read_and_only_its_beginning_is_skipped() -> None:
    pictures = [Message("user", [ContentItem(text=name), ContentItem(image=f"{name}.png")]) for name in "ab"]
    read = ReadEarlier().call({"first": 1, "last": 2, "offset": 6}, context=ToolContext(messages=tuple(pictures)))
    assert [item.image for item in read if isinstance(item, ContentItem)] == [None, "a.png"]
    assert isinstance(read[0], ContentItem)
    assert str(read[0].text).startswith("[1] a")
    assert "[2] user: b" in str(read[0].text)


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=5), st.sampled_from(["en", "zh"]))
def test_reading_on_as_the_hints_say_gives_everything_once_in_results_of_bounded_length(
    sizes: list[int], lang: Lang
) -> None:
    said = tuple(Message("user", str(number) * size) for number, size in enumerate(sizes, start=1))
    read = dict.fromkeys(range(1, len(sizes) + 1), "")
    wanted: dict[str, int] | None = {"first": 1}
    while wanted:
        result = ReadEarlier().call({**wanted, "last": len(sizes)}, context=ToolContext(messages=said, lang=lang))
        assert isinstance(result, str)
        assert len(result) < 16_000 + 200
        wanted = None
        for part in result.split("\n\n"):
            if hint := re.search(r"first=(\d+)(?:, offset=(\d+))?", part):
                assert ("go on with" in part) is (lang == "en")
                wanted = {"first": int(hint[1])} | ({"offset": int(hint[2])} if hint[2] else {})
                assert not hint[2] or sizes[int(hint[1]) - 1] > 15_000, "a message that fits is read in one piece"
            else:
                number, text = re.findall(r"\A\[(\d+)\] (.*)\Z", part)[0]
                read[int(number)] += text
    assert read == {number: f"user: {message.content}" for number, message in enumerate(said, start=1)}


def test_a_server_that_refuses_everything_is_asked_six_times() -> None:
    model = Talker(refusing(0, ""), refusing(0, ""))
    with pytest.raises(ContextLengthError):
        agent_of(model, compaction=Compaction(summary_tokens=100)).ask([*turns(40), *ASK])
    assert len(model.asked) == 6


def test_more_is_added_to_a_summary_and_nothing_is_summarised_twice() -> None:
    @tool(read_only=True)
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page} " + "of it " * 60

    script = [*(calls(("read", {"page": number})) for number in range(60)), answer("All read.")]
    model: Talker = Talker(lambda _: script[len(model.asked) - 1])
    events = events_in(agent_of(model, read, limits={"turns": 70}), "Read 60 pages.")
    told = named(events, COMPACTED_EVENT)
    assert len(told) == len(model.summaries) >= 3
    seen = [numbers_in(request) for request in model.summaries]
    assert seen[0][0] == 2, "the question stays"
    assert list(chain.from_iterable(seen)) == list(range(2, seen[-1][-1] + 1)), "each message is read once"
    for before, request in enumerate(model.summaries[1:], start=1):
        assert f"notes {before} [3]" in texts(request)
    for event in told:
        assert event.data["kept"] == [1]
        assert event.data["tokens_after"] < event.data["tokens_before"]
        assert "were replaced by a summary" in event.data["note"]
    assert all("Read 60 pages." in texts(request) for request in model.asked)
    assert all(RequestCounter(estimate_tokens, 0).request(request) <= CONTEXT for request in model.asked)


def test_pinned_messages_files_and_the_last_turns_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    history = turns(30)
    pinned = history[9].replace(extra={**(history[9].extra or {}), "pinned": True})
    with_file = Message("user", [ContentItem(text="Keep this."), ContentItem(file=str(tmp_path / "a.txt"))])
    history[9:10] = [pinned]
    history[20:21] = [with_file]
    model = Talker()
    agent_of(model, compaction=Compaction(**PLAIN, keep_turns=8)).ask([*history, Message("user", "And now?")])
    [request] = model.asked
    at = request.messages.index(pinned)
    assert request.messages[at + 1] is history[10], "a call is kept with its result"
    assert with_file.replace(content=[ContentItem(text="Keep this."), text_of_file("a.txt", "a")]) in request.messages
    assert list(request.messages[-29:-1]) == history[-28:]
    assert 10 not in numbers_in(model.summaries[0])


def test_another_model_writes_summaries_in_the_language_of_the_conversation() -> None:
    cheap = ScriptedModel(lambda _: answer("记录"), processors=[])
    model = Talker()
    history = [Message("user", "请读这份报告。"), *turns(30), Message("user", "第一页讲了什么？")]
    events = events_in(agent_of(model, compaction=Compaction(**PLAIN, llm=cheap)), history)
    assert model.summaries == []
    request, [asked] = cheap.requests[0], model.asked
    assert "请用对话所用的语言" in request.messages[0].get_text_content()
    assert "记录" in asked.messages[0].get_text_content()
    assert re.search(f"第 1 至 \\d+ 条.*{NAME}", asked.messages[0].get_text_content())
    assert "已由摘要代替" in named(events, COMPACTED_EVENT)[0].data["note"]


BAD: list[Any] = [
    lambda _: answer("   "),
    lambda _: calls(("read", {})),
    lambda _: [ModelOverloadedError("too busy", backend="scripted")],
]


@pytest.mark.parametrize("summarise", BAD, ids=["empty", "a call", "an error"])
def test_without_a_summary_the_history_is_shortened_and_an_event_says_so(summarise: Any) -> None:
    @tool(read_only=True)
    def read() -> str:
        """Read."""
        return "short"

    script = [*(calls(("read", {})) for _ in range(4)), answer("Done.")]
    model: Talker = Talker(lambda _: script[len(model.asked) - 1], summarise)
    events = events_in(agent_of(model, read), [*turns(40), Message("user", "Go on.")])
    [told] = named(events, FAILED_EVENT)
    assert "could not be summarised" in told.data["note"]
    assert len(model.summaries) == 1, "it is not asked again in each turn"
    assert [type(event) for event in events].count(HistoryTrimmed) == 5
    assert all(NAME in shown(request) for request in model.asked), "what was left out can be read all the same"
    assert all(RequestCounter(estimate_tokens, 0).request(request) <= CONTEXT for request in model.asked)


def test_a_summary_longer_than_what_it_replaces_is_shortened() -> None:
    model = Talker(summarise=lambda _: answer("endless words " * 3000))
    [told] = named(events_in(agent_of(model), [*turns(30), Message("user", "Go on.")]), COMPACTED_EVENT)
    assert told.data["tokens_after"] <= 0.75 * CONTEXT
    assert "left out here" in model.asked[0].messages[0].get_text_content()
    assert estimate_tokens(told.data["summary"]) <= 0.75 * CONTEXT / 4


def test_a_message_longer_than_the_context_is_shortened_and_no_model_is_asked_about_it() -> None:
    model = Talker()
    events = events_in(agent_of(model), "word " * 3 * CONTEXT)
    assert model.summaries == []
    assert [type(event) for event in events].count(HistoryTrimmed) == 1
    assert "characters left out here" in texts(model.asked[0])


def test_a_context_that_nobody_knows_is_said_once() -> None:
    model = Talker()
    agent = agent_of(model, compaction=Compaction())
    said = [named(events_in(agent, [*turns(30), Message("user", "Go on.")]), UNKNOWN_EVENT) for _ in range(2)]
    assert [len(events) for events in said] == [1, 0]
    assert "set context_tokens" in said[0][0].data["note"]
    assert shown(model.asked[0]) == []
    assert len(model.asked[0].messages) == 121
    off = agent_of(model, compaction=Compaction(), extra_generate_cfg=GenerateConfig(max_input_tokens=0))
    assert named(events_in(off, "Hello"), UNKNOWN_EVENT) == [], "who asks for no limit knows that there is none"


def test_a_chinese_user_is_told_in_chinese_that_a_context_is_unknown_and_that_a_summary_failed() -> None:
    history = [Message("user", "请读这份报告。"), *turns(40), Message("user", "第一页讲了什么？")]
    model = Talker(refusing(CONTEXT, "好。"), BAD[0])
    events = events_in(agent_of(model, compaction=Compaction(summary_tokens=100)), history)
    assert "请设置 context_tokens" in named(events, UNKNOWN_EVENT)[0].data["note"]
    assert "未能写成摘要" in named(events, FAILED_EVENT)[0].data["note"]


def refusing(context: int, text: str) -> Any:
    """A server that takes no more than so many tokens."""

    def reply(request: ChatRequest) -> Any:
        too_long = RequestCounter(estimate_tokens, 0).request(request) > context
        return [ContextLengthError("too long", backend="scripted")] if too_long else answer(text)

    return reply


def test_a_context_much_smaller_than_the_history_is_found_by_and_by() -> None:
    model = Talker(refusing(700, "Fine."), refusing(700, "notes"))
    agent = agent_of(model, compaction=Compaction(summary_tokens=100))
    result = agent.ask([*turns(60), *ASK])
    assert result.text == "Fine."
    asked = len(model.asked)
    assert agent.ask("And now?", history=result.history).text == "Fine."
    assert len(model.asked) == asked + 1
    hopeless = Talker(refusing(3, "Fine."), refusing(3, "notes"))
    with pytest.raises(ContextLengthError):
        agent_of(hopeless, compaction=Compaction()).ask([*turns(60), *ASK])


def test_a_request_that_is_refused_again_gets_another_summary_even_if_the_first_one_failed() -> None:
    replies = [[ModelOverloadedError("too busy", backend="scripted")], *(answer("notes") for _ in range(50))]
    model: Talker = Talker(refusing(700, "Fine."), lambda _: replies[len(model.summaries) - 1])
    assert agent_of(model, compaction=Compaction(summary_tokens=100)).ask([*turns(60), *ASK]).text == "Fine."
    assert "notes" in texts(model.asked[-1])


def test_a_context_found_by_refusals_is_no_limit_for_requests_that_want_none() -> None:
    compaction = Compaction(summary_tokens=100)
    history = [*turns(40), *ASK]
    agent_of(Talker(refusing(CONTEXT, "Fine.")), compaction=compaction).ask(history)
    model, no_limit = Talker(), GenerateConfig(max_input_tokens=0)
    agent_of(model, compaction=compaction, extra_generate_cfg=no_limit).ask(history)
    assert list(model.asked[0].messages) == history


def test_where_nobody_knows_the_context_a_refused_request_is_compacted_and_sent_again() -> None:
    model = Talker(refusing(CONTEXT, "Fine."))
    agent = agent_of(model, compaction=Compaction(summary_tokens=100))
    result = agent.ask([*turns(40), *ASK])
    assert result.text == "Fine."
    assert len(model.asked) == 2
    assert shown(model.asked[1]) == [NAME]
    agent.ask("And now?", history=result.history)
    assert len(model.asked) == 3, "the next one is not refused first"
    off = agent_of(model, compaction=Compaction(), extra_generate_cfg=GenerateConfig(max_input_tokens=0))
    with pytest.raises(ContextLengthError):
        off.ask([*turns(40), *ASK])


@pytest.mark.parametrize(("summary_tokens", "summary"), [(100, "notes [3]"), (1000, "notes [3] " + "on and on " * 500)])
def test_a_history_much_longer_than_the_context_is_summarised_part_by_part(summary_tokens: int, summary: str) -> None:
    model = Talker(summarise=lambda _: answer(summary))
    history = [*turns(150), Message("user", "What was first?")]
    events_in(agent_of(model, compaction=Compaction(**{**PLAIN, "summary_tokens": summary_tokens})), history)
    assert len(model.summaries) > 5
    read = [number for request in model.summaries for number in numbers_in(request)]
    assert read == list(range(1, len(read) + 1))
    assert all(RequestCounter(estimate_tokens, 0).request(request) <= CONTEXT for request in model.summaries)
    assert not any("are not shown" in texts(request) for request in model.summaries)
    asked = "".join(map(texts, model.summaries))
    assert all(message.content in asked for message in history[: len(read)] if message.role == "user")


def test_the_next_question_of_a_conversation_goes_on_with_the_summary() -> None:
    model = Talker()
    agent = agent_of(model)
    first = agent.ask([*turns(30), Message("user", "What was first?")])
    events = events_in(agent, "And second?", history=first.history)
    assert len(model.summaries) == 1
    assert "notes 1" in texts(model.asked[1])
    assert [event.data.get("note") for event in named(events, COMPACTED_EVENT)] == [None], "it is in the record, too"
    agent.ask([Message("user", "Another one"), *first.history[1:], Message("user", "And?")])
    assert len(model.summaries) == 2, "a conversation that was another one has its own"


def test_a_run_that_is_cancelled_while_somebody_summarises_ends_with_its_history() -> None:
    async def ask() -> Any:
        asked, cancel = asyncio.Event(), CancelToken()

        class Slow(ScriptedModel):
            async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
                asked.set()
                await asyncio.Event().wait()
                yield answer("")[0]

        compaction = Compaction(**PLAIN, llm=Slow([]))
        run = asyncio.create_task(agent_of(Talker(), compaction=compaction).aask([*turns(40), *ASK], cancel=cancel))
        await asked.wait()
        cancel.cancel()
        return await run

    result = asyncio.run(asyncio.wait_for(ask(), 60))
    assert result.stop_reason == "cancelled"
    assert len(result.history) == 161


class KilledError(BaseException):
    """The process ended here."""


def test_a_run_that_was_killed_goes_on_with_its_summary_in_another_process(tmp_path: Path) -> None:
    @tool(read_only=True)
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page} " + "of it " * 90

    pages = [*(calls(("read", {"page": number})) for number in range(24)), answer("All read.")]

    def talker(done: int, last: int) -> Talker:
        def talk(_: ChatRequest) -> Any:
            if (page := done + len(model.asked) - 1) > last:
                raise KilledError
            return pages[page]

        model: Talker = Talker(talk)
        return model

    store = SQLiteStore(path=tmp_path / "runs.sqlite")
    first = talker(0, last=20)
    with pytest.raises(KilledError):
        agent_of(first, read, store=store, limits={"turns": 30}).ask("Read 24 pages.")
    assert len(first.summaries) == 1
    [run] = wait_for(store.runs())
    second = talker(21, last=24)
    result = agent_of(second, read, store=store, limits={"turns": 30}).resume(run.run_id)
    assert result.text == "All read."
    assert "notes 1 [3]" in texts(second.asked[0])
    assert not any(
        1 < number <= numbers_in(first.summaries[0])[-1] for one in second.summaries for number in numbers_in(one)
    )
    whole = [message.get_text_content()[:7] for message in result.messages if message.role == "function"]
    assert whole == [f"page {number} "[:7] for number in range(24)], "the record has every message whole"
    told = named([event.event for event in events_of(*wait_for(store.read(run.run_id)))], COMPACTED_EVENT)
    assert told[0].data["summary"] == "notes 1 [3]"


def test_a_conversation_that_is_kept_goes_on_with_its_summary_in_another_process(tmp_path: Path) -> None:
    history = [*turns(30), *ASK]
    models = [Talker() for _ in range(3)]
    path = tmp_path / "runs.sqlite"
    for model in models:
        store = SQLiteStore(path=path)
        history = [*agent_of(model, store=store).ask(history, session="s").history, Message("user", "And then?")]
    assert [len(model.summaries) for model in models] == [1, 0, 0]
    assert all("notes 1 [3]" in texts(model.asked[0]) for model in models)
    other = Talker()
    agent_of(other, store=SQLiteStore(path=path)).ask([Message("user", "Not this one."), *turns(30), *ASK], session="s")
    assert other.summaries, "what was said is another thing: it has a summary of its own"


def test_it_is_an_entry_of_an_agents_tools_in_a_file_too() -> None:
    model = Talker()
    entry = {"name": "compaction", **PLAIN, "share": 0.5, "llm": None}
    agent = create_agent({"agent": "fncall", "function_list": [entry]}, llm=model)
    agent.ask([*turns(20), Message("user", "What was first?")])
    assert len(model.summaries) == 1
    with pytest.raises(ConfigError, match="share"):
        Compaction(share=0)
    with pytest.raises(ConfigError, match="llm"):
        Compaction(llm=7)


# --- what holds for all histories ---


@st.composite
def _histories(draw: st.DrawFn) -> list[Message]:
    history = [Message("system", "Be brief.")] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(1, 9))):
        pin = {"pinned": True} if draw(st.integers(0, 9)) == 0 else {}
        history.append(Message("user", _text(draw, number), extra=pin or None))
        for _ in range(draw(st.integers(0, 4))):
            ids = [f"c{number + place}" for place in range(draw(st.integers(0, 3)))]
            number += 3
            history += [Message("assistant", _text(draw, number))] if not ids else []
            history += [
                Message("assistant", "", function_call=FunctionCall("f", "{}"), extra={"function_id": one, **pin})
                for one in ids
            ]
            history += [Message("function", _text(draw, number), name="f", extra={"function_id": one}) for one in ids]
    return [*history, Message("user", "The question.")]


def _text(draw: st.DrawFn, number: int) -> str:
    return f"{number} " + draw(st.sampled_from(["a ", "数据", "long-word "])) * draw(st.integers(0, 300))


@given(_histories(), st.integers(600, 4000), st.integers(1, 4), st.booleans())
def test_whatever_the_history_a_model_sees_a_valid_one_that_fits(
    history: list[Message], context: int, keep: int, fails: bool
) -> None:
    model = Talker(summarise=(lambda _: answer("")) if fails else None)
    compaction = Compaction(**{**PLAIN, "context_tokens": context}, keep_turns=keep)
    result = agent_of(model, compaction=compaction).ask(history)
    assert list(result.history[:-1]) == history
    [request] = model.asked
    seen = request.messages
    assert RequestCounter(estimate_tokens, 0).request(request) <= context
    assert seen[-1].content == "The question."
    assert [message for message in seen if message.role == "system"] == [m for m in history if m.role == "system"]
    wanted = [message.function_id for message in seen if message.function_call]
    given_back = [message.function_id for message in seen if message.role == "function"]
    assert sorted(map(str, wanted)) == sorted(map(str, given_back))
    if len(seen) < len(history):
        assert NAME in shown(request), "what is not there can be read"
    if not fails and model.summaries and any("notes" in message.get_text_content() for message in seen):
        through = int(re.findall(r"(?:Messages 1 to|第 1 至) (\d+)", texts(request))[0])
        said = [message for message in history if message.role != "system"][:through]
        assert all(message in seen for message in said if (message.extra or {}).get("pinned"))


@given(st.lists(st.lists(st.integers(1, 50), max_size=8), max_size=6), st.booleans())
def test_sizes_of_a_growing_conversation_are_each_taken_once(parts: list[list[int]], system: bool) -> None:
    taken: list[int] = []

    def size_of(message: Message) -> int:
        taken.append(len(message.get_text_content()))
        return taken[-1]

    sizes = Sizes()
    messages = [Message("system", "x" * 99)] if system else []
    for part in parts:
        messages += [Message("user", "x" * size) for size in part]
        sizes.take(messages, size_of)
    wanted = list(chain.from_iterable(parts))
    assert taken == wanted
    assert sizes.total == sum(wanted)
    assert [sizes.of(number) for number in range(1, len(wanted) + 1)] == wanted
    sizes.take([Message("user", "xx")], size_of)
    assert sizes.total == 2, "another conversation is counted anew"


def test_a_short_conversation_below_a_long_system_message_is_still_kept_within_the_limit() -> None:
    model = Talker()
    history = [Message("system", "Remember this. " * 1400), *turns(4), *ASK]
    result = agent_of(model).ask(history)
    assert result.text == "Fine."
    counter = RequestCounter(estimate_tokens, 1000)
    assert sum(map(counter.message, history)) > CONTEXT >= counter.request(model.asked[0])
    assert model.asked[0].messages[0] == history[0]


SAID = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]


def reported(through: int, said: list[Message] = SAID) -> PluginEvent:
    data = {"through": through, "kept": [], "summary": f"up to {through}", "of": digest_of(said[:through])}
    return PluginEvent(COMPACTED_EVENT, data)


@pytest.mark.parametrize(
    ("reports", "through"),
    [
        ([], 0),
        ([reported(1), reported(2)], 2),
        ([reported(2), PluginEvent("other"), reported(1)], 1),
        ([reported(1), reported(2, [Message("user", "of another conversation")] * 2)], 1),
        ([reported(0)], 0),
        ([reported(4, [*SAID, Message("user", "later")])], 0),
        ([PluginEvent(COMPACTED_EVENT, {**reported(3).data, "through": 4})], 0),
    ],
)
def test_a_run_goes_on_with_the_last_summary_of_its_own_conversation(
    reports: list[PluginEvent], through: int, make_request: MakeRequest
) -> None:
    compacting = Compacting(Compaction(**PLAIN).shared, reports)
    measure = compacting._measure_request(make_request([Message("system", "Be brief."), *SAID]))
    assert compacting._finds(measure) is bool(through)
    assert compacting._view.through == through
    if through:  # and tells the next run, whose system message may be another one
        told = compacting._make_event(measure)
        other = Compacting(Compaction(**PLAIN).shared, [told])
        assert other._finds(other._measure_request(make_request(SAID)))
        assert other._view == compacting._view


def test_a_view_of_a_summary_keeps_what_it_does_not_cover() -> None:
    assert _view_of(Summary((0, 2), "notes")) == View(3, frozenset({2}), "notes")
    assert _view_of(None) is None


def test_a_refusal_in_the_middle_of_an_answer_is_not_asked_again() -> None:
    said = [TextDelta("Hal"), UsageReported(Usage()), ContextLengthError("too long", backend="scripted")]
    model = Talker(lambda _: said)
    with pytest.raises(ContextLengthError):
        agent_of(model, compaction=Compaction(summary_tokens=100)).ask([*turns(40), *ASK])
    assert len(model.asked) == 1


def test_tools_and_a_system_message_that_change_in_a_run_are_those_of_the_request(make_request: MakeRequest) -> None:
    compacting, asked = Compacting(Compaction(**PLAIN).shared, ()), list[ChatRequest]()

    async def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        for event in answer("Fine."):
            yield event

    read = {"name": NAME, "description": "Reads.", "parameters": {}}
    for system, names in (("Be brief.", "a"), ("Be brief.", "ab"), ("word " * 6000, "ab"), ("Be kind.", "b")):
        functions = tuple({"name": name, "description": "Works.", "parameters": {}} for name in names)
        request = make_request([Message("system", system), *SAID], functions=(*functions, read))
        if len(system) < 100:
            wait_for(gathered(compacting.around(request, call_next)))
            assert [function["name"] for function in asked[-1].functions] == [*names]
            assert asked[-1].messages == request.messages
        else:  # it is too long to be asked about, which no earlier system message says
            with pytest.raises(ContextLengthError):
                wait_for(gathered(compacting.around(request, call_next)))
