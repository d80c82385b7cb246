"""The face as the `mcp` client sees it, in the versions of the protocol before and since 2026-07-28."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitResult, ResourceLink, TextContent

from jackfield import FnCallAgent, ToolContext, tool
from jackfield.errors import RateLimitedError
from jackfield.events import ModelEvent, TextDelta
from jackfield.messages import FunctionCall
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolResult
from jackfield_mcp_server.questions import form_of
from jackfield_multi_agent import GroupChat, UserAgent
from jackfield_serve import Tokens, serving_app
from jackfield_serving import Serving, ServingLimits, WaitingCall
from jackfield_testkit.faces import ServedFace

ADA, BOB = "ada-0123456789abcdef", "bob-0123456789abcdef"
LIMIT_S = 60
SOURCES = ["https://example.org/book", "/srv/secret/notes.pdf", "https://example.org/book"]
paid: list[int] = []


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    print("this line must not get into the protocol")
    paid.append(amount)
    return f"paid {amount}"


@tool
def look_up(context: ToolContext) -> ToolResult:
    """Look something up."""
    context.report("turning pages")
    return ToolResult("It is in the book.", metadata={"sources": SOURCES})


@tool
async def confirm(context: ToolContext) -> str:
    """Ask a person during the call."""
    return f"confirmed: {await context.ask({'message': 'Go on?'})}"


@tool
async def enrol(context: ToolContext) -> str:
    """Ask a person for values during the call."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return f"enrolled: {await context.ask({'message': 'Who?', 'form': form})}"


class Patient(ScriptedModel):
    """Sends a word and then waits until it is cancelled."""

    began = threading.Event()
    cancelled = threading.Event()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("one moment")
        self.began.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.cancelled.set()


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:
    """Answer by the first word of the question."""
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    match text.split()[0]:
        case "pay":
            return calls(("pay", {"amount": 3}))
        case "book":
            return calls(("look_up", {}))
        case "confirm":
            return calls(("confirm", {}))
        case "busy":
            return [RateLimitedError("acme")]
        case "count":
            return answer(f"{sum(message.role == 'user' for message in request.messages)} questions")
        case "odd":
            return answer("half \ud83d of a pair")
        case "long":
            return answer("x" * 5000)
    return answer(f"You said: {text}")


def make_helper(*more: Any) -> FnCallAgent:
    tools = [pay, look_up, confirm, *more]
    return FnCallAgent(tools, ScriptedModel(script), name="helper", description="Knows the tides and pays.")


helper = make_helper()


def make_group() -> Any:
    """Return a group chat in which a person takes turns."""

    def member(name: str, *texts: str) -> FnCallAgent[Any]:
        return FnCallAgent(llm=ScriptedModel([answer(text) for text in texts]), name=name, description="Talks.")

    members = [member("Ann", "Who pays?", "Thanks, Cy."), UserAgent(name="Cy", description="Pays.")]
    return GroupChat(members, agent_selection_method="round_robin", name="group")


class Person:
    """Answers the questions that reach the client.

    Attributes:
        questions: The questions.
        allows: The answer to each.
    """

    def __init__(self, allows: bool | None = True) -> None:
        self.questions: list[str] = []
        self.allows = allows

    async def elicit(self, _: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        if "message" in params.requested_schema["properties"]:
            if len(self.questions) > 1 or not self.allows:
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content={"message": "I do."})
        if "name" in params.requested_schema["properties"]:
            return ElicitResult(action="accept", content={"name": "Ada"})
        if self.allows is None:
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content={"allow": self.allows})


@pytest.fixture(scope="module")
def served() -> Iterator[ServedFace]:
    agents = {"helper": helper, "patient": FnCallAgent(llm=Patient([]), name="patient")}
    with ServedFace(serving_app(agents, faces=["mcp"])) as face:
        yield face


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> Any:
    return request.param


