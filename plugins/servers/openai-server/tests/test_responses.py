"""Responses as OpenAI's client and the typed models of Open Responses read them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from openresponses.types.generated import ResponseResource
from openresponses.types.protocol import StreamingEventAdapter, UnknownStreamingEvent
from pydantic import TypeAdapter

from jackfield import FnCallAgent, ToolContext, tool
from jackfield.errors import ContextLengthError, ModelAuthError, RateLimitedError
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolResult
from jackfield_openai_server.conversations import Conversations
from jackfield_openai_server.items import AnswerEnded, Change, ItemFold
from jackfield_openai_server.response_object import ResponseHead
from jackfield_openai_server.response_stream import ResponseStream
from jackfield_openai_server.responses import Responses
from jackfield_serve import ServingApp, Tokens, serving_app
from jackfield_serving import Serving, ServingLimits, memory
from jackfield_testkit.faces import ServedFace

OPENAI_RESPONSE: TypeAdapter[Any] = TypeAdapter(Response)
OPENAI_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
OPEN_RESPONSE: TypeAdapter[Any] = TypeAdapter(ResponseResource)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "description": "Tell the weather.", "parameters": PARAMETERS}
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
GATE = threading.Event()


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


@tool
def look_up(context: ToolContext) -> ToolResult:
    """Look something up."""
    return ToolResult("It is in the book.", metadata={"sources": [{"location": "/srv/docs/book.pdf", "page": 3}]})


@tool
def wait_for_gate() -> str:
    """Wait."""
    GATE.wait(30)
    return "waited"


def script(request: ChatRequest) -> Sequence[ModelEvent | Exception]:  # noqa: C901 - one case for each question
    last = request.messages[-1]
    text = last.get_text_content()
    if last.role == "function":
        return answer(f"It says: {text}")
    match text.split()[0]:
        case "weather":
            return calls(("weather", {"city": "Bonn"}), ("weather", {"city": "Köln"}), text="I look.")
        case "pay":
            return calls(("pay", {"amount": 3}))
        case "book":
            return calls(("look_up", {}))
        case "wait":
            return calls(("wait_for_gate", {}))
        case "cut":
            return [TextDelta("half an ans"), ModelFinished("length")]
        case "key":
            return [ModelAuthError("the key sk-secret is not valid")]
        case "long":
            return [ContextLengthError("the context has room for 10 tokens")]
        case "busy":
            return [RateLimitedError("too many requests")]
        case "system":
            return answer(" | ".join(one.get_text_content() for one in request.messages if one.role == "system"))
        case "json":
            return answer('{"city": "Bonn"}')
    return answer(f"You said: {text}", reasoning="Let me think. 🙂")


class Patient(ScriptedModel):
    """Sends a word and then waits until it is cancelled."""

    began = threading.Event()

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("one moment")
        self.began.set()
        await asyncio.sleep(60)


@pytest.fixture(scope="module")
def served() -> Iterator[ServedFace]:
    agent = FnCallAgent([pay, look_up, wait_for_gate], llm=ScriptedModel(script), name="helper")
    other = FnCallAgent(llm=ScriptedModel(script), name="other")
    with ServedFace(serving_app({"helper": agent, "other": other}, faces=["openai"])) as face:
        yield face


@pytest.fixture
def client(served: ServedFace) -> Iterator[openai.OpenAI]:
    GATE.clear()
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made
    GATE.set()


QUESTIONS: dict[str, dict[str, Any]] = {
    "text": {"input": "Hi"},
    "items": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]},
    "options": {
        "input": "Hi", "temperature": 0, "top_p": 0.5, "max_output_tokens": 20, "metadata": {"a": "b"}, "user": "u",
        "reasoning": {"effort": "low"}, "instructions": "Be brief.", "truncation": "disabled",
        "parallel_tool_calls": False, "presence_penalty": 1, "frequency_penalty": -1, "prompt_cache_key": "k",
        "text": {"format": {"type": "text"}},
        "include": ["reasoning.encrypted_content"], "store": True,
    },
    "system": {"input": [
        {"type": "message", "role": "system", "content": "Be brief."},
        {"type": "message", "role": "developer", "content": "Be kind."},
        {"type": "message", "role": "user", "content": "Hi"},
    ]},
    "history": {"input": [
        {"type": "message", "role": "user", "content": "I am Ada."},
        {"type": "message", "role": "assistant", "content": "Hello, Ada."},
        {"type": "message", "role": "user", "content": "Who am I?"},
    ]},
    "image": {"input": [{"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "Which picture is it?"}, {"type": "input_image", "image_url": PIXEL},
    ]}]},
    "calls": {"input": "weather please", "tools": [WEATHER], "tool_choice": {"type": "function", "name": "weather"}},
    "sources": {"input": "book please"},
    "cut off": {"input": "cut please"},
    "failed": {"input": "key please"},
    "too long": {"input": "long please"},
    "busy": {"input": "busy please"},
    "approval": {"input": "pay please"},
    "schema": {
        "input": "json please",
        "text": {"format": {"type": "json_schema", "name": "place", "schema": PARAMETERS, "strict": True}},
    },
}  # fmt: skip
# Open Responses has no approvals, and its published models let the schema of a format only be null.
ONLY_OPENAI = {"approval", "schema"}


HTTP = httpx.Client(timeout=60)
"""One for all tests: a new one reads certificates first."""


def ask(served: ServedFace, **body: Any) -> dict[str, Any]:
    reply = HTTP.post(f"{served.url}/v1/responses", json={"model": "helper", **body}, timeout=60)
    result: dict[str, Any] = reply.json()
    assert reply.status_code == 200, result
    return result


def events_of(reply: httpx.Response) -> list[dict[str, Any]]:
    blocks = [block for block in reply.text.split("\n\n") if block]
    assert blocks[-1] == "data: [DONE]"
    events = []
    for block in blocks[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def stream(served: ServedFace, **body: Any) -> list[dict[str, Any]]:
    return events_of(
        HTTP.post(f"{served.url}/v1/responses", json={"model": "helper", "stream": True, **body}, timeout=60)
    )


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_every_object_and_event_fits_the_typed_models_of_both(served: ServedFace, name: str) -> None:
    response = ask(served, **QUESTIONS[name])
    OPENAI_RESPONSE.validate_python(response, strict=True)
    events = stream(served, **QUESTIONS[name])
    for event in events:
        OPENAI_EVENT.validate_python(event, strict=True)
    if name not in ONLY_OPENAI:
        OPEN_RESPONSE.validate_python(response)
        for event in events:
            assert not isinstance(StreamingEventAdapter.validate_python(event), UnknownStreamingEvent)


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_the_stream_adds_up_to_the_response(served: ServedFace, name: str) -> None:
    events = stream(served, **QUESTIONS[name])
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    final = events[-1]["response"]
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == final["output"]
    for index, item in enumerate(done):
        own = [event for event in events if event.get("output_index") == index]
        deltas = "".join(event["delta"] for event in own if event["type"].endswith(".delta"))
        match item["type"]:
            case "message":
                assert deltas == item["content"][0]["text"]
            case "reasoning":
                assert deltas == item["summary"][0]["text"]
            case "function_call":
                assert deltas == item["arguments"]
    again = HTTP.get(f"{served.url}/v1/responses/{final['id']}").json()
    assert again == final


STATUSES = {
    "text": ("completed", None, None),
    "cut off": ("incomplete", {"reason": "max_output_tokens"}, None),
    "failed": ("failed", None, "server_error"),
    "too long": ("failed", None, "invalid_prompt"),
    "busy": ("failed", None, "rate_limit_exceeded"),
}


@pytest.mark.parametrize("name", list(STATUSES))
def test_a_response_says_how_it_ended_and_shows_no_secrets(served: ServedFace, name: str) -> None:
    status, details, code = STATUSES[name]
    response = ask(served, **QUESTIONS[name])
    assert (response["status"], response["incomplete_details"]) == (status, details)
    assert (response["error"] and response["error"]["code"]) == code
    assert "sk-secret" not in json.dumps(response)


@pytest.mark.parametrize("name", ["text", "calls", "sources", "options"])
def test_a_stream_continues_after_any_number(served: ServedFace, name: str) -> None:
    events = stream(served, background=True, **QUESTIONS[name])
    identity = events[-1]["response"]["id"]
    for number in range(-1, events[-1]["sequence_number"] + 1, 1 + events[-1]["sequence_number"] // 6):
        url = f"{served.url}/v1/responses/{identity}?stream=true&starting_after={number}"
        rest = events_of(HTTP.get(url))
        assert all(event["sequence_number"] > number for event in rest)
        assert text_of([event for event in events if event["sequence_number"] <= number], events, number) + text_of(
            rest
        ) == text_of(events)
        assert rest[-1:] == events[-1:] or number == events[-1]["sequence_number"]


def text_of(
    events: Sequence[dict[str, Any]], all_events: Sequence[dict[str, Any]] = (), upto: int | None = None
) -> str:
    """All deltas, the one that a number cuts in two up to it."""
    text = "".join(event["delta"] for event in events if event["type"].endswith(".delta"))
    if upto is not None:
        cut = next((event for event in all_events if event["sequence_number"] > upto), None)
        if cut is not None and cut["type"].endswith(".delta"):
            seen = len(cut["delta"]) - (cut["sequence_number"] - upto)
            text += cut["delta"][: max(0, seen)]
    return text


@given(
    pieces=st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=9), cut=st.integers(-1, 120), data=st.data()
)
def test_numbers_do_not_depend_on_the_pieces_of_a_text(pieces: list[str], cut: int, data: st.DataObject) -> None:
    from jackfield.events import RunEvent, RunFinished
    from jackfield.messages import Usage

    def events(texts: list[str], after: int) -> list[dict[str, Any]]:
        fold, made = (
            ItemFold(),
            ResponseStream(ResponseHead(id="resp_1", run_id="1", model="m", created=1), after=after),
        )
        changes: list[Change] = []
        for text in texts:
            changes += fold.feed(RunEvent("1", 1, "m", 0, TextDelta(text)))
        changes += fold.feed(RunEvent("1", 1, "m", 0, RunFinished("finished", (), Usage())))
        assert isinstance(changes[-1], AnswerEnded)
        return [*made.begin(), *(event for change in changes for event in made.feed(change))]

    whole = "".join(pieces)
    middle = data.draw(st.integers(0, len(whole)))
    other = [text for text in (whole[:middle], whole[middle:]) if text]
    assert events(pieces, -1)[-1] == events(other, -1)[-1]
    first = [event for event in events(pieces, -1) if event["sequence_number"] <= cut]
    rest = events(other, cut)
    seen = text_of(first, events(pieces, -1), cut)
    assert seen + text_of(rest) == whole


def test_a_result_continues_the_run_that_waits_for_it(client: openai.OpenAI) -> None:
    asked = client.responses.create(model="helper", input="weather please", tools=[WEATHER])  # type: ignore[list-item]
    first = [item for item in asked.output if item.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"} for call in first]
    done = client.responses.create(
        model="helper",
        input=results,  # type: ignore[arg-type]
        previous_response_id=asked.id,
        tools=[WEATHER],  # type: ignore[list-item]
    )
    assert done.output_text == "It says: rain"
    assert done.previous_response_id == asked.id
    assert done.id.startswith(asked.id)
    assert done.usage is not None
    assert done.usage.total_tokens == 2
    assert client.responses.retrieve(done.id) == done
    assert client.responses.retrieve(asked.id) == asked
    listed = client.responses.input_items.list(done.id, order="asc")
    assert [getattr(item, "call_id", None) for item in listed] == [call.call_id for call in first]


def test_a_result_may_also_come_with_the_whole_conversation(client: openai.OpenAI) -> None:
    asked = client.responses.create(model="helper", input="weather", tools=[WEATHER], store=False)  # type: ignore[list-item]
    history: list[Any] = [{"role": "user", "content": "weather"}, *(item.model_dump() for item in asked.output)]
    history = [{key: value for key, value in item.items() if value is not None} for item in history]
    history += [
        {"type": "function_call_output", "call_id": item.call_id, "output": "snow"}
        for item in asked.output
        if item.type == "function_call"
    ]
    done = client.responses.create(model="helper", input=history)
    assert done.output_text == "It says: snow"


@pytest.mark.parametrize(("approve", "text"), [(True, "It says: paid 3"), (False, None)])
def test_an_approval_continues_the_run(client: openai.OpenAI, approve: bool, text: str | None) -> None:
    asked = client.responses.create(model="helper", input="pay please")
    (request,) = asked.output
    assert (request.type, getattr(request, "name", ""), getattr(request, "arguments", "")) == (
        "mcp_approval_request",
        "pay",
        '{"amount": 3}',
    )
    decision: Any = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
    done = client.responses.create(model="helper", input=[decision], previous_response_id=asked.id)
    assert (done.output_text == text) if text else ("paid" not in done.output_text)
    with pytest.raises(openai.ConflictError):
        client.responses.create(model="helper", input=[decision], previous_response_id=asked.id)


def test_a_response_that_waits_for_approval_is_cancelled_for_good(client: openai.OpenAI) -> None:
    """Also in a conversation, which takes its next request then."""
    conversation = client.conversations.create().id
    asked = client.responses.create(model="helper", input="pay please", conversation=conversation)
    (request,) = asked.output
    assert client.responses.cancel(asked.id).id == asked.id
    decision: Any = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    with pytest.raises(openai.ConflictError) as caught:
        client.responses.create(model="helper", input=[decision], previous_response_id=asked.id)
    assert caught.value.code == "not_waiting"
    done = client.responses.create(model="helper", input="Hi", conversation=conversation)
    assert done.output_text == "You said: Hi"
    assert client.responses.cancel(done.id).status == "completed"  # it has ended, and stays as it is


def test_a_conversation_is_deleted_whatever_its_run_does() -> None:
    """A run that waits for its turn ends without one; a running one is cancelled, and so is one that is paused."""
    agent = FnCallAgent([pay], llm=ScriptedModel(script), name="helper")
    slow = FnCallAgent(llm=Patient([]), name="slow")
    app = serving_app({"helper": agent, "slow": slow}, faces=["openai"], limits=ServingLimits(runs=1))
    with ServedFace(app) as face, openai.OpenAI(base_url=f"{face.url}/v1", api_key="none", max_retries=0) as client:
        paused, running, queued = (client.conversations.create().id for _ in range(3))
        kept = client.responses.create(model="helper", input="Hi")
        responses = [client.responses.create(model="helper", input="pay please", conversation=paused)]
        responses += [
            client.responses.create(model="slow", input="Hi", conversation=conversation, background=True)
            for conversation in (running, queued)
        ]
        assert Patient.began.wait(30)
        assert client.responses.retrieve(responses[2].id).status == "queued"
        for conversation, response in zip((queued, running, paused), reversed(responses), strict=True):
            assert client.conversations.delete(conversation).deleted
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(response.id)
        assert client.responses.retrieve(kept.id) == kept


def test_a_response_continues_another_and_repeats_its_request(client: openai.OpenAI) -> None:
    first = client.responses.create(model="helper", input="one", metadata={"a": "b"}, temperature=0.5)
    second = client.responses.create(model="helper", input="two", previous_response_id=first.id)
    assert (first.metadata, first.temperature) == ({"a": "b"}, 0.5)
    assert (second.metadata, second.temperature, second.previous_response_id) == ({}, 1.0, first.id)
    items = client.responses.input_items.list(second.id)
    assert [item.content[0].text for item in items] == ["two"]  # type: ignore[union-attr]


def test_instructions_replace_those_of_the_response_before(client: openai.OpenAI) -> None:
    previous: Any = openai.omit
    texts = []
    for instructions in ("Be brief.", "Be brief.", "Be kind.", openai.omit):
        response = client.responses.create(
            model="helper", input="system", instructions=instructions, previous_response_id=previous
        )
        previous = response.id
        texts.append(response.output_text)
    assert texts == ["Be brief.", "Be brief.", "Be kind.", "Be kind."]


def test_instructions_and_system_items_reach_the_model_together(served: ServedFace) -> None:
    items = [{"role": "system", "content": "A"}, {"role": "developer", "content": "B"}]
    done = ask(served, input=[*items, {"role": "user", "content": "system"}], instructions="C")
    assert (done["status"], done["output"][-1]["content"][0]["text"]) == ("completed", "C\n\nA\n\nB")
    body = {"model": "helper", "messages": [*items, {"role": "user", "content": "system"}]}
    reply = HTTP.post(f"{served.url}/v1/chat/completions", json=body).json()
    assert reply["choices"][0]["message"]["content"] == "A\n\nB"


def test_an_answer_that_does_not_fit_its_schema_is_not_passed_on(served: ServedFace) -> None:
    form = {"type": "json_schema", "name": "place", "schema": PARAMETERS}
    assert ask(served, input="json", text={"format": form})["status"] == "completed"
    assert ask(served, input="Hi", text={"format": form})["status"] == "failed"


def results_of(response: dict[str, Any], output: str) -> list[dict[str, Any]]:
    """Return a result for each call of a response."""
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": output}
        for item in response["output"]
        if item["type"] == "function_call"
    ]


def test_a_run_whose_results_came_with_the_whole_conversation_waits_no_longer(served: ServedFace) -> None:
    asked = ask(served, input="weather", tools=[WEATHER])
    compact = {"model": "helper", "previous_response_id": asked["id"]}
    reply = HTTP.post(f"{served.url}/v1/responses/compact", json=compact)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "response_in_progress")
    calls_made = [item for item in asked["output"] if item["type"] == "function_call"]
    done = ask(served, input=[{"role": "user", "content": "weather"}, *calls_made, *results_of(asked, "snow")])
    assert done["output"][-1]["content"][0]["text"] == "It says: snow"
    assert HTTP.post(f"{served.url}/v1/responses/compact", json=compact).status_code == 200


OTHERWISE: dict[str, dict[str, Any]] = {
    "options": {"temperature": 0.5},
    "tools": {"tools": [{**WEATHER, "description": "Other."}]},
    "schema": {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}},
    "agent": {"model": "other"},
}


@pytest.mark.parametrize("name", list(OTHERWISE))
def test_results_under_other_options_do_not_continue_the_run(served: ServedFace, name: str) -> None:
    asked = ask(served, input="weather", tools=[WEATHER])
    body = {
        "model": "helper",
        "input": results_of(asked, "snow"),
        "previous_response_id": asked["id"],
        "tools": [WEATHER],
        **OTHERWISE[name],
    }
    reply = HTTP.post(f"{served.url}/v1/responses", json=body).json()
    assert not str(reply.get("id")).startswith(asked["id"])


def test_results_for_two_runs_at_once_continue_none(served: ServedFace) -> None:
    first, second = (ask(served, input="weather", tools=[WEATHER]) for _ in range(2))
    mixed = [results_of(first, "rain")[0], results_of(second, "snow")[1]]
    body = {"model": "helper", "input": mixed, "previous_response_id": first["id"], "tools": [WEATHER]}
    reply = HTTP.post(f"{served.url}/v1/responses", json=body).json()
    assert not str(reply.get("id")).startswith((first["id"], second["id"]))
    results = results_of(first, "rain")
    done = ask(served, input=results, previous_response_id=first["id"], tools=[WEATHER])
    assert done["id"].startswith(first["id"])  # both still wait


def test_a_response_shows_when_its_run_began_however_late_it_is_read(served: ServedFace) -> None:
    before = int(time.time())
    events = stream(served, background=True, input="Hi")
    heads = [event["response"] for event in events if "response" in event]
    assert len(heads) == 3
    assert {head["created_at"] for head in heads} <= {*range(before, int(time.time()) + 1)}
    assert len({head["created_at"] for head in heads}) == 1
    run_id = heads[0]["id"].removeprefix("resp_")
    kept = cast(ServingApp, served.app).serving._store.inner._kept[run_id]  # type: ignore[attr-defined]
    kept.run = replace(kept.run, began=1_600_000_000.9)
    url = f"{served.url}/v1/responses/{heads[0]['id']}"
    again = [event["response"] for event in events_of(HTTP.get(f"{url}?stream=true")) if "response" in event]
    assert {head["created_at"] for head in [*again, HTTP.get(url).json()]} == {1_600_000_000}
    compact = {"model": "helper", "previous_response_id": heads[0]["id"]}
    compacted = HTTP.post(f"{served.url}/v1/responses/compact", json=compact).json()
    assert before <= compacted["created_at"] <= int(time.time())


def test_a_response_shows_when_its_run_ended_and_no_time_for_a_pause(
    served: ServedFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = count(1_600_000_000, 100)
    monkeypatch.setattr(memory, "time", SimpleNamespace(time=lambda: next(times)))
    whole = ask(served, input="Hi")
    assert (whole["created_at"], whole["completed_at"]) == (1_600_000_000, 1_600_000_100)
    streamed = stream(served, input="Hi")[-1]["response"]
    assert streamed["completed_at"] == streamed["created_at"] + 100
    for one in (whole, streamed):
        assert HTTP.get(f"{served.url}/v1/responses/{one['id']}").json() == one
    paused = ask(served, input="weather", tools=[WEATHER])
    done = ask(served, input=results_of(paused, "rain"), previous_response_id=paused["id"], tools=[WEATHER])
    assert done["completed_at"] > done["created_at"] + 100
    assert paused["completed_at"] is None
    assert HTTP.get(f"{served.url}/v1/responses/{paused['id']}").json() == paused


def test_a_response_that_is_deleted_while_it_is_read_comes_to_its_end_without_a_time() -> None:
    class Paused(ScriptedModel):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("It ")
            await goes_on.wait()
            yield TextDelta("is.")
            yield ModelFinished("stop")

    goes_on = asyncio.Event()

    async def read() -> list[dict[str, Any]]:
        async with Serving({"helper": FnCallAgent(llm=Paused([]), name="helper")}) as serving:
            responses = Responses(serving, Conversations(serving))
            async with closing(responses.follow_new({"model": "helper", "input": "Hi"}, "", [])) as events:
                read = []
                async for event in events:
                    read.append(event)
                    if event.get("delta") == "It ":
                        goes_on.set()
                        run_id = read[0]["response"]["id"].removeprefix("resp_")
                        async with closing(serving.attach(run_id)) as others:
                            async for _ in others:
                                pass
                        await serving.delete(run_id)
        return read

    *_, last = asyncio.run(read())
    assert (last["type"], last["response"]["completed_at"]) == ("response.completed", None)
    assert last["response"]["output"][0]["content"][0]["text"] == "It is."


def test_a_conversation_with_half_a_character_is_shown(served: ServedFace, client: openai.OpenAI) -> None:
    conversation = client.conversations.create().id
    question = json.dumps({"model": "helper", "input": "half \ud83d", "conversation": conversation})
    reply = HTTP.post(f"{served.url}/v1/responses", content=question, headers={"content-type": "application/json"})
    assert reply.status_code == 200
    items = f"{served.url}/v1/conversations/{conversation}/items"
    first, _ = HTTP.get(items, params={"order": "asc"}).json()["data"]
    assert first["content"][0]["text"] == "half \ud83d"
    assert HTTP.get(f"{items}/{first['id']}").json() == first


def test_a_conversation_shows_when_it_was_made_and_no_instructions(client: openai.OpenAI) -> None:
    before = int(time.time())
    conversation = client.conversations.create(items=[], metadata={})
    assert before <= conversation.created_at <= before + 120
    assert client.conversations.retrieve(conversation.id).created_at == conversation.created_at
    client.responses.create(model="helper", input="Hi", instructions="Be brief.", conversation=conversation.id)
    items = list(client.conversations.items.list(conversation.id, order="asc"))
    assert [item.role for item in items if item.type == "message"] == ["user", "assistant"]
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve("item_none", conversation_id=conversation.id)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ({"metadata": {"a": "b"}}, "unsupported_parameter"),
        ({"items": [{"role": "user", "content": "Hi"}]}, "unsupported_parameter"),
        ({"title": ""}, "unknown_parameter"),
    ],
)
def test_a_conversation_begins_empty(served: ServedFace, table: dict[str, Any], code: str) -> None:
    reply = HTTP.post(f"{served.url}/v1/conversations", json=table)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"], error["code"]) == (400, next(iter(table)), code)


def test_a_page_has_20_items_the_latest_first_unless_a_request_asks_for_others(served: ServedFace) -> None:
    identity = ask(served, input=[{"role": "user", "content": str(number)} for number in range(101)])["id"]
    url = f"{served.url}/v1/responses/{identity}/input_items"
    for query, length in (("", 20), ("?limit=1", 1), ("?limit=100", 100)):
        page = HTTP.get(url + query).json()
        assert (len(page["data"]), page["data"][0]["content"][0]["text"]) == (length, "100")
        assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
    assert HTTP.get(f"{url}?limit=101").status_code == 400


def test_a_conversation_keeps_its_responses(client: openai.OpenAI) -> None:
    conversation = client.conversations.create()
    assert client.conversations.retrieve(conversation.id).id == conversation.id
    for text in ("one", "two"):
        response = client.responses.create(model="helper", input=text, conversation=conversation.id)
        assert response.conversation is not None
        assert response.conversation.id == conversation.id
    items = list(client.conversations.items.list(conversation.id, order="asc"))
    texts = [item.content[0].text for item in items if item.type == "message"]  # type: ignore[union-attr]
    assert texts == ["one", "You said: one", "two", "You said: two"]
    shown = client.conversations.items.retrieve(items[0].id or "", conversation_id=conversation.id)
    assert shown.id == items[0].id
    assert client.conversations.delete(conversation.id).deleted
    assert list(client.conversations.items.list(conversation.id)) == []


def test_a_conversation_of_another_owner_is_like_an_unknown_one() -> None:
    """Also before its first response, when no run has an owner."""
    tokens = {name: f"{name}-0123456789abcdef" for name in ("ada", "bob")}
    app = serving_app(
        {"helper": FnCallAgent(llm=ScriptedModel(script))}, faces=["openai"], tokens=Tokens(tokens.items())
    )
    with ServedFace(app) as face:
        ada, bob = (openai.OpenAI(base_url=f"{face.url}/v1", api_key=key, max_retries=0) for key in tokens.values())
        with ada, bob:
            identity = ada.conversations.create().id
            assert ada.conversations.retrieve(identity).id == identity
            for conversation in (identity, identity[:-1] + ("0" if identity[-1] != "0" else "1")):
                with pytest.raises(openai.NotFoundError):
                    bob.conversations.retrieve(conversation)
                with pytest.raises(openai.NotFoundError):
                    bob.conversations.delete(conversation)
                with pytest.raises(openai.NotFoundError):
                    bob.conversations.items.list(conversation)
                with pytest.raises(openai.NotFoundError):
                    bob.responses.create(model="helper", input="Hi", conversation=conversation)


def test_a_response_in_the_background_goes_on_without_a_client(client: openai.OpenAI) -> None:
    response = client.responses.create(model="helper", input="wait please", background=True)
    assert response.status in ("queued", "in_progress")
    assert client.responses.retrieve(response.id).status in ("queued", "in_progress")
    GATE.set()
    for _ in range(500):
        response = client.responses.retrieve(response.id)
        if response.status == "completed":
            break
        time.sleep(0.02)
    assert response.output_text == "It says: waited"


def test_a_response_in_the_background_can_be_cancelled(client: openai.OpenAI) -> None:
    response = client.responses.create(model="helper", input="wait please", background=True)
    cancelled = client.responses.cancel(response.id)
    assert cancelled.status == "cancelled"
    OPENAI_RESPONSE.validate_python(json.loads(cancelled.model_dump_json(exclude_unset=True)), strict=True)


def test_a_response_that_is_still_active_is_cancelled_and_deleted(client: openai.OpenAI) -> None:
    response = client.responses.create(model="helper", input="wait please", background=True)
    client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_a_client_that_leaves_ends_a_response_in_the_foreground_and_no_other(
    served: ServedFace, client: openai.OpenAI
) -> None:
    identities = {}
    for background in (False, True):
        events = client.responses.create(model="helper", input="wait please", stream=True, background=background)
        with events:
            identities[background] = next(iter(events)).response.id  # type: ignore[union-attr]
    for _ in range(500):
        if client.responses.retrieve(identities[False]).status == "cancelled":
            break
        time.sleep(0.02)
    assert client.responses.retrieve(identities[False]).status == "cancelled"
    assert client.responses.retrieve(identities[True]).status == "in_progress"


def test_a_deleted_response_and_one_that_was_not_to_be_stored_are_not_found(client: openai.OpenAI) -> None:
    stored = client.responses.create(model="helper", input="Hi")
    client.responses.delete(stored.id)
    transient = client.responses.create(model="helper", input="Hi", store=False)
    for identity in (stored.id, transient.id):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(identity)
        with pytest.raises(openai.NotFoundError, match="Previous response"):
            client.responses.create(model="helper", input="Hi", previous_response_id=identity)


def test_a_source_is_cited_by_its_name_and_not_by_its_folder(served: ServedFace) -> None:
    response = ask(served, **QUESTIONS["sources"])
    (annotation,) = response["output"][-1]["content"][0]["annotations"]
    assert (annotation["title"], annotation["url"]) == ("book.pdf, page 3", "file:book.pdf#page=3")
    assert "/srv" not in json.dumps(response)


def test_an_answer_follows_the_schema(client: openai.OpenAI) -> None:
    from pydantic import BaseModel

    class Place(BaseModel):
        city: str

    parsed = client.responses.parse(model="helper", input="json please", text_format=Place)
    assert parsed.output_parsed == Place(city="Bonn")


REFUSED = [
    ({"temperature": 3}, "temperature"),
    ({"foo": 1}, "foo"),
    ({"max_tool_calls": 1}, "max_tool_calls"),
    ({"top_logprobs": 3}, "top_logprobs"),
    ({"service_tier": "flex"}, "service_tier"),
    ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
    ({"tools": [{"type": "function", "name": "a b"}]}, "tools.0.name"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "name": "none"}}, "tool_choice"),
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "conversation"),
    ({"background": True, "store": False}, "background"),
    ({"input": []}, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "/etc/passwd"}]}]}, None),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "file:///etc/passwd"}]}]}, None),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, None),
    ({"input": [{"role": "user", "content": [{"text": "Hi"}]}]}, None),
    ({"input": [{"type": "item_reference", "id": "x"}]}, None),
    ({"include": ["file_search_call.results"]}, None),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format"),
]


@pytest.mark.parametrize(("change", "param"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_not_supported_is_refused_by_its_name(
    served: ServedFace, change: dict[str, Any], param: str | None
) -> None:
    reply = HTTP.post(f"{served.url}/v1/responses", json={"model": "helper", "input": "Hi", **change})
    assert reply.status_code in (400, 404), reply.text
    error = reply.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert param is None or error["param"] == param


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("starting_after=1", "starting_after"),
        ("stream=true&starting_after=x", "starting_after"),
        ("stream=true&starting_after=-2", "starting_after"),
        (f"stream=true&starting_after={'1' * 19}", "starting_after"),
        ("include=x", "include"),
    ],
)
def test_a_response_is_shown_by_known_parameters_only(served: ServedFace, query: str, param: str) -> None:
    identity = ask(served, input="Hi")["id"]
    reply = HTTP.get(f"{served.url}/v1/responses/{identity}?{query}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "order=up", "after=none", "foo=1"])
def test_a_page_that_does_not_exist_is_refused(served: ServedFace, query: str) -> None:
    identity = ask(served, input="Hi")["id"]
    reply = HTTP.get(f"{served.url}/v1/responses/{identity}/input_items?{query}")
    assert reply.status_code == 400


@pytest.mark.parametrize(("limit", "has_more"), [(2, True), (3, False), (4, False)])
def test_only_the_last_page_has_no_more(served: ServedFace, limit: int, has_more: bool) -> None:
    identity = ask(served, input=[{"role": "user", "content": str(number)} for number in range(3)])["id"]
    page = HTTP.get(f"{served.url}/v1/responses/{identity}/input_items?limit={limit}").json()
    assert (page["has_more"], len(page["data"])) == (has_more, min(limit, 3))
    rest = HTTP.get(f"{served.url}/v1/responses/{identity}/input_items?limit={limit}&after={page['last_id']}").json()
    assert (rest["has_more"], len(rest["data"])) == (False, 3 - min(limit, 3))


def test_pages_of_input_items_follow_each_other(served: ServedFace, client: openai.OpenAI) -> None:
    texts = [str(number) for number in range(7)]
    identity = ask(served, input=[{"role": "user", "content": text} for text in texts])["id"]
    for order, expected in (("asc", texts), ("desc", texts[::-1])):
        items = client.responses.input_items.list(identity, order=order, limit=2)  # type: ignore[arg-type]
        assert [item.content[0].text for item in items] == expected  # type: ignore[union-attr]
