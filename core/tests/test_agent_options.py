"""Options of agents and of their runs: each has its effect, and a wrong one is named before a model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield import Agent, BasicAgent, FnCallAgent, Message, tool
from jackfield._fitting import check_count, check_seconds, fits
from jackfield.agents import CancelToken, Event, Run
from jackfield.config import Limits
from jackfield.errors import BrokenPluginError, ConfigError, MissingFileError
from jackfield.events import RunEvent, RunFinished
from jackfield.messages import ContentItem, FunctionCall
from jackfield.runs import RunResources
from jackfield.sync import iterate
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import Denial, ToolContext, Workspace
from jackfield_testkit.records import MemoryStore


def model() -> ScriptedModel:
    return ScriptedModel([answer("Hello.")])


class Keeps(FnCallAgent):
    """Keeps its runs."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.runs: list[Run] = []

    def events(self, run: Run) -> AsyncIterator[Event]:
        self.runs.append(run)
        return super().events(run)


# --- of an agent ---

AGENT_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "system_message": ({"system_message": 5}, "system_message must be a string, got int"),
    "name": ({"name": b"x"}, "name must be a string, got bytes"),
    "description": ({"description": 5}, "description must be a string, got int"),
    "suggestions": ({"suggestions": [5]}, "each of suggestions must be a string, got int"),
    "adjustable": (
        {"adjustable": ["colour"]},
        "adjustable: unknown option 'colour'; use temperature, top_p, max_tokens, seed",
    ),
    "models": ({"models": ["gpt"]}, "models: 'gpt' has no backend; add one, as in openai:gpt"),
    "models, no text": ({"models": [5]}, "each of models must be a string such as 'backend:model', got int"),
    "models without llm": (
        {"llm": None, "models": ["a:b"]},
        "`models` lists alternatives to `llm`: set `llm` as well, or omit `models`",
    ),
    "files": ({"files": [5]}, "each of files must be a path, got int"),
    "workspace": ({"workspace": 5}, "workspace must be a folder or a Workspace, got int"),
    "tool_timeout_s": ({"tool_timeout_s": 0}, "tool_timeout_s must be a number of seconds above 0, got 0"),
    "tool_timeout_s, no number": ({"tool_timeout_s": "1"}, "tool_timeout_s must be a number of seconds, got str"),
    "tool_timeout_s, no number at all": (
        {"tool_timeout_s": float("nan")},
        "tool_timeout_s must be a number of seconds above 0, got nan",
    ),
    "host": ({"host": 5}, "host must be a PluginHost or None (for the installed plugins), got int"),
}


@pytest.mark.parametrize("case", AGENT_FAULTS)
def test_a_wrong_option_of_an_agent_is_named(case: str) -> None:
    options, text = AGENT_FAULTS[case]
    with pytest.raises(ConfigError) as caught:
        FnCallAgent(**{"llm": model(), **options})
    assert str(caught.value) == text


def test_the_options_of_an_agent_are_where_people_and_code_look_for_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    agent = FnCallAgent(
        llm=model(),
        name="clerk",
        suggestions=["What now?"],
        adjustable=["seed"],
        models=["a:b"],
        files=[tmp_path / "a.txt"],
        workspace=tmp_path / "own",
        tool_timeout_s=7,
        approve={"ask": "ask", "by": lambda *_: True},
    )
    assert (agent.description, agent.system_message, agent.kind) == ("", "", "")
    assert (agent.suggestions, agent.adjustable, agent.models) == (("What now?",), ("seed",), ("a:b",))
    assert agent.files == (str(tmp_path / "a.txt"),)
    assert agent.workspace.root == tmp_path / "own"
    assert (agent.executor.timeout_s, agent.executor.approve, agent.executor.rules.name) == (7, agent.approve, "ask")
    assert agent.approve is not None
    workspace = Workspace(str(tmp_path))
    assert FnCallAgent(llm=model(), workspace=workspace).workspace is workspace
    assert repr(FnCallAgent([name_it], model(), name="clerk")).startswith("<FnCallAgent clerk llm=")


@tool(name="name_it", description="Names it.")
def name_it(context: ToolContext[Any]) -> str:
    return f"{context.agent}"


class Plain(Agent):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("finished", (Message("assistant", "Done."),), run.start.spent.usage)


class Claims(Plain):
    resumable = True
    answers_by_tool = True
    passes_events = True

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("finished", (), run.start.spent.usage)


class Inherits(Claims):
    """Defines no events, so the claims of the class that does hold."""


