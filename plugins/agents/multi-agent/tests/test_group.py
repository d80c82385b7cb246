"""Group chats: who speaks, what each of them sees, and where it ends."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import BasicAgent, FnCallAgent, FunctionCall, Message, create_agent, tool
from jackfield.agents import Agent, CancelToken, Event, Run
from jackfield.errors import ConfigError, PluginError
from jackfield.events import HandedOff, ModelEvent, PluginEvent, RunEvent, RunFinished, TextDelta
from jackfield.messages import FUNCTION, ContentItem
from jackfield.request import ChatRequest
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield_multi_agent import DialogueSimulator, GroupChat, GroupChatAutoRouter, UserAgent
from jackfield_multi_agent.choosing import NOBODY_NAMED, another
from jackfield_multi_agent.transcript import Transcript, caller_of_open_calls, mentioned, named
from jackfield_multi_agent.user import INPUT_NEEDED


def says(name: str, script: Script | str = "", tools: Sequence[Any] = ()) -> FnCallAgent:
    """An agent that says something, always the same if it is a text."""
    step = script if not isinstance(script, str) else (lambda _: answer(script or f"I am {name}."))
    return FnCallAgent(tools, ScriptedModel(step), f"You are {name}.", name, f"Is {name}.")


def host(*names: str) -> ScriptedModel:
    return ScriptedModel([answer(name) for name in names])


def requests(agent: Any) -> list[ChatRequest]:
    assert isinstance(agent.llm, ScriptedModel)
    return agent.llm.requests


def speakers(messages: Sequence[Message]) -> list[str | None]:
    return [message.name for message in messages if message.role == "assistant" and not message.function_call]


def test_they_speak_in_order_and_go_on_where_they_stopped() -> None:
    chat = GroupChat([says("al"), says("bo"), says("cy")], "round_robin", max_round=4)
    result = chat.ask("Hello")
    assert speakers(result.messages) == ["al", "bo", "cy", "al"]
    assert result.text == "I am al."
    assert result.path == ("GroupChat", "al", "bo", "cy", "al")
    assert set(result.usage_by_agent) == {"al", "bo", "cy"}
    assert result.usage.total_tokens == 8
    assert speakers(chat.ask("Go on", history=result.history, max_round=1).messages) == ["bo"]  # type: ignore[call-arg]


def test_a_group_makes_three_speeches_unless_told_otherwise() -> None:
    assert speakers(GroupChat([says("al"), says("bo")], "round_robin").ask("Hello").messages) == ["al", "bo", "al"]


def test_chance_takes_somebody_else_and_the_same_with_the_same_seed() -> None:
    def names(seed: int | None) -> list[str | None]:
        return speakers(
            GroupChat([says("al"), says("bo"), says("cy")], "random", max_round=9, seed=seed).ask("Hi").messages
        )

    assert names(1) == names(1)
    assert names(0) == names(0)
    assert len({tuple(names(None)) for _ in range(20)}) > 1, "without a seed, each run has its own order"
    assert all(first != second for first, second in zip(names(1), names(1)[1:], strict=False))
    assert set(names(1)) == {"al", "bo", "cy"}
    assert another("al", ["al"], random.Random(1)) == "al"


def test_of_several_questions_the_last_one_mentions_who_speaks_first() -> None:
    history = [Message("user", "@bo hello"), Message("assistant", "Hi.", name="bo"), Message("user", "@cy and you?")]
    chat = GroupChat([says("al"), says("bo"), says("cy")], "round_robin", max_round=1)
    assert speakers(chat.run_nonstream(history)) == ["cy"]


def test_a_person_is_waited_for_unless_the_run_was_cancelled() -> None:
    for cancelled, reason in ((False, "input_needed"), (True, "cancelled")):
        cancel = CancelToken()
        if cancelled:
            cancel.cancel()
        assert UserAgent(name="eve").ask("Hello", cancel=cancel).stop_reason == reason


def test_a_group_from_a_dict_has_what_the_dict_says_and_no_more() -> None:
    chat = GroupChat({"agents": [{"name": "al", "is_human": False}, {"name": "eve", "is_human": True}]}, "round_robin")
    assert chat.background == ""
    assert [isinstance(agent, UserAgent) for agent in chat.agents] == [False, True]


def test_a_speaker_without_a_system_message_is_told_its_part_alone() -> None:
    al = says("al")
    GroupChat([al, says("bo")], "round_robin", max_round=1).ask("Hello")
    told = [message.get_text_content() for message in requests(al)[0].messages if message.role == "system"]
    assert all(text == text.strip() for text in told)


def test_a_view_of_a_person_shows_its_own_message_as_that_of_a_user() -> None:
    seen = Transcript(["eve", "al"], [Message("user", "Hello", name="eve")]).seen_by("eve", "Go on.")
    assert [(message.role, message.content) for message in seen] == [("user", "eve: Hello")]


def test_the_agent_with_pending_calls_is_the_one_that_called_last() -> None:
    done, pending = (
        Message("assistant", "", name=name, function_call=FunctionCall("f", "{}")) for name in ("al", "bo")
    )
    history = [Message("user", "Hello"), done, Message(FUNCTION, "1", name="f"), pending]
    assert caller_of_open_calls(history) == "bo"
    assert caller_of_open_calls(history[:3]) is None


def test_the_host_chooses_and_what_it_costs_counts() -> None:
    llm = host("bo", "Next is **al**.", "[STOP]")
    result = GroupChat([says("al"), says("bo")], llm=llm, background="At sea.", max_round=9).ask("Hello")
    assert speakers(result.messages) == ["bo", "al"]
    assert result.usage.total_tokens == 10
    assert result.usage_by_agent["host"].total_tokens == 6
    prompt = llm.requests[1].messages[-1].get_text_content()
    assert "At sea." in prompt
    assert "- al: Is al." in prompt
    assert "Hello\nbo: I am bo." in prompt


def test_options_of_a_run_are_for_the_agents_and_not_for_the_host_that_chooses() -> None:
    llm, al = host("al", "[STOP]"), says("al")
    group = GroupChat([al, says("bo")], llm=llm)
    group.ask("Hello", config={"temperature": 0.25})
    assert [request.config.temperature for request in requests(al)] == [0.25]
    assert [request.config.temperature for request in llm.requests] == [None, None]
    chooses = GroupChatAutoRouter(llm=host("al"), agents=group.agents)
    assert chooses.ask("Hello", config={"temperature": 0.5}).text == "al"
    assert [request.config.temperature for request in requests(chooses)] == [0.5], "here it is the agent that is asked"


@pytest.mark.parametrize("text", ["zoe", "", "al or bo", "alabama"])
def test_a_host_that_names_nobody_is_replaced_by_the_order(text: str) -> None:
    stream = GroupChat([says("al"), says("bo")], llm=host(text), max_round=1).stream("Hello")
    events = list(stream)
    assert speakers(stream.result.messages) == ["al"]
    (event,) = [event for event in events if isinstance(event, PluginEvent) and event.name == NOBODY_NAMED]
    assert event.data["note"] == "the host named no speaker, so al is next"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@alice please", ["alice"]),
        ("@al please", ["al"]),
        ("@al, then @alice, @al again", ["al", "alice"]),
        ("@小塘你好", ["小塘"]),
        ("mail al@alice.example", ["alice"]),
        ("@nobody, alice", []),
        ("@李al and @alice", ["李al", "alice"]),
        ("@李alx", []),
        ("@al塘x", ["al塘"]),
        ("@al.ice and @c++", ["al", "c++"]),
        ("@ccc", []),
    ],
)
def test_a_mention_is_a_whole_name(text: str, names: list[str]) -> None:
    assert mentioned(text, ["al", "alice", "小塘", "李al", "al塘", "c++"]) == names


def test_of_two_names_that_fit_the_longer_is_mentioned() -> None:
    assert mentioned("@Bo Li, then @Bo", ["Bo", "Bo Li"]) == ["Bo Li", "Bo"]


def test_a_name_in_an_answer_is_a_whole_one() -> None:
    assert named(" '小塘'。", ["al", "小塘"]) == "小塘"
    assert named("小塘应该发言", ["al", "小塘"]) == "小塘"
    assert named("OK小塘go", ["al", "小塘"]) == "小塘"
    assert named("C++ and al9", ["al", "C++", "C"]) == "C++"
    assert named("al-ice", ["al", "ice"]) is None
    assert named("axb", ["a.b"]) is None
    assert named("Al Jones", ["Al", "Al Jones"]) == "Al Jones"
    assert named("It is the turn of Al Jones now", ["Al", "Al Jones"]) == "Al Jones"
    assert named("It is the turn of Al Jones now", ["Al Jones", "Al"]) == "Al Jones"
    assert named("It is the turn of Al Bo now", ["Bo", "Al Bo"]) == "Al Bo"
    assert named("Al Jones, or Bo", ["Al", "Al Jones", "Bo"]) is None


def test_those_who_are_mentioned_speak_first_in_that_order() -> None:
    chat = GroupChat([says("al"), says("alice"), says("bo")], "round_robin", max_round=3)
    assert speakers(chat.ask("@bo and @alice?").messages) == ["bo", "alice", "bo"]
    begun = [Message("user", "@bo?"), Message("assistant", "@alice, wait.", name="al")]
    assert speakers(chat.ask(begun).messages)[:1] == ["bo"], "only the user's question counts"
    run = list(chat.run("Hello", mentioned_agents_name=["alice"], need_batch_response=False))[-1]  # type: ignore[call-arg]
    assert speakers(run) == ["alice"]
    run = list(chat.run("@al?", mentioned_agents_name=["alice"], max_round=2))[-1]  # type: ignore[call-arg]
    assert speakers(run) == ["alice", "bo"], "names that the caller passes replace those in the text"
    with pytest.raises(ConfigError, match="has no agent named 'alise'; did you mean 'alice'"):
        chat.run_nonstream("Hello", mentioned_agents_name=["alise"])  # type: ignore[call-arg]


def test_each_sees_its_own_messages_and_what_the_others_say() -> None:
    al, bo = says("al"), says("bo")
    GroupChat([al, bo], "round_robin", max_round=3, background="At sea.").ask("Hello")
    system, *rest = requests(al)[1].messages
    assert [(message.role, message.content) for message in rest] == [
        ("user", "Hello"),
        ("assistant", "I am al."),
        ("user", "bo: I am bo."),
    ]
    assert system.get_text_content().startswith("You are al.\n\nYou are al in a conversation of several. At sea.")
    assert [message.content for message in requests(bo)[0].messages[1:]] == ["Hello\nal: I am al."]


def test_one_that_speaks_again_is_asked_to() -> None:
    al = says("al")
    GroupChat([al], max_round=2).ask("Hello")
    assert requests(al)[1].messages[-1].content == "It is your turn, al."


def test_parallel_tool_calls_stay_with_the_one_who_made_them() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    first = calls(("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 2}), text="Let me see. ")
    al, bo = says("al", [first, answer("2 and 4"), answer("Yes.")], [add]), says("bo")
    result = GroupChat([al, bo], "round_robin", max_round=3).ask("Add")
    assert [message.content for message in result.messages if message.role == FUNCTION] == ["2", "4"]
    assert [message.role for message in requests(bo)[0].messages] == ["system", "user"]
    assert requests(bo)[0].messages[-1].content == "Add\nal: Let me see.\nal: 2 and 4"
    roles = [message.role for message in requests(al)[2].messages]
    assert roles == ["system", "user", *["assistant"] * 3, "function", "function", "assistant", "user"]


def test_files_of_the_user_reach_all_and_paths_of_others_stay_paths(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Forty sockets.")
    al = says("al")
    question = Message("user", [ContentItem(text="See"), ContentItem(file=str(tmp_path / "a.txt"))], name="Eve")
    before = Message("assistant", [ContentItem(text="Mine"), ContentItem(file="secret.txt")], name="bo")
    GroupChat([al, says("bo")], "round_robin", max_round=1).ask([question, before, Message("user", "Well?")])
    assert "secret" not in str(requests(al)[0].messages)
    assert "Eve: See" in requests(al)[0].messages[-1].get_text_content()
    assert "Forty sockets." in requests(al)[0].messages[-1].get_text_content()
    assert "bo: Mine" in requests(al)[0].messages[-1].get_text_content()


@pytest.mark.parametrize(("text", "reason"), [("Bye. [STOP]", "finished"), ("", "empty_reply")])
def test_it_stops_when_somebody_says_so_or_nothing(text: str, reason: str) -> None:
    result = GroupChat([says("al", [answer(text)]), says("bo")], "round_robin", max_round=9).ask("Hello")
    assert (speakers(result.messages), result.stop_reason) == (["al"], reason)


def test_at_the_turn_of_a_person_it_waits_and_goes_on_with_what_they_say() -> None:
    chat = GroupChat([says("al"), UserAgent(name="Carla"), says("bo")], "round_robin", max_round=9)
    stream = chat.stream("Hello")
    events = list(stream)
    assert stream.result.stop_reason == "input_needed"
    (event,) = [event for event in events if isinstance(event, PluginEvent) and event.name == INPUT_NEEDED]
    assert event.data["agent"] == "Carla"
    history = [Message(**message.model_dump()) for message in stream.result.history]  # as from a file
    result = chat.ask(Message("user", "I agree.", name="Carla"), history=history)
    assert speakers(result.messages) == ["bo", "al"]
    bo = chat.agents[2]
    assert requests(bo)[0].messages[-1].content == "Hello\nal: I am al.\nCarla: I agree."


def test_what_is_said_without_a_name_at_the_turn_of_a_person_is_theirs() -> None:
    chat = GroupChat([says("al"), UserAgent(name="Carla"), says("bo")], "round_robin", max_round=9)
    history: Sequence[Message] = ()
    for said, spoke in (("Hello", ["al"]), ("I agree.", ["bo", "al"]), ("So do I.", ["bo", "al"])):
        result = chat.ask(said, history=history)
        assert (speakers(result.messages), result.stop_reason) == (spoke, "input_needed")
        history = result.history
    assert "Carla: I agree." in requests(chat.agents[2])[0].messages[-1].get_text_content()
    other = chat.ask(Message("user", "I disagree.", name="Dora"), history=history)
    assert (speakers(other.messages), other.stop_reason) == ([], "input_needed"), "it is still the turn of Carla"


def test_a_message_that_another_agent_has_answered_is_not_taken_for_the_persons() -> None:
    chat = GroupChat([says("al"), UserAgent(name="Carla"), says("bo")], "round_robin", max_round=9)
    begun = [Message("user", "Hello"), Message("assistant", "Hi.", name="bo"), Message("user", "And?")]
    result = chat.ask(begun)
    assert (speakers(result.messages), result.stop_reason) == (["al"], "input_needed")


def test_the_opening_question_is_nobodys() -> None:
    chat = GroupChat([UserAgent(name="Carla"), says("bo")], "round_robin")
    opened = chat.ask("Plan a party.")
    assert (speakers(opened.messages), opened.stop_reason) == ([], "input_needed")
    assert speakers(chat.ask("With music.", history=opened.history).messages) == ["bo"]


def test_in_the_manual_way_the_caller_says_who_is_next() -> None:
    chat = GroupChat([says("al"), says("bo"), UserAgent(name="Carla")], "manual")
    stream = chat.stream("Hello")
    (event,) = [event for event in stream if isinstance(event, PluginEvent)]
    assert event.data == {"agent": "", "choices": ["al", "bo", "Carla"]}
    assert (stream.result.stop_reason, stream.result.messages) == ("input_needed", ())
    again = chat.run_nonstream("Hello", mentioned_agents_name=["bo"], need_batch_response=False)  # type: ignore[call-arg]
    assert speakers(again) == ["bo"]


def test_a_call_that_needs_approval_pauses_the_chat_and_goes_on_with_its_agent() -> None:
    @tool(name="delete", description="Deletes.", needs_approval=True)
    def delete() -> str:
        return "deleted"

    def chat(*script: list[ModelEvent]) -> GroupChat:
        return GroupChat([says("al"), says("bo", script, [delete])], "round_robin", max_round=2)

    paused = chat(calls(("delete", {}))).ask("Go")
    assert paused.stop_reason == "approval_needed"
    result = chat(answer("Gone."), answer("x")).ask(
        [], history=paused.history, resume=dict.fromkeys(paused.waiting, True)
    )
    assert [message.content for message in result.messages] == ["deleted", "Gone.", "I am al."]


class Notes(Agent):
    """Notes with which decisions about calls it runs."""

    def __init__(self) -> None:
        super().__init__(name="bo")
        self.decisions: list[tuple[bool, dict[str, Any]]] = []

    async def events(self, run: Run) -> AsyncIterator[Event]:
        self.decisions.append((run.resume, dict(run.answers)))
        yield RunFinished("finished", (Message("assistant", "I am bo.", name="bo"),), run.start.spent.usage)


@pytest.mark.parametrize("is_dialogue", [False, True])
def test_an_approval_is_for_the_calls_that_waited_and_no_later_speaker_gets_it(is_dialogue: bool) -> None:
    @tool(name="delete", description="Deletes.", needs_approval=True)
    def delete() -> str:
        return "deleted"

    def chat(script: Script) -> Agent:
        al = says("al", script, [delete])
        if is_dialogue:
            return DialogueSimulator(bo, al, max_round=1)
        return GroupChat([al, bo], "round_robin", max_round=2)

    bo = Notes()
    paused = chat([calls(("delete", {}))]).ask("Go")
    result = chat([answer("Gone.")]).ask([], history=paused.history, resume=dict.fromkeys(paused.waiting, True))
    assert result.messages[-1].content == "I am bo."
    assert bo.decisions == [(False, {})]


def test_what_another_agent_called_before_it_handed_the_conversation_over_is_nobodys_here() -> None:
    al, bo = says("al"), says("bo")
    chat = GroupChat([al, bo], "round_robin", name="chat", description="Talks.", max_round=2)
    desk = FnCallAgent(
        llm=ScriptedModel([calls(("transfer_to_chat", {}), text="One moment.")]), handoffs=[chat], name="desk"
    )
    result = desk.ask("Hello")
    assert result.path == ("desk", "chat", "al", "bo")
    assert [(message.role, message.content) for message in requests(al)[0].messages[1:]] == [
        ("user", "Hello\ndesk: One moment."),
    ]


def test_calls_that_are_open_are_made_by_somebody_also_when_nobody_has_the_name_of_the_caller() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    for name in ("renamed", None):
        call = Message("assistant", "", function_call=FunctionCall("add", '{"a": 1, "b": 2}'), name=name)
        chat = GroupChat([says("al", [answer("3")], [add]), says("bo")], "round_robin", max_round=1)
        result = chat.ask([Message("user", "Add, @bo"), call], resume=True)
        assert [message.content for message in result.messages] == ["3", "3"]


def test_it_streams_under_the_name_of_who_speaks() -> None:
    events = list(GroupChat([says("al"), says("bo")], "round_robin", max_round=2).stream("Hello"))
    assert [(event.by, event.to) for event in events if isinstance(event, HandedOff)] == [
        ("GroupChat", "al"),
        ("al", "bo"),
    ]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I am al.I am bo."
    assert not [event for event in events if isinstance(event, RunEvent)]


def test_limits_hold_for_the_chat_and_turns_for_a_speech() -> None:
    agents = [says("al"), says("bo")]
    result = GroupChat(agents, "round_robin", max_round=9, limits={"tokens": 5}).ask("Hello")
    assert (result.stop_reason, speakers(result.messages)) == ("token_limit", ["al", "bo", "al"])
    result = GroupChat(agents, "round_robin", max_round=9, limits={"tokens": 1}).ask("@bo and @al?")
    assert (result.stop_reason, speakers(result.messages)) == ("token_limit", ["bo"])
    assert result.path == ("GroupChat", "bo"), "nobody else is asked"
    result = GroupChat(agents, "round_robin", max_round=30, limits={"turns": 1}).ask("Hello")
    assert (result.stop_reason, len(result.messages)) == ("finished", 30)


def test_a_dict_makes_its_agents() -> None:
    config = {
        "background": "In a shop.",
        "agents": [
            {"name": "seller", "description": "Sells.", "instructions": "You sell.", "selected_tools": []},
            {"name": "Dora", "description": "Buys.", "is_human": True},
        ],
    }
    model = ScriptedModel([answer("What will it be?")])
    chat = create_agent("group_chat", llm=model, agents=config, agent_selection_method="round_robin")  # type: ignore[call-overload]
    result = chat.ask("Good morning")
    assert (speakers(result.messages), result.stop_reason) == (["seller"], "input_needed")
    assert model.requests[0].messages[0].get_text_content().startswith("You sell.")
    assert "In a shop." in model.requests[0].messages[0].get_text_content()
    assert "- seller: Sells.\n- Dora: Buys." in model.requests[0].messages[0].get_text_content()
    assert [agent.name for agent in chat.nonuser_agents] == ["seller"]
    assert chat.agent_names == ["seller", "Dora"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs at least one agent"),
        ({"agents": []}, "needs at least one agent"),
        ({"agents": {"background": "x"}}, "needs at least one agent"),
        ({"agents": [BasicAgent()]}, "needs a name"),
        ({"agents": ["al"]}, "must be agents, got str"),
        ({"agents": [{"name": "al"}]}, "must be agents, got dict: in a file, specify the agent kind"),
        ({"agents": [BasicAgent(name="al"), BasicAgent(name="al")]}, "two agents in a group chat are named 'al'"),
        ({"agents": [BasicAgent(name="al"), BasicAgent(name="bo")]}, "pass llm="),
        ({"agents": [BasicAgent(name="al")], "agent_selection_method": "rondom"}, "did you mean 'random'"),
        ({"agents": [BasicAgent(name="al")], "max_round": 0}, "max_round must be"),
        ({"agents": [BasicAgent(name="al")], "max_round": True}, "max_round must be"),
        ({"agents": [BasicAgent(name="al")], "max_round": 1.5}, "max_round must be"),
        (
            {"agents": [BasicAgent(name=name) for name in ("al", "bo", "al")]},
            "two agents in a group chat are named 'al'",
        ),
        ({"agents": {"backgruond": "x", "agents": [{"name": "al"}]}}, "no setting 'backgruond'; did you mean"),
        ({"agents": {"agents": [{"nam": "al"}]}}, "no setting 'nam'; did you mean 'name'"),
        ({"agents": {"agents": ["al"]}}, "must be a dict with 'name'"),
        ({"agents": {"agents": [{"name": "al", "selected_tools": ["no_such_tool"]}]}}, "no_such_tool"),
    ],
)
def test_what_is_no_group_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigError, PluginError), match=said):
        GroupChat(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metod": "auto"}, r"no option 'metod'.*own options: agent_selection_method, agents, background, max_round"),
        ({"agent_selection_methd": "auto"}, "did you mean 'agent_selection_method'"),
        ({"max_round": "three"}, "option 'max_round' of agent kind 'group_chat' must be int, got str"),
        ({"seed": [1]}, "must be int or None, got list"),
        ({"agents": [{"agent": "basic", "name": "al", "background": "x"}]}, "agent al: unknown setting 'background'"),
        (
            {"agents": [{"agent": "router", "name": "al", "agnts": []}]},
            "kind 'router' has no option 'agnts'; did you mean",
        ),
        ({"kind": "x"}, "no option 'kind'"),
        ({"host": "x"}, "no option 'host'"),
        ({"prompts": 5}, "prompts must be"),
    ],
)
def test_options_in_a_file_that_do_not_fit_are_named(options: dict[str, Any], said: str) -> None:
    config = {"agent": "group_chat", "agents": [{"agent": "basic", "name": "al"}], **options}
    with pytest.raises(ConfigError, match=said):
        create_agent(config, llm=ScriptedModel([]))


def test_the_host_alone_answers_with_a_name() -> None:
    router = GroupChatAutoRouter(llm=host("bo", "[STOP]"), agents=[says("al"), says("bo")])
    assert router.ask([Message("user", "Hi"), Message("assistant", "Yes", name="al")]).text == "bo"
    assert router.ask("Hi").text == "[STOP]"
