"""Contract tests for agent kinds."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from jackfield import ChatRequest, sync
from jackfield.agents import Agent, CancelToken, RunView
from jackfield.errors import ConfigError, JackfieldError, ModelRequestError, UnsupportedInputError
from jackfield.events import (
    ApprovalNeeded,
    ModelEvent,
    PreparationProgress,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from jackfield.messages import FUNCTION, ContentItem, FunctionCall, Message, Usage
from jackfield.processors import closing
from jackfield.testing import answer, calls
from jackfield.tools import DENIED_TEXT, ToolContext, ToolEntry, tool, toolset
from jackfield_testkit.installed import forbid_default_host, plain_host
from jackfield_testkit.loopwatch import check_loop
from jackfield_testkit.slow_files import slow_file
from jackfield_testkit.suites.agent_parts import (
    QUESTION,
    AgentTests,
    Meeting,
    NeverReady,
    Waiting,
    agents_in,
    assert_calls_are_answered,
    assert_numbered,
    dumped,
    end_of,
    fail,
    forever,
    gathered,
    gathered_into,
    left_after,
    of_kind,
    read_by_the_model,
    repeat,
    requests_of,
    results_of,
    turns_of,
    within,
)
from jackfield_testkit.suites.agent_trees import AgentTreeTests, AnswerTreeTests


class AnswerSuite(AnswerTreeTests):
    """Contract of agent kinds that answer in their model's words, including kinds that call no tools.

    ```python
    class TestAcme(AnswerSuite):
        component = "jackfield-acme/acme"
    ```

    Attributes:
        component: The agent kind to test, as `distribution/name`, or only the name if it is unique.
        config: Options for the kind, other than its model and tools.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    def test_the_event_loop_is_never_held_up(self) -> None:
        self._events(self.make_agent([answer("Twice.")]))  # a first run, whose imports do not count

        def run() -> Coroutine[Any, Any, object]:
            return gathered(self.make_agent(lambda _: answer("Twice.")).astream([QUESTION]))

        check_loop(run)

    def test_agents_that_it_makes_find_the_plugins_that_it_finds(self) -> None:
        agent = self.make_agent([])
        passed_in = {id(one) for one in agents_in(self.config)}
        others = [one for one in agents_in(vars(agent)) if id(one) not in passed_in]
        assert [type(one).__name__ for one in others if one.host is not agent.host] == [], (
            "pass host=self.host to the agents that the agent creates"
        )

    def test_it_takes_plugins_and_keys_from_its_host(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if type(self).make_agent is not AgentTests.make_agent:
            pytest.skip("the agent is created by hand, perhaps with parts that have no host")
        agent = self.make_agent([answer("Twice.")])
        forbid_default_host(monkeypatch)
        assert end_of(self._events(agent)).messages[-1].content == "Twice."

    def test_it_answers_and_comes_to_an_end(self) -> None:
        events = self._events(self.make_agent([answer("Twice.")]))
        finished = end_of(events)
        assert finished.stop_reason == "finished"
        assert finished.messages[-1].content == "Twice."
        assert finished.messages[-1].role == "assistant"

    def test_an_empty_reply_is_no_answer_and_no_endless_run(self) -> None:
        for reply in (answer(""), answer("", reasoning="Hm.")):
            finished = end_of(self._events(self.make_agent(lambda _, reply=reply: reply)))  # type: ignore[misc]
            assert finished.stop_reason == "empty_reply"
            assert [(message.role, message.content) for message in finished.messages] == [("assistant", "")]

    def test_an_error_of_the_model_is_raised_and_is_the_last_event(self) -> None:
        error = ModelRequestError("refused", backend="scripted")
        agent = self.make_agent(lambda _: [*answer("Half")[:1], error])
        seen: list[RunEvent] = []
        with pytest.raises(ModelRequestError, match="refused"):
            sync.run(gathered_into(seen, agent.astream([QUESTION])))
        assert isinstance(seen[-1].event, RunFailed)
        assert_numbered(seen)

    def test_model_options_of_a_run_reach_the_model_in_that_run(self) -> None:
        agent = self.make_agent(lambda _: answer("Yes."))
        agent.ask([QUESTION], config={"temperature": 0.25})
        asked = len(requests_of(agent))
        agent.ask([QUESTION])
        temperatures = [request.config.temperature for request in requests_of(agent)]
        assert set(temperatures[:asked]) == {0.25}
        assert 0.25 not in temperatures[asked:]

    def test_its_system_message_and_the_callers_both_reach_the_model(self) -> None:
        agent = self.make_agent([answer("Yes.")], system_message="You echo.")
        agent.run_nonstream([Message("system", "Be brief."), QUESTION])
        sent = requests_of(agent)[-1].messages
        assert [message.role for message in sent].count("system") == 1
        assert sent[0].role == "system"
        assert "You echo." in sent[0].get_text_content()
        assert "Be brief." in sent[0].get_text_content()

    def test_the_language_of_the_question_is_that_of_what_it_adds(self) -> None:
        for text, lang in (("What is said twice?", "en"), ("什么说了两遍?", "zh")):
            agent = self.make_agent([answer("Yes.")])
            agent.run_nonstream([Message("user", text)])
            assert {request.lang for request in requests_of(agent)} == {lang}
            agent = self.make_agent([answer("Yes.")])
            agent.run_nonstream([Message("user", text)], lang="zh")
            assert {request.lang for request in requests_of(agent)} == {"zh"}

    def test_a_cancel_ends_it_while_a_document_is_read(self, tmp_path: Path) -> None:
        cancel = CancelToken()
        with slow_file(tmp_path, plain_host()) as slow:
            agent = self.make_agent(lambda _: answer("Read."))
            question = Message(
                "user", [ContentItem(text=QUESTION.get_text_content()), ContentItem(file=str(slow.path))]
            )

            async def run() -> list[RunEvent]:
                reading = asyncio.create_task(gathered(agent.astream([question], cancel=cancel)))
                while not (slow.begun.is_set() or reading.done()):  # noqa: ASYNC110 - another thread sets it
                    await asyncio.sleep(0.01)
                cancel.cancel()
                return await reading

            try:
                finished = end_of(sync.run(within(self.patience_s, run())))
            except UnsupportedInputError:  # no parser supports such files
                return
            if slow.begun.is_set():  # otherwise it reads no documents
                assert finished.stop_reason == "cancelled", "read documents with `run.prepare`"
                assert not requests_of(agent)

    @pytest.mark.parametrize("way", ["files", "message"])
    @pytest.mark.parametrize("name", ["readable.txt", "unreadable.xyz"])
    def test_a_file_that_is_handed_over_is_used_or_named(self, tmp_path: Path, way: str, name: str) -> None:
        """The model gets the text, or the file's name and a tool to open it, or an error or warning names the file."""
        text = "What is said twice: marmalade."
        path = tmp_path / name
        path.write_bytes(text.encode() if name == "readable.txt" else bytes(range(256)))
        options: dict[str, Any] = {"files": [str(path)]} if way == "files" else {}
        question = Message("user", [ContentItem(text="What is said twice?"), ContentItem(file=str(path))])
        agent = self.make_agent(lambda _: answer("Marmalade."), **options)
        warnings: tuple[str, ...] = ()
        try:
            warnings = agent.ask([QUESTION if way == "files" else question]).warnings
        except JackfieldError as error:
            warnings = (str(error),)
        read = "\n".join(read_by_the_model(agent, number) for number in range(len(requests_of(agent))))
        offered = any(one.functions for one in requests_of(agent)) and name in read
        is_named = any(name in warning for warning in warnings)
        assert text in read or offered or (is_named and name == "unreadable.xyz"), (
            f"{name} is silently dropped: its text does not reach the model, and no error or warning names it"
        )

    @pytest.mark.parametrize("way", ["files", "message"])
    def test_a_missing_file_is_an_error(self, tmp_path: Path, way: str) -> None:
        gone = str(tmp_path / "gone.txt")
        options: dict[str, Any] = {"files": [gone]} if way == "files" else {}
        question = Message("user", [ContentItem(text="What is said twice?"), ContentItem(file=gone)])
        agent = self.make_agent(lambda _: answer("Marmalade."), **options)
        with pytest.raises(JackfieldError, match=r"gone\.txt"):
            agent.ask([QUESTION if way == "files" else question])
        assert requests_of(agent) == []

    def test_a_run_that_is_left_at_any_point_has_closed_all_that_it_iterates(self) -> None:
        count = len(self._events(self.make_agent([answer("Yes.")])))
        for number in range(1, count):
            leaving = left_after(number, self.make_agent([answer("Yes.")]).astream([QUESTION]))
            still_open = sync.run(within(self.patience_s, leaving))
            assert not still_open, "close streams where they are iterated: `async with closing(...) as events`"


class AgentSuite(AgentTreeTests, AnswerSuite):
    """Contract of agent kinds whose model may call tools.

    ```python
    class TestAcme(AgentSuite):
        component = "jackfield-acme/acme"
    ```

    The model follows a script, and the tools are `repeat`, `fail` and `wait`. The attributes are those of
    `AnswerSuite`.
    """

    # --- its end ---

    def test_a_limit_of_turns_ends_it_and_says_so(self) -> None:
        agent = self.make_agent(forever, [repeat()], limits={"turns": 3})
        finished = end_of(self._events(agent))
        assert finished.stop_reason == "turn_limit"
        assert turns_of(self._events(agent)) == 3
        assert_calls_are_answered(finished.messages)

    def test_without_any_wish_it_ends_all_the_same(self) -> None:
        finished = end_of(self._events(self.make_agent(forever, [repeat()])))
        assert finished.stop_reason == "turn_limit"

    def test_other_limits_end_it_and_say_so(self) -> None:
        for limits, reason in (({"tool_calls": 2}, "tool_call_limit"), ({"tokens": 3}, "token_limit")):
            agent = self.make_agent(forever, [repeat()], limits=limits)
            assert end_of(self._events(agent)).stop_reason == reason

    # --- tools ---

    def test_a_call_is_made_and_the_model_reads_the_result(self) -> None:
        agent = self.make_agent([calls(("repeat", {"text": "ha"})), answer("Done.")], [repeat()])
        finished = end_of(self._events(agent))
        assert ("repeat", "ha ha") in [(message.name, message.content) for message in finished.messages]
        assert results_of(finished.messages) == ["ha ha"]
        assert finished.messages[-1].content == "Done."
        assert "ha ha" in read_by_the_model(agent, -1)

    def test_a_tool_that_does_not_exist_is_told_to_the_model(self) -> None:
        agent = self.make_agent([calls(("no_such_tool", {})), answer("I do without.")], [repeat()])
        finished = end_of(self._events(agent))
        assert finished.stop_reason == "finished"
        assert "no_such_tool" in read_by_the_model(agent, -1)
        assert_calls_are_answered(finished.messages)

    def test_a_tool_that_fails_is_told_to_the_model_and_ends_nothing(self) -> None:
        wanted: list[dict[str, object]] = [{"how": "as tools do"}, {"how": "badly"}, {"nonsense": 1}]
        for arguments in wanted:
            agent = self.make_agent([calls(("fail", arguments)), answer("I see.")], [fail()])
            events = self._events(agent)
            assert end_of(events).stop_reason == "finished"
            assert [done.error for done in of_kind(events, ToolFinished)] != [""]
            told = read_by_the_model(agent, -1)
            assert "Traceback" not in told
            assert __file__ not in told

    def test_calls_of_one_turn_run_beside_each_other_and_are_answered_in_order(self) -> None:
        meeting = Meeting(4)
        wanted: list[tuple[str, dict[str, object]]] = [("meet", {"text": str(number)}) for number in range(4)]
        agent = self.make_agent([calls(*wanted), answer("Done.")], [meeting.tool()])
        finished = end_of(self._events(agent))
        assert results_of(finished.messages) == ["met 0", "met 1", "met 2", "met 3"], (
            "the calls of a turn do not run concurrently"
        )
        assert_calls_are_answered(finished.messages)

    # --- its events ---

    def test_events_are_numbered_and_the_last_says_how_it_ended(self) -> None:
        script = [calls(("repeat", {"text": "ha"}), ("repeat", {"text": "ho"})), answer("Done.")]
        events = self._events(self.make_agent(script, [repeat()]))
        assert_numbered(events)
        assert len({event.run_id for event in events}) == 1
        assert isinstance(events[0].event, RunStarted)
        assert of_kind(events, RunFinished) == [events[-1].event]

    def test_turns_and_calls_begin_before_they_end(self) -> None:
        script = [calls(("repeat", {"text": "ha"}), ("repeat", {"text": "ho"})), answer("Done.")]
        events = self._events(self.make_agent(script, [repeat()]))
        turns = [event.event for event in events if isinstance(event.event, TurnStarted | TurnFinished)]
        for started, finished in zip(turns[::2], turns[1::2], strict=True):  # one after the other
            assert (type(started), type(finished)) == (TurnStarted, TurnFinished)
            assert started.turn == finished.turn
        places = {(type(event.event), getattr(event.event, "call_id", "")): event.number for event in events}
        begun = {call.call_id for call in of_kind(events, ToolStarted)}
        ended = [call.call_id for call in of_kind(events, ToolFinished)]
        assert sorted(begun) == sorted(ended)
        assert len(begun) == 2
        assert all(places[ToolStarted, call_id] < places[ToolFinished, call_id] for call_id in begun)

    def test_what_it_cost_is_summed_over_its_turns(self) -> None:
        first: list[ModelEvent] = [e for e in calls(("repeat", {"text": "ha"})) if not isinstance(e, UsageReported)]
        first.insert(0, UsageReported(Usage(prompt_tokens=10, completion_tokens=1)))
        agent = self.make_agent(
            [first, answer("Done.", usage=Usage(prompt_tokens=20, completion_tokens=2))], [repeat()]
        )
        assert end_of(self._events(agent)).usage.total_tokens == 33

    # --- one run, started in several ways ---

    def test_all_ways_to_run_give_the_same(self) -> None:
        def fresh() -> Agent:
            script = [calls(("repeat", {"text": "ha"}), text="Let me see. "), answer("Done.", reasoning="Hm.")]
            return self.make_agent(script, [repeat()])

        expected = fresh().run_nonstream([QUESTION])
        assert len(expected) >= 4
        assert list(fresh().run([QUESTION]))[-1] == expected
        assert sync.run(fresh().arun([QUESTION])) == expected
        view = RunView(fresh().name)
        for event in self._events(fresh()):
            view.feed(event)
        assert view.messages() == expected
        assert end_of(self._events(fresh())).messages == tuple(expected)
        dicts = fresh().run_nonstream([QUESTION.model_dump()])
        assert [Message(**entry) for entry in dicts] == expected
        result = fresh().ask(QUESTION.get_text_content())
        assert (list(result.messages), result.history[0], result.text) == (expected, QUESTION, "Done.")
        stream = fresh().stream(QUESTION)
        assert [type(event) for event in stream] == [type(step.event) for step in self._events(fresh())]
        assert list(stream.result.messages) == expected

    def test_an_answer_that_does_not_fit_is_asked_for_again_and_counts_against_the_limits(self) -> None:
        seen: list[ChatRequest] = []

        def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:
            seen.append(request)
            return answer('{"count": 2}' if len(seen) > 1 else '{"count": "twice"}')

        wanted = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
        result = self.make_agent(script).ask(QUESTION, output=wanted)
        assert result.output == {"count": 2}
        assert len(seen) >= 2
        said = [message.get_text_content() for message in seen[-1].messages]
        assert '{"count": "twice"}' in said, "when asked again, the model must see its earlier response"
        seen.clear()
        stopped = self.make_agent(script, limits={"turns": 1}).ask(QUESTION, output=wanted)
        assert (stopped.stop_reason, len(seen)) == ("turn_limit", 1)

    def test_what_a_program_passes_for_its_tools_reaches_them(self) -> None:
        @tool(name="who", description="Says who asks.")
        def who(context: ToolContext[str]) -> str:
            return f"It is {context.deps}."

        result = self.make_agent([calls(("who", {})), answer("Done.")], [who]).ask(QUESTION, deps="Anna")
        assert "It is Anna." in [message.content for message in result.messages]

    def test_tools_that_are_made_for_the_run_are_shown_and_called(self) -> None:
        @toolset
        def of_user(context: ToolContext[str]) -> list[ToolEntry]:
            def who_asks() -> str:
                """Says who asks."""
                return f"It is {context.deps}."

            return [who_asks]

        agent = self.make_agent([calls(("who_asks", {})), answer("Done.")], [of_user])
        result = agent.ask(QUESTION, deps="Anna")
        assert "It is Anna." in [message.content for message in result.messages], "forward `toolbox=run.toolbox`"
        first = requests_of(agent)[0]
        # A call format may have moved the tools into the messages.
        shown = [*(function["name"] for function in first.functions), *(m.get_text_content() for m in first.messages)]
        assert any("who_asks" in text for text in shown)

    def test_lists_grow_and_those_given_out_never_change(self) -> None:
        seen = threading.Event()

        @tool(name="look_up", description="Waits until somebody has seen the beginning of the answer.")
        def look_up() -> str:
            return "seen" if seen.wait(self.patience_s) else "not seen"

        agent = self.make_agent([calls(("look_up", {}), text="Let me see. "), answer("Done.")], [look_up])
        given: list[tuple[list[Message], list[Any]]] = []
        for messages in agent.run([QUESTION]):
            given.append((messages, dumped(messages)))
            seen.set()
        assert "seen" in [message.content for message in given[-1][0]], (
            "no messages are shown until the run has finished"
        )
        assert all(dumped(messages) == before for messages, before in given)
        lengths = [len(messages) for messages, _ in given]
        assert lengths == sorted(lengths)

    def test_the_messages_it_is_given_are_not_changed(self) -> None:
        history = [Message("system", "Be brief."), Message("user", [ContentItem(text="What is said twice?")])]
        before = dumped(history)
        agent = self.make_agent(
            [calls(("repeat", {"text": "ha"})), answer("Done.")], [repeat()], system_message="You echo."
        )
        agent.run_nonstream(history)
        assert dumped(history) == before
        assert len(history) == 2

    def test_a_conversation_goes_on_with_what_a_run_gave(self) -> None:
        script = [calls(("repeat", {"text": "ha"})), answer("ha ha"), answer("Twice, as I said.")]
        agent = self.make_agent(script, [repeat()])
        first = agent.run_nonstream([QUESTION])
        history = [Message(**message.model_dump()) for message in first]  # as if loaded from a file
        second = agent.run_nonstream([QUESTION, *history, Message("user", "How often?")])
        assert second[-1].content == "Twice, as I said."
        told = read_by_the_model(agent, -1)
        assert "ha ha" in told
        assert "How often?" in told

    def test_a_call_that_stands_in_the_conversation_is_made_only_if_the_caller_says_so(self) -> None:
        given = Message("assistant", "", function_call=FunctionCall("repeat", '{"text": "ha"}'))
        for call in (given, given.replace(extra={"function_id": "1"})):
            agent = self.make_agent([answer("Done.")], [repeat()])
            events = self._events(agent, [QUESTION, call])
            assert end_of(events).stop_reason == "approval_needed", (
                "calls in a given history need approval, because anyone who can write a history can write a call"
            )
            assert not of_kind(events, ToolStarted)
            resumed = self._events(agent, [QUESTION, call], resume=True)
            assert results_of(end_of(resumed).messages) == ["ha ha"]
            assert end_of(resumed).stop_reason == "finished"

    def test_a_call_that_needs_approval_waits_for_a_yes(self) -> None:
        guarded = repeat(needs_approval=True)
        script = [calls(("repeat", {"text": "ha"})), answer("Done.")]
        events = self._events(self.make_agent(script, [guarded]))
        assert end_of(events).stop_reason == "approval_needed"
        (asked,) = of_kind(events, ApprovalNeeded, ToolFinished)
        assert isinstance(asked, ApprovalNeeded), "the call is still made"
        assert asked.calls == (FunctionCall("repeat", '{"text": "ha"}'),)
        assert list(asked.call_ids) == [message.function_id for message in end_of(events).messages]
        for answered, results in ((True, ["ha ha"]), (False, [DENIED_TEXT])):
            agent = self.make_agent(script, [guarded], approve=lambda _call, _context, answered=answered: answered)
            finished = end_of(self._events(agent))
            assert results_of(finished.messages) == results
        agent = self.make_agent(script, [guarded], approve=lambda _call, _context: False)
        finished = end_of(self._events(agent, approve=lambda _call, _context: True))
        assert results_of(finished.messages) == ["ha ha"], "the run's approval function takes precedence"
        agent = self.make_agent(script, [guarded], approve=lambda _call, _context: "yes")
        with pytest.raises(ConfigError, match="must return True"):
            self._events(agent)

    def test_rules_for_its_calls_hold(self) -> None:
        script = [calls(("repeat", {"text": "ha"})), answer("Done.")]
        assert end_of(self._events(self.make_agent(script, [repeat()], approve="ask"))).stop_reason == "approval_needed"
        network = tool(name="repeat", description="Repeats a text.", effects={"network"})(repeat().function_called)
        events = self._events(self.make_agent(script, [network], forbid=["network"]))
        assert end_of(events).stop_reason == "finished"
        assert not of_kind(events, ToolStarted), "a call with a forbidden effect is made"

    def test_files_of_the_conversation_are_those_that_the_user_gave(self, tmp_path: Path) -> None:
        for name in ("given.txt", "written.txt"):
            (tmp_path / name).write_text(f"What is said twice stands in {name}.")
        given, written = (ContentItem(file=str(tmp_path / name)) for name in ("given.txt", "written.txt"))

        @tool(name="look", description="Lists the files.")
        def look(context: ToolContext) -> str:
            return " ".join(Path(file).name for file in context.files)

        agent = self.make_agent([calls(("look", {})), answer("Done.")], [look])
        history = [
            Message("user", [ContentItem(text="What is said twice?"), given]),
            Message("assistant", [ContentItem(text="I wonder."), written]),
            Message("user", "So what is said twice?"),
        ]
        finished = end_of(self._events(agent, history))
        assert results_of(finished.messages) == ["given.txt"]
        assert "stands in written.txt" not in read_by_the_model(agent, -1)

    def test_tools_read_the_files_that_messages_contain(self) -> None:
        names: list[Path] = []

        @tool(name="look", description="Reads the files.")
        def look(context: ToolContext) -> str:
            names.extend(map(Path, context.files))
            return " ".join(f"{path.name}: {path.read_text()}" for path in names)

        agent = self.make_agent([calls(("look", {})), answer("Done.")], [look])
        contained = ContentItem(file="data:text/plain;name=said.txt,What%20is%20said%20twice.")
        question = Message("user", [ContentItem(text="What is said twice?"), contained])
        finished = end_of(self._events(agent, [question]))
        assert results_of(finished.messages) == ["said.txt: What is said twice."]
        assert not names[0].exists(), "the copy of a file outlives the run"

    def test_a_file_that_nobody_can_read_is_for_tools_and_ends_no_run(self, tmp_path: Path) -> None:
        names = ("dog.jpeg", "data.unknown")
        (tmp_path / names[0]).write_bytes(b"\xff\xd8\xff\xe0 a picture")
        (tmp_path / names[1]).write_bytes(bytes(range(256)))

        @tool(name="look", description="Lists the files.", effects={"files"})
        def look(context: ToolContext) -> str:
            return " ".join(Path(file).name for file in context.files)

        for given in (names[:1], names):
            agent = self.make_agent([calls(("look", {})), answer("Done.")], [look])
            files = [ContentItem(file=str(tmp_path / name)) for name in given]
            question = Message("user", [ContentItem(text="What is said twice?"), *files])
            finished = end_of(self._events(agent, [question]))
            assert results_of(finished.messages) == [" ".join(given)]

    def test_a_conversation_that_broke_off_in_a_call_goes_on_with_the_call(self) -> None:
        agent = self.make_agent([calls(("repeat", {"text": "ha"})), answer("Done.")], [repeat()])
        broken_off = [message for message in agent.run_nonstream([QUESTION]) if message.role != FUNCTION][:-1]
        again = self.make_agent([answer("Done.")], [repeat()])
        response = again.run_nonstream([QUESTION, *broken_off], resume=True)
        assert results_of(response) == ["ha ha"]
        assert response[-1].content == "Done."

    # --- stopping, and several runs ---

    def test_a_cancelled_run_ends_with_a_history_that_is_valid(self) -> None:
        cancel = CancelToken()
        script = [calls(("wait", {}), ("repeat", {"text": "ha"})), answer("Too late.")]
        agent = self.make_agent(script, [Waiting(cancel).tool(), repeat()])
        events = sync.run(within(self.patience_s, gathered(agent.astream([QUESTION], cancel=cancel))))
        finished = end_of(events)
        assert finished.stop_reason == "cancelled"
        assert_calls_are_answered(finished.messages)
        assert_numbered(events)
        again = self.make_agent([answer("Here again.")], [repeat()])
        response = again.run_nonstream([QUESTION, *finished.messages, Message("user", "Are you there?")])
        assert response[-1].content == "Here again."

    def test_a_cancelled_run_asks_its_model_nothing_more(self) -> None:
        script = [calls(("repeat", {"text": "ha"})), answer("Done.")]

        async def cancelled_after(number: int) -> bool:
            """Cancel a run at the given event. Return False if the run has fewer events."""
            cancel, agent, asked = CancelToken(), self.make_agent(script, [repeat()]), -1
            async with closing(agent.astream([QUESTION], cancel=cancel)) as events:
                async for event in events:
                    if event.number == number and event.depth == 0:
                        cancel.cancel()
                        asked = len(requests_of(agent))
            assert asked in (-1, len(requests_of(agent))), "the model must not be called after the run is cancelled"
            return asked >= 0

        async def cancelled_anywhere() -> None:
            number = 1
            while await cancelled_after(number):
                number += 1

        sync.run(within(self.patience_s, cancelled_anywhere()))

    def test_a_cancel_ends_it_before_its_first_turn(self) -> None:
        cancel = CancelToken()
        tools = NeverReady(cancel)
        agent = self.make_agent([answer("Too late.")], [tools.toolset()])
        events = self._events(agent, cancel=cancel)
        assert end_of(events).stop_reason == "cancelled", "use `run.prepare` for work before a turn"
        assert not turns_of(events)
        assert tools.ended, "the preparation continues in the background"

    def test_the_time_limit_ends_it_before_its_first_turn_and_its_progress_is_seen(self) -> None:
        tools = NeverReady()
        agent = self.make_agent([answer("Too late.")], [tools.toolset()], limits={"seconds": 0.1})
        events = self._events(agent)
        if not of_kind(events, PreparationProgress):  # a busy machine may not get that far in a short time
            agent = self.make_agent([answer("Too late.")], [tools.toolset()], limits={"seconds": 2})
            events = self._events(agent)
        assert of_kind(events, PreparationProgress), "forward the progress of `run.prepare`"
        assert end_of(events).stop_reason == "time_limit", "use `run.prepare` for work before a turn"
        assert not turns_of(events)
        assert tools.ended, "the preparation continues in the background"

    def test_a_call_that_was_stopped_is_not_said_to_be_undone(self) -> None:
        cancel = CancelToken()
        agent = self.make_agent([calls(("wait", {})), answer("Too late.")], [Waiting(cancel).tool()])
        finished = end_of(sync.run(within(self.patience_s, gathered(agent.astream([QUESTION], cancel=cancel)))))
        told = " ".join(map(str, results_of(finished.messages)))
        assert "may have been done" in told, "the call had started: the result must say that it may have been done"

    def test_a_run_that_is_left_early_leaves_nothing_behind(self) -> None:
        waiting = Waiting()
        agent = self.make_agent([calls(("wait", {})), answer("Second.")], [waiting.tool()])

        async def leave() -> None:
            async with closing(agent.astream([QUESTION])) as events:
                async for event in events:
                    if isinstance(event.event, ToolStarted):
                        await waiting.began.wait()
                        return

        sync.run(within(self.patience_s, leave()))
        assert waiting.ended, "the call continues in the background"
        assert agent.run_nonstream([QUESTION])[-1].content == "Second."

    def test_runs_at_the_same_time_do_not_mix(self) -> None:
        def script(request: ChatRequest) -> Sequence[ModelEvent]:
            word = next(m for m in request.messages if m.role == "user").get_text_content().split()[-1]
            result = request.messages[-1].get_text_content()  # a call format may have rewritten it
            if f"{word} {word}" in result:
                return answer(f"It is {word} {word}")
            return calls(("repeat", {"text": word}))

        agent = self.make_agent(script, [repeat()])
        words = [f"word{number}" for number in range(8)]

        async def all_at_once() -> list[list[Any]]:
            return await asyncio.gather(*(agent.arun([Message("user", f"Repeat {word}")]) for word in words))

        responses = sync.run(within(self.patience_s, all_at_once()))
        assert [response[-1].content for response in responses] == [f"It is {word} {word}" for word in words]