class Overrides(Claims):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("finished", (), run.start.spent.usage)


class ClaimsOnly(Plain):
    """Claims something about events that it has not written."""

    resumable = True
    answers_by_tool = True
    passes_events = True


class ClaimsOddly(Plain):
    resumable = 1  # type: ignore[assignment]

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("finished", (), run.start.spent.usage)


@pytest.mark.parametrize(
    ("kind", "holds"),
    [(Plain, False), (Claims, True), (Inherits, True), (Overrides, False), (ClaimsOnly, False), (ClaimsOddly, False)],
)
def test_a_claim_about_events_holds_for_the_class_that_wrote_them(kind: type[Agent], holds: bool) -> None:
    assert (kind.resumable, kind.answers_by_tool, kind.passes_events) == (holds, holds, holds)


def test_an_agent_without_events_is_no_agent_and_one_without_a_name_has_its_kind() -> None:
    class Nothing(Agent):
        pass

    with pytest.raises(TypeError, match="takes no keyword arguments"):
        type("Coloured", (FnCallAgent,), {}, colour="red")
    with pytest.raises(TypeError, match="Nothing must define `events` or `_run`"):
        Nothing()
    with pytest.raises(ConfigError, match=r"^agent FnCallAgent has no model: pass llm='backend:model'$"):
        _ = FnCallAgent().model
    with pytest.raises(ConfigError, match="runs of agent 'FnCallAgent' are not recorded: pass a store"):
        FnCallAgent(llm=model()).ask([], run_id="x")


def test_an_option_that_a_kind_does_not_take_is_named() -> None:
    class Own(FnCallAgent):
        def __init__(self, size: int = 1) -> None:
            super().__init__(llm=model())

    class Any_(FnCallAgent):  # noqa: N801
        def __init__(self, **options: Any) -> None:
            super().__init__(llm=model())

    with pytest.raises(TypeError, match=r"Own has no option 'sice'; did you mean 'size'\?"):
        Own(sice=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="FnCallAgent has no option 'nam'"):
        FnCallAgent(nam="x")  # type: ignore[call-arg]
    assert Own(size=3)
    assert Any_(nam="x")


# --- of a run ---

RUN_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "cancel": ({"cancel": 5}, "cancel must be a CancelToken, got int"),
    "resources": ({"resources": 5}, "resources must be RunResources, got int"),
    "attempts": ({"attempts": 0}, "attempts must be at least 1, got 0"),
    "attempts, no number": ({"attempts": True}, "attempts must be a whole number, got bool"),
    "session": ({"session": None}, "session must be a string, got NoneType"),
    "run_id": ({"run_id": 5}, "run_id must be the ID of a recorded run, such as result.run_id, got int"),
    "resume": (
        {"resume": 1},
        "resume must be True, or {call_id: True or False} for the calls in result.waiting, got int",
    ),
    "ask": ({"ask": True}, "the run option `ask` must be a function, got bool"),
    "approve": (
        {"approve": "ask"},
        "the run option `approve` must be a function, got str: pass rules such as 'ask' to the agent",
    ),
    "way": ({"way": "prompt"}, "way='prompt' has no effect without output=: pass output= as well, or omit way"),
    "unknown": ({"temprature": 1}, "runs of agent 'clerk' have no option 'temprature'"),
}


@pytest.mark.parametrize("case", RUN_FAULTS)
def test_a_wrong_option_of_a_run_is_named_and_nothing_is_asked(case: str) -> None:
    options, text = RUN_FAULTS[case]
    llm = model()
    with pytest.raises(ConfigError) as caught:
        FnCallAgent(llm=llm, name="clerk").ask("Hi", **options)
    assert str(caught.value).startswith(text)
    assert llm.requests == []


def test_an_answer_to_a_call_that_does_not_wait_is_named_with_those_that_do() -> None:
    call = Message("assistant", "", function_call=FunctionCall("pay", "{}"), extra={"function_id": "c1"})
    agent = FnCallAgent(llm=model())
    for other in ("c2", "c10", "c"):
        with pytest.raises(ConfigError, match=rf"^resume: call '{other}' is not pending; pending calls: 'c1' \(pay\)$"):
            agent.ask([Message("user", "Pay."), call], resume={other: True})
    with pytest.raises(ConfigError, match="pending calls: none, so omit resume"):
        agent.ask("Pay.", resume={"c2": Denial("no")})
    # A call of an agent that works as a tool begins with the id of the call that asks it.
    assert agent.ask([Message("user", "Pay."), call], resume={"c1/c7": True}).stop_reason