def talk(client: Client, work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(LIMIT_S), client:
            try:
                return await work(client)
            except MCPError as error:  # the client's task groups would wrap it
                return error

    result = asyncio.run(run())
    if isinstance(result, MCPError):
        raise result
    return result


def ask(served: ServedFace, mode: Any, message: str, person: Person | None = None, **more: Any) -> Any:
    client = Client(f"{served.url}/mcp", mode=mode, elicitation_callback=person and person.elicit)
    return talk(client, lambda client: client.call_tool("helper", {"message": message}, **more))


def texts_in(result: Any) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


# --- tools ---


def test_each_agent_is_a_tool(served: ServedFace, mode: Any) -> None:
    tools = talk(Client(f"{served.url}/mcp", mode=mode), lambda client: client.list_tools()).tools
    assert [(tool.name, tool.description) for tool in tools] == [
        ("helper", "Knows the tides and pays."),
        ("patient", "Asks the agent patient."),
    ]


def test_both_ages_of_the_protocol_are_spoken(served: ServedFace) -> None:
    async def version(client: Client) -> str:
        return client.protocol_version

    assert talk(Client(f"{served.url}/mcp"), version) == "2026-07-28"
    assert talk(Client(f"{served.url}/mcp", mode="legacy"), version) == "2025-11-25"


def test_an_answer_is_text_and_can_be_continued(served: ServedFace, mode: Any) -> None:
    async def work(client: Client) -> tuple[Any, Any]:
        first = await client.call_tool("helper", {"message": "Hi"})
        conversation = first.structured_content["conversation"]
        return first, await client.call_tool("helper", {"message": "count", "conversation": conversation})

    first, second = talk(Client(f"{served.url}/mcp", mode=mode), work)
    assert texts_in(first) == ["You said: Hi"] == [first.structured_content["text"]]
    assert texts_in(second) == ["2 questions"]


def test_sources_on_the_web_are_links_and_files_of_the_server_are_not_shown(served: ServedFace, mode: Any) -> None:
    result = ask(served, mode, "book")
    links = [block for block in result.content if isinstance(block, ResourceLink)]
    assert [(link.uri, link.name) for link in links] == [("https://example.org/book", "book")]
    assert "secret" not in result.model_dump_json()


def test_half_a_character_does_not_break_the_connection(served: ServedFace, mode: Any) -> None:
    assert texts_in(ask(served, mode, "odd")) == ["half ? of a pair"]


def test_progress_counts_up_and_names_the_steps(served: ServedFace, mode: Any) -> None:
    reports: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message))

    ask(served, mode, "book", progress_callback=note)
    assert [number for number, _ in reports] == list(range(1, len(reports) + 1))
    assert [text for _, text in reports] == [
        "helper thinks",
        "helper calls look_up",
        "turning pages",
        "helper thinks",
    ]


def test_steps_before_an_approval_are_not_reported_again_after_it(served: ServedFace, mode: Any) -> None:
    reports: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append(message)

    ask(served, mode, "pay", Person(), progress_callback=note)
    assert reports == ["helper thinks", "helper calls pay", "helper thinks"]


@pytest.fixture(scope="module")
def direct() -> Iterator[ServedFace]:
    with ServedFace(serving_app({"helper": make_helper(enrol)}, faces=[{"name": "mcp", "tools": True}])) as face:
        yield face


def call(served: ServedFace, mode: Any, name: str, arguments: Any, person: Person | None = None) -> Any:
    client = Client(f"{served.url}/mcp", mode=mode, elicitation_callback=person and person.elicit)
    return talk(client, lambda client: client.call_tool(name, arguments))


