"""Resources, prompts and checked requests, without a server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from jackfield.citations import CITATIONS
from jackfield.errors import RunNotFoundError
from jackfield.events import PluginEvent, RunEvent, TextDelta
from jackfield.servers import OWNER, RequestRefusedError
from jackfield_mcp_server.prompts import AgentPrompts
from jackfield_mcp_server.requests import CheckedRequests
from jackfield_mcp_server.resources import AgentResources, Passages, contents_of


def cited(passage: str, *, depth: int = 0, page: int | None = None, location: str = "a.pdf") -> RunEvent:
    entry = {"mark": "1", "location": location, "page": page, "passage": passage, "answer_ranges": []}
    return RunEvent("r", 1, "a", depth, PluginEvent("x", {CITATIONS: [entry]}))


class Runs:
    """A service with documents and recorded runs, which only serves this test."""

    def __init__(self, *names: str, **runs: tuple[str, list[RunEvent]]) -> None:
        self.agents, self._names, self._runs = ["clerk/1"], names, runs
        self.owners: list[str] = []

    def documents(self, _agent: str) -> tuple[str, ...]:
        return self._names

    async def run(self, run_id: str, *, owner: str) -> Any:
        self.owners.append(owner)
        if run_id not in self._runs:
            raise RunNotFoundError("no")
        phase, events = self._runs[run_id]
        return SimpleNamespace(run_id=run_id, phase=phase, owner=owner, began=1.0, number=len(events))

    async def runs(self, *, owner: str, limit: int) -> list[Any]:
        self.owners.append(owner)
        return [await self.run(run_id, owner=owner) for run_id in self._runs][:limit]

    async def attach(self, run_id: str, *, owner: str) -> Any:
        for number, event in enumerate(self._runs[run_id][1], 1):
            yield number, event


NOBODY: Any = SimpleNamespace(request=None)


def resources_of(runs: Runs, *, has_documents: bool = True) -> AgentResources:
    service: Any = runs
    return AgentResources(service, has_documents=has_documents)


def listed(resources: AgentResources, cursor: str | None = None) -> tuple[list[str], str | None]:
    params: Any = SimpleNamespace(cursor=cursor)
    page = asyncio.run(resources.list_resources(NOBODY, params))
    return [str(one.uri) for one in page.resources], page.next_cursor


def read(resources: AgentResources, uri: str) -> Any:
    params: Any = SimpleNamespace(uri=uri)
    return asyncio.run(resources.read(NOBODY, params)).contents[0]


@pytest.mark.parametrize(
    ("count", "pages"),
    [(0, [(0, None)]), (100, [(100, None)]), (101, [(100, "100"), (1, None)]), (200, [(100, "100"), (100, None)])],
)
def test_a_page_has_100_resources_and_names_the_next_one_only_if_there_is_one(
    count: int, pages: list[tuple[int, str | None]], tmp_path: Path
) -> None:
    for number in range(count):
        (tmp_path / f"{number:03}.txt").write_text("x")
    resources = resources_of(Runs(str(tmp_path)) if count else Runs())
    cursor, seen, uris = None, [], []
    while not seen or cursor:
        page, cursor = listed(resources, cursor)
        seen.append((len(page), cursor))
        uris += page
    assert seen == pages
    assert len(set(uris)) == count
    assert listed(resources, "999999999") == ([], None)
    for wrong in ("x", "-1", "²", "1" * 10):
        with pytest.raises(MCPError, match="invalid cursor: start again without a cursor"):
            listed(resources, wrong)


def test_documents_of_one_name_have_numbers_and_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_mcp_server.resources._MAX_DOCUMENT_BYTES", 5)
    names = []
    for folder, text in (("a", "one"), ("b", "too large"), ("c", "three")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "n 1.txt").write_text(text)
        names.append(str(tmp_path / folder / "n 1.txt"))
    (tmp_path / "n 1.txt").symlink_to(tmp_path / "gone.txt")
    names.append(str(tmp_path))
    resources = resources_of(Runs(*names, "https://example.org/n.txt"))
    base = "jackfield://agents/clerk%2F1/documents/n%201.txt"
    assert listed(resources)[0] == [base, f"{base}/3"]
    assert [read(resources, uri).text for uri in (base, f"{base}/3")] == ["one", "three"]
    for uri in (
        f"{base}/2",
        f"{base}/4",
        f"{base}/1",
        base.replace("jackfield:", "x:"),
    ):
        with pytest.raises(MCPError, match="no such resource: list the resources"):
            read(resources, uri)
    hidden = resources_of(Runs(*names), has_documents=False)
    assert listed(hidden)[0] == []
    with pytest.raises(MCPError):
        read(hidden, base)
    for has_documents, count in ((True, 2), (False, 1)):
        templates = asyncio.run(resources_of(Runs(), has_documents=has_documents).list_templates(NOBODY, None))
        assert len(templates.resource_templates) == count


def test_the_passages_of_an_answer_are_numbered_once_each_and_those_of_nested_agents_are_not() -> None:
    events = [
        cited("low at six", page=1),
        RunEvent("r", 2, "a", 0, TextDelta("Hi")),
        cited("of a helper", depth=1),
        cited("low at six", page=1),
        cited("low at six", page=2),
        cited("low at six", page=1, location="b.pdf"),
        cited("high at noon", page=1),
        cited(""),
    ]
    resources = resources_of(Runs(r=("ended", events), s=("running", events), w=("waiting", events)))
    base = "jackfield://runs/r/sources"
    assert listed(resources)[0] == [f"{base}/{number}" for number in (1, 2, 3, 4)]
    assert [read(resources, f"{base}/{number}").text for number in (1, 3, 4)] == ["low at six"] * 2 + ["high at noon"]
    assert read(resources, "jackfield://runs/%72/sources/4").text == "high at noon"
    for uri in (
        f"{base}/0", f"{base}/5", f"{base}/²", f"{base}/x", f"{base}/{'1' * 10}", f"{base}/1/2", "jackfield://runs/s/sources/1",
        "jackfield://runs/t/sources/1", f"x{base}/1", "runs/r/sources/1", f"{base}/{'0' * 2000}1",
    ):  # fmt: skip
        with pytest.raises(MCPError, match="no such resource: list the resources"):
            read(resources, uri)


def test_a_passage_is_cut_and_its_size_is_that_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_mcp_server.resources._MAX_PASSAGE_CHARS", 4)
    passages = Passages()
    passages.feed(cited("éé\ud83dabc"))
    assert passages.texts() == ["éé?a"]
    [link] = passages.links("r")
    [resource] = passages.resources("r")
    assert (str(link.uri), link.size, link.mime_type) == ("jackfield://runs/r/sources/1", 6, "text/plain")
    assert (str(resource.uri), resource.size, resource.name) == (str(link.uri), 6, link.name)
    passages.feed(cited("x", location=""))
    assert passages.resources("r")[-1].name == "source"


@pytest.mark.parametrize(
    ("media_type", "content", "is_text"),
    [
        ("text/plain", b"Hi", True),
        ("application/json", b"{}", True),
        ("application/octet-stream", b"Ebbe um sieben", True),
        ("application/pdf", b"%PDF-1.7", False),
        ("application/pdf", b"Ebbe um sieben", False),
        ("image/svg+xml", b"<svg/>", False),
        ("audio/wav", b"RIFF", False),
        ("video/mp4", b"ftyp", False),
        ("application/octet-stream", bytes(range(256)), False),
    ],
)
def test_only_a_text_is_read_as_one(media_type: str, content: bytes, is_text: bool) -> None:
    contents = contents_of("attachment:///a", media_type, content)
    assert (hasattr(contents, "text"), contents.mime_type) == (is_text, media_type)


def test_prompts_are_the_suggestions_of_each_agent_with_their_numbers() -> None:
    agents = {"a": SimpleNamespace(suggestions=["One?", "Two?"]), "b": SimpleNamespace(suggestions=[])}
    service: Any = SimpleNamespace(agents=agents)
    prompts = AgentPrompts(service)
    assert len(prompts) == 2
    listed = asyncio.run(prompts.list_prompts(NOBODY, None)).prompts
    assert [(one.name, one.title, one.description) for one in listed] == [
        ("a-1", "One?", "A question for a."), ("a-2", "Two?", "A question for a."),
    ]  # fmt: skip
    params: Any = SimpleNamespace(name="a-2")
    [message] = asyncio.run(prompts.get_prompt(NOBODY, params)).messages
    assert (message.role, message.content.text) == ("user", "Two?")  # type: ignore[union-attr]
    for name, shown in (("a-0", "'a-0'"), ("x" * 101, f"'{'x' * 100}'")):
        params = SimpleNamespace(name=name)
        with pytest.raises(MCPError, match=f"unknown prompt {shown}:"):
            asyncio.run(prompts.get_prompt(NOBODY, params))


# --- requests ---


async def _send(_message: Any) -> None:
    pass


@pytest.mark.parametrize("owner", ["", "ada"])
def test_a_request_is_read_again_by_the_sdk_and_bound_to_its_owner(owner: str) -> None:
    seen: dict[str, Any] = {}

    async def handle(scope: Any, receive: Any, _send: Any) -> None:
        seen.update(user=scope.get("user"), messages=[await receive(), await receive()])

    messages = iter([
        {"type": "http.request", "body": b'{"a":', "more_body": True},
        {"type": "http.request", "body": b"1}", "more_body": False},
        {"type": "http.disconnect"},
    ])  # fmt: skip

    async def receive() -> Any:
        return next(messages)

    scope: Any = {"type": "http", "method": "POST", "headers": [], "path": "/", OWNER: owner}
    asyncio.run(CheckedRequests(handle)(scope, receive, _send))
    assert seen["messages"] == [
        {"type": "http.request", "body": b'{"a":1}', "more_body": False}, {"type": "http.disconnect"},
    ]  # fmt: skip
    assert (seen["user"].access_token.client_id if seen["user"] else "") == owner


def test_a_body_that_is_no_strict_json_is_refused_before_the_sdk_reads_it() -> None:
    async def handle(*_: Any) -> None:
        raise AssertionError("it was read")

    async def receive() -> Any:
        return {"type": "http.request", "body": b'{"a": 1, "a": 2}', "more_body": False}

    with pytest.raises(RequestRefusedError):
        asyncio.run(
            CheckedRequests(handle)({"type": "http", "method": "POST", "headers": [], "path": "/"}, receive, _send)
        )