@pytest.mark.parametrize("given", [True, False])
def test_every_option_of_a_run_reaches_it(given: bool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    agent = Keeps(
        [name_it], model(), "Be brief.", name="clerk", store=MemoryStore(), limits={"seconds": 900},
        extra_generate_cfg={"seed": 1}, workspace=str(tmp_path / "own"),
    )  # fmt: skip
    cancel, deps = CancelToken(), object()

    def allow(*_: object) -> bool:
        return True

    question = Message("user", [ContentItem(text="Was?"), ContentItem(file=str(tmp_path / "a.txt"))])

    async def ask() -> None:
        async with RunResources() as resources:
            options: dict[str, Any] = {
                "lang": "zh", "cancel": cancel, "deps": deps, "approve": allow, "ask": allow, "session": "s",
                "config": {"temperature": 0.5}, "resources": resources,
            } if given else {}  # fmt: skip
            before = asyncio.get_running_loop().time()
            result = await agent.aask([Message("system", "Rhyme."), question], **options)
            [run] = agent.runs
            assert run.ends_at is not None
            assert before + 900 <= run.ends_at <= asyncio.get_running_loop().time() + 900
            assert (run.context.resources is resources) == given
            assert result.run_id == run.id == run.context.run_id

    asyncio.run(ask())
    [run] = agent.runs
    assert run.agent is agent
    assert [one.role for one in run.messages] == ["system", "user"]
    assert run.messages[0].get_text_content() == "Be brief.\n\nRhyme."
    assert run.asked[0].get_text_content() == "Rhyme."
    assert run.limits == Limits(seconds=900)
    assert (run.cancel, run.context.deps) == ((cancel, deps) if given else (None, None))
    assert (run.approve, run.ask) == ((allow, allow) if given else (None, None))
    assert (run.lang, run.context.lang) == (("zh", "zh") if given else ("en", "en"))
    assert run.config is not None
    assert (run.config.seed, run.config.temperature, run.config.lang) == ((1, 0.5, "zh") if given else (1, None, None))
    assert run.session == ("s" if given else "")
    assert (run.resume, run.answers, run.parent, run.depth, run.ends_in_data) == (False, {}, None, 0, False)
    assert run.record is not None
    assert (run.context.agent, run.context.workspace) == ("clerk", agent.workspace)
    assert [Path(file).name for file in run.context.files] == ["a.txt"]
    assert (run.passes_events, run.observers, run.toolbox) == (False, agent.observers, None)


def test_model_options_that_nobody_set_are_none() -> None:
    agent = Keeps(llm=model())
    agent.ask("Hi")
    [run] = agent.runs
    assert (run.config, run.caller_config, run.ends_at) == (None, None, None)


def test_a_run_of_the_base_kind_passes_the_events_of_runs_below_unless_the_answer_is_data() -> None:
    class Passes(FnCallAgent):
        passes_events = True

        def events(self, run: Run) -> AsyncIterator[Event]:
            seen.append(run.passes_events)
            return super().events(run)

    seen: list[bool] = []
    Passes(llm=model()).ask("Hi")
    Passes(llm=model(), name="a", handoffs=[FnCallAgent(llm=model(), name="b", description="Is b.")]).ask("Hi")
    Passes(llm=ScriptedModel([answer("5")])).ask("Hi", output=int)
    assert seen == [True, False, False]


def test_a_file_that_is_missing_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    llm = model()
    gone = str(tmp_path / "gone.txt")
    for agent, question in (
        (FnCallAgent(llm=llm, files=[gone]), "Hi"),
        (FnCallAgent(llm=llm), Message("user", [ContentItem(file=gone)])),
    ):
        begun: list[RunEvent] = []
        with pytest.raises(MissingFileError, match=r"gone\.txt"), iterate(agent.astream(question)) as events:
            begun += events
        assert begun == []
    assert llm.requests == []


def test_an_empty_question_is_refused_and_a_run_below_may_have_one() -> None:
    llm = model()
    with pytest.raises(ConfigError):
        FnCallAgent(llm=llm).ask([])
    assert llm.requests == []


def test_a_run_without_an_end_is_named_by_its_kind() -> None:
    class Endless(Agent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            return
            yield

    with pytest.raises(BrokenPluginError, match="Endless ended without RunFinished, which must be the last event"):
        Endless().ask("Hi")


def test_options_of_a_run_are_checked_before_the_first_item() -> None:
    agent = FnCallAgent(llm=model(), name="clerk")
    with pytest.raises(ConfigError, match="have no option 'temprature'"):
        agent.run("Hi", temprature=1)  # type: ignore[call-arg]
    assert list(agent.run("Hi", lang="zh"))[-1].stop_reason == "finished"
    assert [one.lang for one in agent.llm.requests] == ["zh"]  # type: ignore[union-attr]


def test_the_options_of_lists_are_the_parameters_of_run() -> None:
    class Shouts(Agent):
        def _run(self, messages: list[Message], lang: str = "en", loud: bool = False) -> Iterator[list[Message]]:
            yield [Message("assistant", f"{'HEY' if loud else 'hey'} {lang}")]

    assert Shouts().ask("Hi", loud=True, lang="zh").text == "HEY zh"  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="have no option 'lowd'; did you mean 'loud'"):
        Shouts().ask("Hi", lowd=True)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="Shouts defines `_run`, so `config` cannot be a callable"):
        Shouts().ask("Hi", config=lambda _: {})