def test_the_tools_of_agents_are_offered_one_by_one_if_wanted(direct: ServedFace, mode: Any) -> None:
    tools = talk(Client(f"{direct.url}/mcp", mode=mode), lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == ["helper", "pay", "look_up", "confirm", "enrol"]
    assert tools[1].input_schema["properties"] == {"amount": {"type": "integer"}}
    result = call(direct, mode, "look_up", {})
    assert texts_in(result) == ["It is in the book."]
    assert [block.uri for block in result.content if isinstance(block, ResourceLink)] == ["https://example.org/book"]
    assert not result.is_error


def test_a_form_of_a_tool_is_filled_in_by_the_person(direct: ServedFace, mode: Any) -> None:
    person = Person()
    assert texts_in(call(direct, mode, "enrol", {}, person)) == ["enrolled: {'name': 'Ada'}"]
    assert person.questions == ["Who?"]


def test_a_tool_of_one_of_several_agents_has_its_agent_in_the_name(mode: Any) -> None:
    agents = {"helper": make_helper(), "other": make_helper()}
    with ServedFace(serving_app(agents, faces=[{"name": "mcp", "tools": True}])) as served:
        assert texts_in(call(served, mode, "other__look_up", {})) == ["It is in the book."]


@pytest.mark.parametrize("allows", [True, False, None])
def test_a_tool_that_is_called_alone_waits_for_approval(direct: ServedFace, mode: Any, allows: bool | None) -> None:
    paid.clear()
    person = Person(allows)
    result = call(direct, mode, "pay", {"amount": 7}, person)
    assert (len(person.questions), "pay" in person.questions[0]) == (1, True)
    assert (paid, result.is_error) == ([7] if allows else [], not allows)
    assert texts_in(result)[0].startswith("paid 7" if allows else "The user did not allow")
    paid.clear()
    assert call(direct, mode, "pay", {"amount": 7}).is_error
    assert paid == []


def test_the_model_reads_why_a_call_of_a_tool_fails(direct: ServedFace, mode: Any) -> None:
    result = call(direct, mode, "pay", {"amount": "much"}, Person())
    assert result.is_error
    assert "amount" in texts_in(result)[0]


def test_a_question_of_a_tool_that_is_called_alone_reaches_the_person(direct: ServedFace, mode: Any) -> None:
    person = Person()
    assert texts_in(call(direct, mode, "confirm", {}, person)) == ["confirmed: True"]
    assert person.questions


# --- approvals ---


def test_a_call_waits_for_the_persons_approval(served: ServedFace, mode: Any) -> None:
    for allows, expected in ((True, [3]), (False, []), (None, [])):
        paid.clear()
        person = Person(allows)
        result = ask(served, mode, "pay", person)
        assert person.questions == ['Allow the call pay {"amount": 3}?']
        assert paid == expected
        assert texts_in(result)[0].startswith("It says: paid 3" if expected else "It says: ")
        assert len(texts_in(result)) == 1


@pytest.mark.parametrize("in_doubt", [True, False])
def test_the_form_says_that_a_call_may_have_been_made(in_doubt: bool) -> None:
    call = WaitingCall(call_id="c1", call=FunctionCall("pay", '{"amount": 3}'), in_doubt=in_doubt)
    assert ("may already have been made" in form_of(call).message) == in_doubt


def test_without_a_person_the_call_is_refused_and_the_result_says_so(served: ServedFace, mode: Any) -> None:
    paid.clear()
    result = ask(served, mode, "pay")
    assert paid == []
    assert texts_in(result)[1] == (
        'The call pay {"amount": 3} requires approval and was denied: this client cannot ask for approval.'
    )


def test_a_question_of_a_running_call_reaches_the_person(served: ServedFace, mode: Any) -> None:
    person = Person()
    assert texts_in(ask(served, mode, "confirm", person)) == ["It says: confirmed: True"]
    assert person.questions == ['Allow the call confirm {"message": "Go on?"}?']
    assert texts_in(ask(served, mode, "confirm")) == ["It says: confirmed: False"]


def test_a_person_takes_turns_in_a_group_until_declining_one(mode: Any) -> None:
    def lunch(person: Person | None) -> Any:
        with ServedFace(serving_app({"helper": make_group()}, faces=["mcp"])) as served:
            return ask(served, mode, "Lunch!", person)

    one_turn, declined, unasked = lunch(Person()), lunch(Person(False)), lunch(None)
    assert texts_in(one_turn) == ["Thanks, Cy.", "The run ended early: cancelled."]
    assert texts_in(declined)[-1] == texts_in(unasked)[-1] == "The run ended early: cancelled."
    assert "this client cannot ask" in texts_in(unasked)[-2]
    assert [result.is_error for result in (one_turn, declined, unasked)] == [True] * 3


@pytest.mark.parametrize("only_others", [False, True])
def test_answers_to_questions_that_were_not_asked_are_ignored(served: ServedFace, only_others: bool) -> None:
    paid.clear()

    async def work(client: Client) -> Any:
        asked: Any = await client.session.call_tool("helper", {"message": "pay"}, allow_input_required=True)
        reply = ElicitResult(action="accept", content={"allow": True})
        keys = ["other", "approval:other", *([] if only_others else asked.input_requests)]
        return await client.session.call_tool(
            "helper",
            {"message": "pay"},
            input_responses=dict.fromkeys(keys, reply),
            request_state=asked.request_state,
            allow_input_required=True,
        )

    result = talk(Client(f"{served.url}/mcp", elicitation_callback=Person().elicit), work)
    assert paid == ([] if only_others else [3])
    assert isinstance(result, CallToolResult) != only_others


def test_of_two_answers_the_first_counts(served: ServedFace) -> None:
    paid.clear()

    async def work(client: Client) -> list[Any]:
        asked = await client.session.call_tool("helper", {"message": "pay"}, allow_input_required=True)
        (key,) = asked.input_requests
        replies = [ElicitResult(action="accept", content={"allow": allow}) for allow in (True, False, True)]
        return [
            await client.call_tool(
                "helper", {"message": "pay"}, input_responses={key: reply}, request_state=asked.request_state
            )
            for reply in replies
        ]

    results = talk(Client(f"{served.url}/mcp", elicitation_callback=Person().elicit), work)
    assert [texts_in(result) for result in results] == [["It says: paid 3"]] * 3
    assert paid == [3]


# --- errors ---


@pytest.mark.parametrize(
    "arguments", [{}, {"message": ""}, {"message": 3}, {"message": "Hi", "x": 1}, {"message": "Hi", "conversation": 1}]
)
def test_the_model_reads_why_its_arguments_do_not_fit(served: ServedFace, mode: Any, arguments: Any) -> None:
    result = talk(Client(f"{served.url}/mcp", mode=mode), lambda client: client.call_tool("helper", arguments))
    assert result.is_error
    assert "argument" in texts_in(result)[0]


def test_an_unknown_tool_or_conversation_is_an_error(served: ServedFace, mode: Any) -> None:
    for name, arguments in (("nobody", {"message": "Hi"}), ("helper", {"message": "Hi", "conversation": "x"})):
        with pytest.raises(MCPError) as caught:
            talk(Client(f"{served.url}/mcp", mode=mode), lambda client: client.call_tool(name, arguments))  # noqa: B023
        assert caught.value.code == -32602


def test_a_busy_model_is_an_error_that_the_model_reads(served: ServedFace, mode: Any) -> None:
    result = ask(served, mode, "busy")
    assert result.is_error
    assert texts_in(result) == ["the agent's model is busy: try again later"]


def test_beyond_a_limit_the_error_says_when_to_try_again(mode: Any) -> None:
    app = serving_app({"patient": FnCallAgent(llm=Patient([]))}, faces=["mcp"], limits=ServingLimits(runs=1, queue=0))

    async def work(client: Client) -> tuple[int, Any]:
        Patient.began.clear()
        first = asyncio.ensure_future(client.call_tool("patient", {"message": "Hi"}))
        await asyncio.to_thread(Patient.began.wait, LIMIT_S)
        with pytest.raises(MCPError) as caught:
            await client.call_tool("patient", {"message": "Hi"})
        first.cancel()
        return caught.value.code, caught.value.data

    with ServedFace(app) as face:
        error = talk(Client(f"{face.url}/mcp", mode=mode), work)
    assert error == (-32000, {"code": "busy", "retryAfter": 5})


# --- clients that leave, and other owners ---


def test_a_cancelled_request_cancels_the_run(served: ServedFace, mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = Serving.cancel

    async def cancel_late(self: Serving, run_id: str, **options: Any) -> None:
        await asyncio.sleep(0.01)  # as for a run of another process
        await cancel(self, run_id, **options)

    monkeypatch.setattr(Serving, "cancel", cancel_late)

    async def work(client: Client) -> None:
        Patient.began.clear()
        Patient.cancelled.clear()
        asking = asyncio.ensure_future(client.call_tool("patient", {"message": "Hi"}))
        assert await asyncio.to_thread(Patient.began.wait, LIMIT_S)
        asking.cancel()
        assert await asyncio.to_thread(Patient.cancelled.wait, LIMIT_S)

    talk(Client(f"{served.url}/mcp", mode=mode), work)


def test_an_owner_can_use_neither_runs_nor_sessions_of_another() -> None:
    app = serving_app({"helper": helper}, faces=["mcp"], tokens=Tokens([("ada", ADA), ("bob", BOB)]))

    def client(face: ServedFace, token: str, mode: Any = "auto", **headers: str) -> Client:
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}", **headers})
        return Client(
            streamable_http_client(f"{face.url}/mcp", http_client=http),
            mode=mode,
            elicitation_callback=Person().elicit,
        )

    async def begin(client: Client) -> Any:
        return await client.session.call_tool("helper", {"message": "pay"}, allow_input_required=True)

    async def hijack(client: Client) -> Any:
        (key,) = asked.input_requests
        reply = ElicitResult(action="accept", content={"allow": True})
        return await client.call_tool(
            "helper", {"message": "pay"}, input_responses={key: reply}, request_state=asked.request_state
        )

    paid.clear()
    with ServedFace(app) as face:
        asked = talk(client(face, ADA), begin)
        with pytest.raises(MCPError, match="no run"):
            talk(client(face, BOB), hijack)
        assert paid == []
        assert texts_in(talk(client(face, ADA), hijack)) == ["It says: paid 3"]

        def post(token: str, session: str, body: dict[str, Any]) -> httpx2.Response:
            headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
            if session:
                headers["mcp-session-id"] = session
            return httpx2.post(f"{face.url}/mcp", json={"jsonrpc": "2.0", **body}, headers=headers)

        info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        opened = post(ADA, "", {"id": 1, "method": "initialize", "params": info})
        session = opened.headers["mcp-session-id"]
        listing = {"id": 2, "method": "tools/list"}
        assert post(BOB, session, listing).status_code == 404
        assert post(ADA, session, listing).status_code == 200


def test_without_sessions_every_process_can_answer_older_clients() -> None:
    face = {"name": "mcp", "sessions": False}
    with ServedFace(serving_app({"helper": helper}, faces=[face])) as served:
        assert texts_in(ask(served, "legacy", "Hi")) == ["You said: Hi"]
        assert "was denied" in texts_in(ask(served, "legacy", "pay", Person()))[1]


# --- standard input ---


def test_a_program_that_starts_the_server_speaks_with_it(mode: Any) -> None:
    arguments = ["-m", "jackfield", "serve", "test_clients:helper", "--stdio", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(Path(__file__).parent))
    person = Person()
    reports: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append(message)

    async def work(client: Client) -> list[Any]:
        return [
            await client.call_tool("helper", {"message": message}, progress_callback=note)
            for message in ("Hi 🙂", "pay", "long")
        ]

    results = talk(Client(server, mode=mode, elicitation_callback=person.elicit), work)
    assert [texts_in(result) for result in results] == [["You said: Hi 🙂"], ["It says: paid 3"], ["x" * 5000]]
    assert len(person.questions) == 1
    assert "helper calls pay" in reports
