"""Languages, limits and cancels in every kind, and the view that each participant has of attachments."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import Agent, BasicAgent, FnCallAgent, Message, tool
from jackfield.agents import CancelToken, RunView
from jackfield.events import HandedOff, ModelEvent, PluginEvent, ResponseReplaced, RunFinished, TextDelta
from jackfield.jsontext import dumps
from jackfield.messages import ContentItem, FunctionCall, Usage
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_multi_agent import (
    DialogueSimulator,
    GroupChat,
    GroupChatAutoRouter,
    GroupChatCreator,
    HumanSimulator,
    Router,
    UserAgent,
    group_config,
)
from jackfield_multi_agent.transcript import Transcript
from jackfield_testkit.installed import plain_host
from jackfield_testkit.records import MemoryStore

CJK = re.compile("[\u4e00-\u9fff]")
ENGLISH = str(Path(__file__).with_name("test_contract.py"))
PIXEL = "data:image/png;base64,AA=="


def says(name: str, *texts: str, **options: Any) -> BasicAgent:
    """An agent that says these texts, and the last one from then on."""
    left = list(texts) or [f"I am {name}."]

    def script(_: ChatRequest) -> list[ModelEvent]:
        return answer(left.pop(0) if len(left) > 1 else left[0])

    return BasicAgent(llm=ScriptedModel(script), name=name, description=f"Is {name}.", **options)


def texts_of(agent: Agent, number: int = 0) -> list[str]:
    assert isinstance(agent.llm, ScriptedModel)
    return [message.get_text_content() for message in agent.llm.requests[number].messages]


# --- languages ---


def two() -> list[Agent]:
    return [says("al"), says("bo")]


KINDS: dict[str, Callable[[ScriptedModel], Agent]] = {
    "router": lambda llm: Router(llm=llm, agents=two()),
    "host": lambda llm: GroupChat(two(), llm=llm, max_round=2),
    "host alone": lambda llm: GroupChatAutoRouter(llm=llm, agents=two()),
    "creator": lambda llm: GroupChatCreator(llm=llm),
    "human": lambda llm: HumanSimulator(llm=llm),
    "member": lambda llm: GroupChat([BasicAgent(llm=llm, name="al")], max_round=2),
    "router that searches": lambda llm: Router(llm=llm, agents=two(), rag_cfg={}, files=[ENGLISH]),
}


@pytest.mark.parametrize(("question", "lang"), [("你好", "en"), ("Hello", "zh")])
@pytest.mark.parametrize("kind", KINDS)
def test_every_prompt_is_in_the_language_of_the_run(kind: str, question: str, lang: Any) -> None:
    llm = ScriptedModel(lambda _: answer("?!"))
    KINDS[kind](llm).run_nonstream(question, lang=lang)
    assert llm.requests
    for request in llm.requests:
        assert request.lang == lang, "that of the caller, in whatever language the question is"
        prompts = [message.get_text_content().replace(question, "?!") for message in request.messages]
        assert {bool(CJK.search(text)) for text in prompts if text != "?!"} == {lang == "zh"}


# --- what reaches the models ---


OWN_TEXT: dict[str, Callable[[ScriptedModel], Agent]] = {
    "router": lambda llm: Router(llm=llm, agents=two(), system_message="Rhyme."),
    "creator": lambda llm: GroupChatCreator(llm=llm, system_message="Rhyme."),
    "human": lambda llm: HumanSimulator(llm=llm, system_message="Rhyme."),
    "member": lambda llm: GroupChat([BasicAgent(llm=llm, name="al", system_message="Rhyme.")], max_round=1),
}


@pytest.mark.parametrize("kind", OWN_TEXT)
def test_an_agents_own_system_message_comes_before_the_prompt_of_its_kind(kind: str) -> None:
    llm = ScriptedModel(lambda _: answer("Yes."))
    OWN_TEXT[kind](llm).ask("Hello")
    system = llm.requests[0].messages[0].get_text_content()
    assert system.startswith("Rhyme.\n\n")
    assert len(system) > 20


def test_members_of_a_group_see_the_callers_system_message_and_who_is_there() -> None:
    people = [says("al"), UserAgent(name="Dora", description="Buys."), BasicAgent(llm=ScriptedModel([]), name="bo")]
    GroupChat(people, "round_robin").ask([Message("system", "Rhyme."), Message("user", "Hello")])
    system, *said = texts_of(people[0])
    assert "- al: Is al.\n- Dora: Buys.\n- bo\n" in system, "an agent without a description has only its name"
    assert system.endswith("\n\nRhyme.")
    assert said == ["Hello"], "a system message is said by nobody"


# --- ends ---


def paid(store: MemoryStore, script: Callable[[ChatRequest], list[ModelEvent]]) -> DialogueSimulator:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    clerk = FnCallAgent([pay], ScriptedModel(script), name="clerk")
    return DialogueSimulator(says("me", "More."), clerk, max_round=2, store=store)


@pytest.mark.parametrize("read", [0, 1], ids=["first answer", "second answer"])
def test_a_call_in_a_dialogue_is_approved_in_another_program(read: int) -> None:
    store = MemoryStore()

    def script(request: ChatRequest) -> list[ModelEvent]:
        texts = [message.get_text_content() for message in request.messages]
        return calls(("pay", {})) if texts.count("More.") == read and "paid" not in texts else answer("Well.")

    paused = paid(store, script).ask("Pay.")
    assert paused.stop_reason == "approval_needed"
    result = paid(store, script).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert (result.stop_reason, [one.content for one in result.messages].count("paid")) == ("finished", 1)


CANCELLED: dict[str, Callable[[], Agent]] = {
    "manual": lambda: GroupChat(two(), "manual"),
    "person": lambda: UserAgent(name="me"),
    "person in a group": lambda: GroupChat([UserAgent(name="me"), says("al")], "round_robin"),
    "router that searches": lambda: Router(
        llm=ScriptedModel([]), agents=two(), rag_cfg={}, files=[__file__], name="router"
    ),
    "creator": lambda: GroupChatCreator(llm=ScriptedModel([])),
    "human": lambda: HumanSimulator(llm=ScriptedModel([])),
    "host": lambda: GroupChat(two(), llm=ScriptedModel([])),
    "host alone": lambda: GroupChatAutoRouter(llm=ScriptedModel([]), agents=two()),
}


@pytest.mark.parametrize("kind", CANCELLED)
def test_a_cancelled_run_asks_nobody_and_waits_for_nobody(kind: str) -> None:
    cancel = CancelToken()
    cancel.cancel()
    stream = CANCELLED[kind]().stream("Hello", cancel=cancel)
    assert [event for event in stream if isinstance(event, PluginEvent)] == []
    assert (stream.result.stop_reason, stream.result.messages) == ("cancelled", ())


class NeverAnswers(ScriptedModel):
    """Takes a request and keeps it."""

    def __init__(self) -> None:
        super().__init__([])

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.Event().wait()
        yield TextDelta("")


STUCK: dict[str, Callable[[], Agent]] = {
    "router that searches": lambda: Router(
        llm=NeverAnswers(),
        agents=two(),
        rag_cfg={"rag_keygen_strategy": "GenKeyword"},
        files=[ENGLISH],
        limits={"seconds": 0.05},
    ),
    "creator": lambda: GroupChatCreator(llm=NeverAnswers(), limits={"seconds": 0.05}),
    "human": lambda: HumanSimulator(llm=NeverAnswers(), limits={"seconds": 0.05}),
    "host": lambda: GroupChat(two(), llm=NeverAnswers(), limits={"seconds": 0.05}),
    "host alone": lambda: GroupChatAutoRouter(llm=NeverAnswers(), agents=two(), limits={"seconds": 0.05}),
}


@pytest.mark.parametrize("kind", STUCK)
def test_a_run_whose_model_never_answers_ends_at_its_time_limit(kind: str) -> None:
    result = STUCK[kind]().ask("Hello")
    assert (result.stop_reason, result.messages) == ("time_limit", ())


def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: found"


def open_door() -> str:
    """Open the door."""
    return "open"


def looks_up(name: str) -> FnCallAgent:
    """It looks something up in each of its answers."""

    def script(request: ChatRequest) -> list[ModelEvent]:
        return answer("So.") if request.messages[-1].role == "function" else calls(("look_up", {"word": name}))

    return FnCallAgent([look_up], ScriptedModel(script), name=name)


ADDED_UP: dict[str, Callable[[], Agent]] = {
    "host": lambda: GroupChat(
        [looks_up("al"), says("bo")], llm=ScriptedModel([answer("al"), answer("bo")]), max_round=2
    ),
    "host alone": lambda: GroupChatAutoRouter(llm=ScriptedModel([answer("al")]), agents=two()),
    "creator": lambda: GroupChatCreator(llm=ScriptedModel([answer("{}")])),
    "human": lambda: HumanSimulator(llm=ScriptedModel([answer("[]")])),
    "dialogue": lambda: DialogueSimulator(looks_up("me"), looks_up("it"), max_round=2),
}


@pytest.mark.parametrize("kind", ADDED_UP)
def test_the_usage_of_a_run_is_that_of_all_its_answers_and_its_stream_ends_with_its_messages(kind: str) -> None:
    agent = ADDED_UP[kind]()
    view, stream = RunView(agent.name), agent.stream("Hello")
    for event in stream:
        if not isinstance(event, RunFinished):  # the end, which has the messages
            view.feed(event)
    below = sum(stream.result.usage_by_agent.values(), Usage())
    assert stream.result.usage == below
    assert below.total_tokens > 0
    assert [(one.role, one.content) for one in view.messages()] == [
        (one.role, one.content) for one in stream.result.messages
    ]


def test_turns_are_those_of_each_answer_in_a_dialogue() -> None:
    result = DialogueSimulator(says("me"), says("it"), max_round=3, limits={"turns": 1}).ask("Hello")
    assert (result.stop_reason, len(result.messages)) == ("finished", 6)


def test_a_stream_of_a_dialogue_shows_each_question_as_the_users() -> None:
    dialogue = DialogueSimulator(says("me", "Why?", "<|STOP|>"), says("it", "So."), max_round=3)
    shown = [event.messages for event in dialogue.stream("Hello") if isinstance(event, ResponseReplaced)]
    assert [[(one.role, one.content) for one in messages][-1] for messages in shown] == [
        ("assistant", "So."),
        ("user", "Why?"),
        ("assistant", "So."),
        ("user", "<|STOP|>"),
    ]


def test_a_system_message_of_the_caller_reaches_both_sides_of_a_dialogue() -> None:
    user, assistant = says("me"), says("it")
    DialogueSimulator(user, assistant, max_round=1).ask([Message("system", "Rhyme."), Message("user", "Hello")])
    assert ["Rhyme." in texts_of(agent)[0] for agent in (user, assistant)] == [True, True]


def test_a_simulated_user_takes_other_questions_later_in_a_dialogue() -> None:
    questions = str([f"{number}?" for number in range(50)]).replace("'", '"')
    history: list[Message] = []
    asked = set()
    for _ in range(6):
        history += [Message("user", "Yes."), Message("assistant", "No.")]
        human = HumanSimulator(llm=ScriptedModel([answer(questions)]))
        asked.add(human.ask([*history, Message("user", "And?")]).text)
    assert len(asked) > 1


@pytest.mark.parametrize("text", ["<|STOP|>", "I have enough. <|STOP|>"])
def test_a_dialogue_stops_wherever_its_user_says_so(text: str) -> None:
    result = DialogueSimulator(says("me", text), says("it"), max_round=3).ask("Hello")
    assert [(one.role, one.name, one.content) for one in result.messages] == [
        ("assistant", "it", "I am it."),
        ("user", "me", text),
    ]


@pytest.mark.parametrize("history", [[], [Message("user", "Hello"), Message("assistant", "Hi", name="it")]])
def test_a_dialogue_that_awaits_no_answer_begins_with_its_user(history: list[Message]) -> None:
    result = DialogueSimulator(says("me"), says("it"), max_round=1).ask([Message("system", "Rhyme."), *history])
    assert [one.name for one in result.messages] == ["me", "it"]


def test_a_simulated_user_hears_all_words_but_no_results_of_tools() -> None:
    steps = [calls(("look_up", {"word": "tea"}), text="Let me see."), answer("It is green.")]
    user = says("me")
    DialogueSimulator(user, FnCallAgent([look_up], ScriptedModel(steps), name="it"), max_round=1).ask("What is tea?")
    assert texts_of(user) == ["What is tea?", "Let me see.", "It is green."]


def test_simulated_users_with_different_seeds_ask_different_questions() -> None:
    questions = [f" {number}?\n" for number in range(50)]
    asked = [
        [HumanSimulator(llm=ScriptedModel([answer(dumps(questions))]), seed=seed).ask("Hello").text for _ in range(2)]
        for seed in range(9)
    ]
    assert [first for first, _ in asked] == [again for _, again in asked]
    assert len({first for first, _ in asked}) > 1
    assert {first for first, _ in asked} <= {question.strip() for question in questions}


@pytest.mark.parametrize("text", ["[STOP]", "I think we are done. [STOP]"])
def test_a_host_stops_wherever_it_says_so(text: str) -> None:
    result = GroupChat(two(), llm=ScriptedModel([answer("bo"), answer(text)]), max_round=9).ask("Hello")
    assert [message.name for message in result.messages] == ["bo"]


@pytest.mark.parametrize("kind", ["host", "human"])
def test_an_answer_in_an_event_is_cut(kind: str) -> None:
    stream = KINDS[kind](ScriptedModel(lambda _: answer("x" * 300))).stream("Hello")
    events = [event for event in stream if isinstance(event, PluginEvent)]
    assert {event.data["answer"] for event in events} == {"x" * 200}


# --- groups in dicts ---


def test_a_member_in_a_dict_has_its_description_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "menu.txt").write_text("Tea costs 3 euros.", encoding="utf-8")
    seller = {"name": "seller", "description": "Sells.", "knowledge_files": [str(tmp_path / "menu.txt")]}
    config = {"background": "In a shop.", "agents": [seller, {"name": "guard", "description": "Guards."}]}
    llm = ScriptedModel(lambda _: answer("Yes."))
    GroupChat(config, "round_robin", llm, background="On a boat.", max_round=2).ask("What does tea cost?")
    shown = [request.messages[0].get_text_content() for request in llm.requests]
    assert ["Tea costs 3 euros." in text for text in shown] == [True, False]
    assert all("- seller: Sells.\n- guard: Guards." in text for text in shown)
    assert all("On a boat." in text and "In a shop." not in text for text in shown), "an argument comes first"


def test_a_member_in_a_dict_has_all_its_tools_and_instructions() -> None:
    guard = {"name": "guard", "instructions": "You guard.", "selected_tools": [look_up, open_door]}
    llm = ScriptedModel(lambda _: answer("Yes."))
    GroupChat({"agents": [guard]}, "round_robin", llm, max_round=1).ask("Open!")
    (request,) = llm.requests
    assert [one["name"] for one in request.functions] == ["look_up", "open_door"]
    assert request.messages[0].get_text_content().startswith("You guard.")


def test_members_in_a_dict_find_the_plugins_that_the_group_finds() -> None:
    members = [{"name": "seller"}, {"name": "reader", "knowledge_files": ["a.txt"]}, {"name": "Ada", "is_human": True}]
    group = GroupChat({"agents": members}, "round_robin", ScriptedModel([]), host=plain_host())
    assert all(member.host is group.host for member in group.agents)


def test_prompts_of_a_group_are_those_of_its_host() -> None:
    llm = ScriptedModel([answer("[STOP]")])
    GroupChat(two(), llm=llm, prompts={"host": "Pick one."}).ask("Hello")
    assert llm.requests[0].messages[-1].content == "Pick one."


def test_what_a_router_spends_on_its_search_counts(tmp_path: Path) -> None:
    (tmp_path / "menu.txt").write_text("Tea costs 3 euros.", encoding="utf-8")
    llm = ScriptedModel(lambda _: answer('{"keywords_en": ["tea"]}'))
    router = Router(
        llm=llm, agents=two(), files=[str(tmp_path / "menu.txt")], rag_cfg={"rag_keygen_strategy": "GenKeyword"}
    )
    result = router.ask("What does tea cost?", lang="zh")
    assert [request.lang for request in llm.requests] == ["zh", "zh"]
    system = llm.requests[1].messages[0].get_text_content()
    assert "Tea costs 3 euros." in system
    assert "passages from your documents" not in system
    assert result.usage.total_tokens == 4


# --- designs ---


@pytest.mark.parametrize("kind", [GroupChatCreator, HumanSimulator])
def test_options_and_the_language_of_a_run_reach_the_model(kind: Any) -> None:
    llm = ScriptedModel([answer("[]")])
    kind(llm=llm).run_nonstream("A ship, please", config={"temperature": 0.25}, lang="zh")
    (request,) = llm.requests
    assert (request.config.temperature, request.lang) == (0.25, "zh")


@pytest.mark.parametrize("text", ["", "Sorry."])
def test_a_design_ends_as_its_model_did(text: str) -> None:
    result = GroupChatCreator(llm=ScriptedModel([answer(text)])).ask("A ship, please")
    assert (result.stop_reason, result.text) == ("finished" if text else "empty_reply", text)


def test_a_design_without_words_for_the_user_has_an_empty_text() -> None:
    result = GroupChatCreator(llm=ScriptedModel([answer('{"agents": [{"name": "mate"}]}')])).ask("A ship, please")
    assert [(one.name, one.content) for one in result.messages] == [("role_config", '{"name": "mate"}'), (None, "")]


def test_a_role_has_only_texts_and_a_later_design_replaces_all_roles() -> None:
    roles = '{"agents": [{"name": "mate", "description": null, "instructions": "", "age": 5}, {"name": " "}]}'
    first = GroupChatCreator(llm=ScriptedModel([answer(roles)])).ask("A ship, please")
    assert group_config(first.history) == {"background": "", "agents": [{"name": "mate"}]}
    second = GroupChatCreator(llm=ScriptedModel([answer(roles.replace("mate", "cook"))]))
    history = second.ask("Another, please", history=first.history).history
    assert group_config(history)["agents"] == [{"name": "cook"}], "the roles of an earlier design count no more"


# --- views ---


def text(content: str) -> ContentItem:
    return ContentItem(text=content)


VIEWS: list[tuple[Message, list[ContentItem] | str, str]] = [
    (Message("assistant", "Yes.", name="al"), "al: Yes.", "al: Yes."),
    (Message("assistant", " ", name="al"), [], ""),
    (Message("assistant", [text("See"), text("  ")], name="al"), "al: See", "al: See"),
    (Message("assistant", [ContentItem(image=PIXEL)], name="al"), [text("al:"), ContentItem(image=PIXEL)], "al: "),
    (
        Message("assistant", [text(" See "), ContentItem(image=PIXEL)], name="al"),
        [text("al: See"), ContentItem(image=PIXEL)],
        "al: See ",
    ),
    (Message("assistant", [ContentItem(file="own.txt")], name="al"), [], "al: "),
    (Message("user", [ContentItem(file="a.txt")]), [ContentItem(file="a.txt")], ""),
    (
        Message("user", [ContentItem(file="a.txt")], name="Eve"),
        [text("Eve:"), ContentItem(file="a.txt")],
        "Eve: ",
    ),
    (Message("assistant", "", name="al", function_call=FunctionCall("look", "{}")), [], ""),
    (Message("function", "secret", name="look"), [], ""),
]


@pytest.mark.parametrize(("message", "shown", "line"), VIEWS)
def test_others_see_what_was_said_and_attachments_that_they_may_open(
    message: Message, shown: Sequence[ContentItem] | str, line: str
) -> None:
    transcript = Transcript(["al", "bo"], [message])
    seen = [one.content for one in transcript.seen_by("bo", "cue") if one.content != "cue"]
    assert seen == ([shown] if shown else [])
    (said,) = transcript.lines or [""]
    assert said.startswith(line)
    assert [item.value for item in message.items if item.text is None and item.value in said] == [
        item.value for item in message.items if item.file
    ]


@pytest.mark.parametrize(
    ("message", "speaker"),
    [
        (Message("assistant", "Hi", name="al"), "al"),
        (Message("assistant", "Hi", name="stranger"), "stranger"),
        (Message("assistant", "Hi"), ""),
        (Message("assistant", "", function_call=FunctionCall("f", "{}")), "al"),
        (Message("assistant", "", function_call=FunctionCall("f", "{}"), name="stranger"), "stranger"),
        (Message("user", "Hi", name="bo"), "bo"),
        (Message("user", "Hi"), ""),
    ],
)
def test_a_message_is_that_of_the_name_on_it_and_a_call_must_be_somebodys(message: Message, speaker: str) -> None:
    assert Transcript(["al", "bo"], [])._speaker(message) == speaker


def test_with_one_agent_all_answers_without_a_name_are_its() -> None:
    transcript = Transcript(["al"], [])
    assert transcript._speaker(Message("assistant", "Hi")) == "al"
    assert transcript._speaker(Message("assistant", "Hi", name="stranger")) == "stranger"


@pytest.mark.parametrize("name", [None, "panel"])
def test_speeches_are_handed_on_from_the_chat_and_then_from_speaker_to_speaker(name: str | None) -> None:
    members = [BasicAgent(llm=ScriptedModel(lambda _: answer("Hi.")), name=one) for one in ("al", "bo")]
    chat = GroupChat(members, "round_robin", name=name, max_round=2)
    dialogue = DialogueSimulator(*members[::-1], max_round=1, name=name)
    for agent in (chat, dialogue):
        handed = [event for event in agent.stream("Talk.") if isinstance(event, HandedOff)]
        assert [(event.by, event.to) for event in handed] == [(name or type(agent).__name__, "al"), ("al", "bo")]


def test_kinds_that_can_be_resumed_say_so() -> None:
    for kind in (GroupChat, GroupChatAutoRouter, GroupChatCreator, HumanSimulator, DialogueSimulator, Router):
        assert kind.resumable is True


def test_lines_have_the_speaker_and_empty_messages_have_none() -> None:
    transcript = Transcript(["al", "bo"], [])
    for message in (
        Message("user", "Hi"),
        Message("assistant", " Yes. ", name="al"),
        Message("assistant", "", name="bo"),
        Message("assistant", "", name="bo", function_call=FunctionCall("f", "{}")),
        Message("function", "3", name="f"),
    ):
        transcript.add(message)
    assert transcript.lines == ["Hi", "al: Yes."]
    assert transcript.last_speaker == "bo"