# --- the web page ---


class Commands:
    """A host that has one command, which keeps its arguments."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def find(self, *name: str) -> tuple[str, ...]:
        return name

    def load_row(self, row: tuple[str, ...]) -> Callable[..., None]:
        assert row == ("command", "web")
        return lambda words, *, agents: self.asked.append((words, agents))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["--host=127.0.0.1", "--port=8000"]),
        (
            {"address": "::1", "port": 0, "store": "sqlite", "token_file": Path("/srv/tokens"), "open_browser": False},
            ["--host=::1", "--port=0", "--store=sqlite", "--token-file=/srv/tokens", "--no-browser"],
        ),
        ({"port": 65535}, ["--host=127.0.0.1", "--port=65535"]),
    ],
    ids=["defaults", "all", "highest port"],
)
def test_the_page_of_an_agent_gets_its_options(options: dict[str, Any], words: list[str]) -> None:
    agent, host = BasicAgent(llm=model(), name="clerk"), Commands()
    agent.host = host  # type: ignore[assignment]
    agent.web(**options)
    assert host.asked == [(words, {"clerk": agent})]
    agent.name = None
    agent.web()
    assert host.asked[1][1] == {"BasicAgent": agent}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"address": 5}, "address must be a host address such as 127.0.0.1, got int"),
        ({"port": "80"}, "port must be a number from 0 to 65535, got str"),
        ({"port": 65536}, "port must be between 0 and 65535, got 65536"),
        ({"port": -1}, "port must be between 0 and 65535, got -1"),
        ({"store": 5}, "store must be the name of a store, got int"),
        ({"token_file": 5}, "token_file must be a path, got int"),
        ({"open_browser": 1}, "open_browser must be True or False, got int"),
    ],
    ids=str,
)
def test_a_wrong_option_of_a_page_is_named(options: dict[str, Any], text: str) -> None:
    agent, host = BasicAgent(llm=model()), Commands()
    agent.host = host  # type: ignore[assignment]
    with pytest.raises(ConfigError) as caught:
        agent.web(**options)
    assert (str(caught.value), host.asked) == (text, [])


# --- checks ---


@pytest.mark.parametrize(
    ("value", "hint", "does"),
    [
        (1, int, True),
        (True, int, False),
        (True, bool, True),
        (True, bool | int, True),
        (1, float, True),
        (True, float, False),
        (None, int | None, True),
        (None, int, False),
        ([1], tuple[int, ...], True),
        ((1,), list[int], False),
        ({1}, frozenset[int], True),
        (["a"], list[int], False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False),
        ({1: 1}, dict[str, int], False),
        (object(), Any, True),
        ([object()], list[Any], True),
        ([1, "a"], list[int], False),
        ([1, "a"], list[int | str], True),
        (["a", 1, None], list[int | str], False),
        ({"a": 1, "b": "c"}, dict[str, int], False),
    ],
)
def test_a_value_fits_its_annotation(value: object, hint: object, does: bool) -> None:
    assert fits(value, hint) is does


def test_counts_and_seconds_have_a_least_value() -> None:
    check_count("n", 1)
    check_seconds("s", 0.001)
    check_seconds("s", None, optional=True)
    for call in (
        lambda: check_count("n", 0), lambda: check_seconds("s", 0), lambda: check_seconds("s", None),
        lambda: check_seconds("s", -1, optional=True),
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            call()
