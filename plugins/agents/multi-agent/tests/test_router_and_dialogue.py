"""Routers, simulated dialogues, and designs of group chats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield import BasicAgent, FnCallAgent, Message, create_agent
from jackfield.agents import Handoff
from jackfield.errors import ConfigError
from jackfield.events import PluginEvent
from jackfield.messages import FUNCTION
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield_multi_agent import (
    DialogueSimulator,
    GroupChat,
    GroupChatCreator,
    HumanSimulator,
    Router,
    UserAgent,
    group_config,
)
from jackfield_multi_agent.plugin import agents


def says(name: str, *texts: str) -> BasicAgent:
    return BasicAgent(llm=ScriptedModel([answer(text) for text in texts]), name=name, description=f"Is {name}.")


def router(script: Script, **options: Any) -> Router:
    return Router(llm=ScriptedModel(script), agents=[says("math", "It is 4."), says("art", "Blue.")], **options)


# --- routers ---


def test_the_chosen_agent_answers() -> None:
    chosen = router([calls(("transfer_to_art", {}))])
    result = chosen.ask("Which colour?")
    assert (result.text, result.path) == ("Blue.", ("Router", "art"))
    assert isinstance(chosen.llm, ScriptedModel)
    system = chosen.llm.requests[0].messages[0].get_text_content()
    assert "- math: Is math.\n- art: Is art." in system
    router_zh = router([answer("好")])
    router_zh.ask("你好")
    assert "请把对话交给最适合回答的那一位" in router_zh.llm.requests[0].messages[0].get_text_content()  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["You may Call: 911", "Call: art\nReply:", "Call:"])
def test_no_words_of_an_answer_are_a_choice(text: str) -> None:
    result = router([answer(text)]).ask("Help!")
    assert (result.text, result.path) == (text, ("Router",))


def test_a_router_knows_that_its_passages_are_a_part_of_its_files(tmp_path: Path) -> None:
    parts = [f"# Valve {n}\n\n" + f"Valve {n} opens at {n} bar. " * 10 for n in range(60)]
    (tmp_path / "manual.md").write_text("\n\n".join(parts), encoding="utf-8")
    llm = ScriptedModel([answer("33 bar")])
    rag = {"max_ref_token": 300, "chunk_size": 60}
    own = Router(llm=llm, agents=[says("math", "It is 4.")], files=[str(tmp_path / "manual.md")], rag_cfg=rag)
    own.ask("When does valve 33 open?")
    (system, _) = (message.get_text_content() for message in llm.requests[0].messages)
    assert "Valve 33 opens at 33 bar." in system
    assert "Only a part of the documents is shown" in system


def test_only_the_router_reads_documents_by_itself() -> None:
    assert {spec.name: spec.effects for spec in agents() if spec.effects} == {"router": {"files", "network"}}


@pytest.mark.parametrize("label", ["多模态助手", "Image Assistant", "🤖"])
def test_agents_of_any_name_can_be_chosen(label: str) -> None:
    chosen = Router(llm=ScriptedModel([]), agents=[says(label, "Here."), says("art", "Blue.")])
    transfer = next(iter(chosen.function_map))
    chosen = Router(llm=ScriptedModel([calls((transfer, {}))]), agents=[says(label, "Here."), says("art", "Blue.")])
    result = chosen.ask("Look!")
    assert (result.text, result.path) == ("Here.", ("Router", label))
    assert isinstance(chosen.llm, ScriptedModel)
    (shown, _) = chosen.llm.requests[0].functions
    assert label in shown["description"]


def test_a_router_answers_from_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "menu.txt").write_text("Tea costs 3 euros.")
    files = [str(tmp_path / "menu.txt")]
    for options in ({}, {"rag_cfg": {"max_ref_token": 100}}, {"rag_cfg": {}}):
        own = router([answer("3 euros")], files=files, **options)
        assert own.ask("What does tea cost?").text == "3 euros"
        assert list(own.files) == ([] if options else files), "a file that is searched is not sent as well"
        assert isinstance(own.llm, ScriptedModel)
        sent = own.llm.requests[0].messages
        assert "Tea costs 3 euros" in "".join(message.get_text_content() for message in sent)
        assert ("passages from your documents" in sent[0].get_text_content()) == bool(options)
        assert "Only a part of the documents" not in sent[0].get_text_content()
    with pytest.raises(ConfigError, match="chunk_siz"):
        router([], rag_cfg={"chunk_siz": 3})


def test_a_router_that_names_nobody_is_told_and_chooses_again() -> None:
    result = router([calls(("transfer_to_music", {})), calls(("transfer_to_math", {}))]).ask("2 + 2?")
    assert result.text == "It is 4."
    results = [message.get_text_content() for message in result.messages if message.role == FUNCTION]
    assert results[0].startswith("Tool transfer_to_music does not exist")


def test_a_conversation_goes_on_at_the_router() -> None:
    chosen = router([calls(("transfer_to_art", {})), answer("Goodbye.")])
    first = chosen.ask("Which colour?")
    assert chosen.ask("Thanks", history=first.history).path == ("Router",)


def test_agents_may_stand_among_the_hand_offs_with_their_history() -> None:
    seen = says("math", "4")
    chosen = Router(llm=ScriptedModel([calls(("transfer_to_math", {}))]), handoffs=[Handoff(seen, "question")])
    assert chosen.ask("2 + 2?").text == "4"
    assert chosen.agent_names == ["math"]
    both = Router(llm=ScriptedModel([]), agents=[says("art", "Blue.")], handoffs=[seen, Handoff(says("law", "No."))])
    assert both.agent_names == ["art", "math", "law"]
    with pytest.raises(ConfigError, match="two agents in a router are named 'art'"):
        Router(llm=ScriptedModel([]), agents=[says("art")], handoffs=[Handoff(says("art"))])
    assert [message.role for message in seen.llm.requests[0].messages] == ["user"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ([], "a router needs at least one agent"),
        ([says("a"), says("a")], "two agents in a router are named 'a'"),
        ([BasicAgent(name="a")], "must have a name and a description"),
        ([BasicAgent()], "needs a name"),
    ],
)
def test_what_is_no_router_is_refused(agents: list[Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Router(llm=ScriptedModel([]), agents=agents)


def test_a_router_is_a_file_with_hand_offs() -> None:
    config = {"agent": "router", "handoffs": [{"agent": "basic", "name": "art", "description": "Paints."}]}
    model = ScriptedModel([calls(("transfer_to_art", {})), answer("Blue.")])
    assert create_agent(config, llm=model).ask("Which colour?").path == ("Router", "art")


# --- simulated dialogues ---


def human(*texts: str, **options: Any) -> HumanSimulator:
    return HumanSimulator(llm=ScriptedModel([answer(text) for text in texts]), **options)


def test_a_simulated_user_asks_one_of_its_questions_the_same_each_time() -> None:
    texts = ['Here: ["a?", "b?", "c?"]'] * 2
    simulated = human(*texts)
    first = simulated.ask("Hello, I am your assistant.").text
    assert first in ("a?", "b?", "c?")
    assert simulated.ask("Hello, I am your assistant.").text == first
    assert isinstance(simulated.llm, ScriptedModel)
    assert "You play a user" in simulated.llm.requests[0].messages[0].get_text_content()
    with_words = human('["a?"]', system_message="You are ten years old.")
    with_words.ask("Hello")
    system = with_words.llm.requests[0].messages[0].get_text_content()  # type: ignore[union-attr]
    assert system.startswith("You are ten years old.")
    assert "You play a user" in system


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", "[1, null]", '{"a": 1}', '["", " "]'])
def test_without_a_question_the_dialogue_stops(text: str) -> None:
    stream = human(text).stream("Hello")
    events = list(stream)
    assert stream.result.text == "<|STOP|>"
    notes = [event.data["note"] for event in events if isinstance(event, PluginEvent)]
    assert notes == ([] if text.startswith("[") else ["the model's response contains no JSON list"])


def test_a_dialogue_goes_to_and_fro_until_the_user_has_enough() -> None:
    user, assistant = human('["And 3?"]', "[]"), says("helper", "2", "3")
    result = DialogueSimulator(user, assistant).ask("How much is 1 + 1?")
    assert [(message.role, message.content) for message in result.messages] == [
        ("assistant", "2"),
        ("user", "And 3?"),
        ("assistant", "3"),
        ("user", "<|STOP|>"),
    ]
    assert isinstance(user.llm, ScriptedModel)
    seen = user.llm.requests[1].messages
    assert [(message.role, message.content) for message in seen[1:]] == [
        ("assistant", "How much is 1 + 1?"),
        ("user", "2"),
        ("assistant", "And 3?"),
        ("user", "3"),
    ]
    assert result.usage.total_tokens == 8
    assert set(result.usage_by_agent) == {"user", "helper"}


def test_a_dialogue_ends_after_its_rounds_and_at_limits() -> None:
    def dialogue(**options: Any) -> DialogueSimulator:
        return DialogueSimulator(human(*['["more?"]'] * 9), says("helper", *"123456789"), max_round=2, **options)

    assert [message.content for message in dialogue().ask("Hi").messages] == ["1", "more?", "2", "more?"]
    limited = dialogue(limits={"tokens": 3}).ask("Hi")
    assert limited.stop_reason == "token_limit"
    assert limited.path == ("DialogueSimulator", "helper", "user"), "no further speech begins"
    for options in ({}, {"user_agent": says("a")}, {"user_agent": says("a"), "assistant_agent": says("a")}):
        with pytest.raises(ConfigError):
            DialogueSimulator(**options)
    with pytest.raises(ConfigError, match="max_round"):
        DialogueSimulator(says("a"), says("b"), 0)


def test_a_person_alone_is_waited_for() -> None:
    result = UserAgent(name="Carla").ask("Hello")
    assert (result.stop_reason, result.messages) == ("input_needed", ())


# --- designs ---

DESIGN = (
    '```json\n{"background": "At sea.", "agents": [{"name": "captain", "description": "Leads.", "instructions": '
    '"You lead."}, {"name": ""}, 5], "answer": "A ship."}\n```'
)


def test_a_design_becomes_a_group_chat() -> None:
    result = GroupChatCreator(llm=ScriptedModel([answer(DESIGN)])).ask("A ship, please")
    assert [message.name for message in result.messages] == ["background", "role_config", None]
    config = group_config(result.history)
    assert config == {
        "background": "At sea.",
        "agents": [{"name": "captain", "description": "Leads.", "instructions": "You lead."}],
    }
    model = ScriptedModel([answer("Ahoy. [STOP]")])
    assert GroupChat(config, "round_robin", model).ask("Hello").text == "Ahoy. [STOP]"
    later = [*result.history, Message("assistant", "Space.", name="background")]
    assert group_config(later) == {"background": "Space.", "agents": []}


@pytest.mark.parametrize("text", ["Sorry.", "[]", '{"agents": "many"}', '{"answer": "hm"}'])
def test_an_answer_that_is_no_design_says_so(text: str) -> None:
    stream = GroupChatCreator(llm=ScriptedModel([answer(text)])).stream("A ship, please")
    assert [event.data["note"] for event in stream if isinstance(event, PluginEvent)]
    assert group_config(stream.result.history)["agents"] == []


def test_members_with_tools_use_them_in_their_speech() -> None:
    def double(number: int) -> int:
        """Double."""
        return 2 * number

    member = FnCallAgent([double], ScriptedModel([calls(("double", {"number": 4})), answer("8")]), name="al")
    assert GroupChat([member], max_round=1).ask("Double 4").text == "8"
