"""Sources, documents, files of tools and suggestions, as the `mcp` client sees them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import EmbeddedResource, ResourceLink, TextContent
from starlette.requests import Request

from jackfield import FnCallAgent, create_agent, tool
from jackfield.agents import Agent, Event, Run
from jackfield.citations import CITATIONS, Citation
from jackfield.events import ModelEvent, PluginEvent, RunFinished
from jackfield.messages import ContentItem, Message, Usage
from jackfield.request import ChatRequest
from jackfield.servers import OWNER
from jackfield.testing import ScriptedModel, answer
from jackfield_mcp_server.resources import AgentResources
from jackfield_records.entries import entry_of
from jackfield_serve import Tokens, serving_app
from jackfield_serving import MemoryStore, Numbered, Serving
from jackfield_testkit.faces import ServedFace

ADA, BOB = "ada-0123456789abcdef", "bob-0123456789abcdef"
LIMIT_S = 60
PASSAGE = "A panel has 48 sockets."
SUGGESTION = "How many sockets does a panel have?"
Serve = Callable[..., ServedFace]


@tool
def write_report() -> list[ContentItem]:
    """Write a report."""
    pdf = base64.b64encode(b"%PDF-1.7").decode()
    return [
        ContentItem(file="data:text/csv;name=sums%20of%20May.csv,a%2Cb"),
        ContentItem(file=f"data:application/pdf;base64,{pdf}"),
        ContentItem(file="data:text/plain;base64,~~~"),
        ContentItem(file="/srv/secret/plan.txt"),
    ]


def reads(request: ChatRequest) -> Sequence[ModelEvent]:
    return answer("It has “48 sockets” [1].")


def talk(url: str, work: Callable[[Client], Awaitable[Any]], *, mode: Any = "auto", token: str = "") -> Any:
    async def run() -> Any:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with (
            asyncio.timeout(LIMIT_S),
            httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            try:
                return await work(client)
            except MCPError as error:  # the client's task groups would wrap it
                return error

    result = asyncio.run(run())
    if isinstance(result, MCPError):
        raise result
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    guides = tmp_path / "private-guides"
    for name in ("first", "second"):
        (guides / name).mkdir(parents=True)
        (guides / name / "guide.md").write_text(f"# Panels\n\n{PASSAGE}\n\nThis is the {name} guide.\n")
    (guides / "plan b.pdf").write_bytes(b"%PDF-1.7 \xff")
    return guides


@pytest.fixture
def serve(folder: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(*, tokens: bool = False, **settings: Any) -> ServedFace:
            agents: dict[str, Agent] = {
                "reader": create_agent(
                    "assistant", llm=ScriptedModel(reads), files=[str(folder / "first")], suggestions=[SUGGESTION]
                ),
                "clerk": FnCallAgent([write_report], ScriptedModel(reads)),
                "librarian": create_agent("assistant", llm=ScriptedModel(reads), files=[str(folder)]),
            }
            known = Tokens([("ada", ADA), ("bob", BOB)]) if tokens else None
            app = serving_app(agents, faces=[{"name": "mcp", **settings}], tokens=known)
            return stack.enter_context(ServedFace(app))

        yield start


async def ask(client: Client) -> Any:
    return await client.call_tool("reader", {"message": "How many sockets?"})


def links_in(result: Any) -> list[ResourceLink]:
    return [block for block in result.content if isinstance(block, ResourceLink)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cited_passage_is_a_resource_that_the_result_links_to(serve: Serve, folder: Path, mode: Any) -> None:
    async def work(client: Client) -> None:
        result = await ask(client)
        (link,) = links_in(result)
        run_id = result.structured_content["conversation"]
        assert (link.uri, link.mime_type) == (f"jackfield://runs/{run_id}/sources/1", "text/plain")
        assert link.name.startswith("guide.md")
        contents: Any = (await client.read_resource(link.uri)).contents[0]
        assert PASSAGE in contents.text
        assert link.size == len(contents.text.encode())
        listed = (await client.list_resources()).resources
        assert [(one.uri, one.name, one.size) for one in listed] == [(link.uri, link.name, link.size)]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["jackfield://runs/{conversation}/sources/{number}"]
        shown = "".join(one.model_dump_json() for one in (result, contents, *listed))
        assert str(folder.parent) not in shown
        assert "private-guides" not in shown

    talk(serve().url, work, mode=mode)


def test_sources_are_those_of_the_token_only(serve: Serve) -> None:
    url = serve(tokens=True).url
    (link,) = links_in(talk(url, ask, token=ADA))

    async def look(client: Client) -> list[str]:
        return [one.uri for one in (await client.list_resources()).resources]

    async def read(client: Client) -> Any:
        return (await client.read_resource(link.uri)).contents[0]

    assert talk(url, look, token=ADA) == [link.uri]
    assert PASSAGE in talk(url, read, token=ADA).text
    assert talk(url, look, token=BOB) == []
    with pytest.raises(MCPError, match="no such resource"):
        talk(url, read, token=BOB)


@pytest.mark.parametrize(
    "uri",
    [
        "jackfield://runs/{run}/sources/0", "jackfield://runs/{run}/sources/2", "jackfield://runs/{run}/sources/-1",
        "jackfield://runs/{run}/sources/9999999999", "jackfield://runs/{run}/sources/1/", "jackfield://runs/none/sources/1",
        "jackfield://runs/..%2f{run}/sources/1", "jackfield://agents/reader/documents/guide.md", "jackfield://",
        "jackfield://agents/reader/documents/..%2Fguide.md", "file:///etc/passwd", "https://example.org/",
        "runs/{run}/sources/1", "jackfield://runs/{run}/sources/" + "1" * 5000,
    ],
)  # fmt: skip
def test_other_addresses_are_errors_of_the_client(serve: Serve, uri: str) -> None:
    async def work(client: Client) -> None:
        run_id = (await ask(client)).structured_content["conversation"]
        await client.read_resource(uri.format(run=run_id))

    with pytest.raises(MCPError, match="no such resource"):
        talk(serve().url, work)


def test_documents_are_offered_only_if_the_operator_says_so(serve: Serve, folder: Path) -> None:
    async def work(client: Client) -> list[Any]:
        return [*(await client.list_resources()).resources]

    assert talk(serve().url, work) == []
    (folder / "large.txt").write_bytes(b"x" * 10_000_001)
    listed = talk(serve(documents=True).url, work)
    assert sorted((one.uri, one.name, one.mime_type) for one in listed) == [
        ("jackfield://agents/librarian/documents/guide.md", "guide.md", "text/markdown"),
        ("jackfield://agents/librarian/documents/guide.md/2", "guide.md", "text/markdown"),
        ("jackfield://agents/librarian/documents/plan%20b.pdf", "plan b.pdf", "application/pdf"),
        ("jackfield://agents/reader/documents/guide.md", "guide.md", "text/markdown"),
    ]
    assert str(folder.parent) not in "".join(one.model_dump_json() for one in listed)


def test_documents_are_read_as_text_or_as_bytes(serve: Serve) -> None:
    async def work(client: Client) -> None:
        for uri, words in (("guide.md", "first guide"), ("guide.md/2", "second guide")):
            contents: Any = (await client.read_resource(f"jackfield://agents/librarian/documents/{uri}")).contents[0]
            assert words in contents.text
        pdf: Any = (await client.read_resource("jackfield://agents/librarian/documents/plan%20b.pdf")).contents[0]
        assert base64.b64decode(pdf.blob) == b"%PDF-1.7 \xff"
        assert pdf.mime_type == "application/pdf"

    talk(serve(documents=True).url, work)


def test_lists_have_pages(serve: Serve, folder: Path) -> None:
    for number in range(150):
        (folder / "first" / f"note-{number:03}.txt").write_text("A note.")

    async def work(client: Client) -> list[str]:
        first = await client.list_resources()
        assert (len(first.resources), bool(first.next_cursor)) == (100, True)
        names, cursor = [one.uri for one in first.resources], first.next_cursor
        while cursor:
            page = await client.list_resources(cursor=cursor)
            names, cursor = [*names, *(one.uri for one in page.resources)], page.next_cursor
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="x")
        return names

    uris = talk(serve(documents=True).url, work)
    assert len(uris) == len(set(uris)) == 151 + 153


class Counted(Serving):
    """A service that counts how often a record is read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.reads = 0

    def attach(self, *arguments: Any, **options: Any) -> AsyncIterator[Numbered]:
        self.reads += 1
        return super().attach(*arguments, **options)


def cited(number: int) -> PluginEvent:
    citation = Citation(mark="1", location=f"page-{number}.md", passage=f"Passage {number}.")
    return PluginEvent("test.citations", {CITATIONS: [citation.to_dict()]})


async def continue_elsewhere(store: MemoryStore, run_id: str) -> None:
    """Cite one more page in a run, as another process does."""
    hold = await store.hold(run_id)
    await store.append(run_id, hold, [entry_of(cited(9), with_texts=True)])
    end = RunFinished("finished", (), Usage())
    await store.append(run_id, hold, [entry_of(end, with_texts=True)], state="finished")


class Citing(Agent):
    """Cites one more page in each of its runs."""

    resumable = True
    runs_begun = 0

    async def events(self, run: Run) -> AsyncIterator[Event]:
        self.runs_begun += 1
        yield cited(self.runs_begun)
        yield RunFinished("finished", (Message("assistant", "Done."),), Usage())


@pytest.fixture
def listing() -> Callable[..., Any]:
    """A function that calls another one with a counted service, its store, a function that asks, and one that lists.

    Questions go to another process.
    """

    def run(work: Callable[..., Awaitable[None]]) -> None:
        async def main() -> None:
            store = MemoryStore()
            agents = {"a": Citing(name="a")}
            async with (
                asyncio.timeout(LIMIT_S),
                Serving(agents, store=store) as asked,
                Counted(agents, store=store, poll_s=0.0) as serving,
            ):
                resources = AgentResources(serving, has_documents=False)

                async def ask(owner: str = "") -> str:
                    run_id = await asked.start("a", "Go.", owner=owner)
                    async for _ in asked.attach(run_id, owner=owner):
                        pass
                    return run_id

                async def names(owner: str = "") -> tuple[list[str], int]:
                    before = serving.reads
                    scope = {"type": "http", OWNER: owner}
                    context: Any = SimpleNamespace(request=Request(scope))
                    listed = (await resources.list_resources(context, None)).resources
                    return [one.name for one in listed], serving.reads - before

                await work(serving, store, ask, names)

        asyncio.run(main())

    return run


def test_a_list_of_sources_reads_a_record_once_until_it_gets_longer(listing: Callable[..., Any]) -> None:
    async def work(serving: Counted, store: MemoryStore, ask: Any, names: Any) -> None:
        first = await ask()
        assert [await names(), await names()] == [(["page-1.md"], 1), (["page-1.md"], 0)]
        await ask()
        assert await names() == (["page-2.md", "page-1.md"], 1), "only the new one"
        await continue_elsewhere(store, first)
        assert await names() == (["page-2.md", "page-1.md", "page-9.md"], 1), "another process continued it"
        await serving.delete(first)
        assert await names() == (["page-2.md"], 0)

    listing(work)


def test_a_list_that_lacks_the_end_of_a_record_is_not_kept(listing: Callable[..., Any]) -> None:
    """A service has the events of its own latest runs, also after another process has continued one of them."""

    async def work(serving: Counted, store: MemoryStore, ask: Any, names: Any) -> None:
        run_id = await serving.start("a", "Go.")
        async for _ in serving.attach(run_id):
            pass
        await continue_elsewhere(store, run_id)
        assert (await names())[1] == (await names())[1] == 1

    listing(work)


def test_a_run_that_takes_the_id_of_a_deleted_one_has_its_own_sources(listing: Callable[..., Any]) -> None:
    async def work(serving: Counted, store: MemoryStore, ask: Any, names: Any) -> None:
        first = await ask()
        assert await names() == (["page-1.md"], 1)
        kept = store._kept[first]
        kept.run = replace(kept.run, began=kept.run.began + 1)
        kept.entries[1] = entry_of(cited(5), with_texts=True)
        assert await names() == (["page-5.md"], 1)

    listing(work)


def test_sources_that_are_kept_are_those_of_their_owner_and_have_a_limit(
    listing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_mcp_server.resources._MAX_KEPT", 2)

    async def work(serving: Counted, store: MemoryStore, ask: Any, names: Any) -> None:
        for owner in ("ada", "bob"):
            await ask(owner)
        assert [await names(owner) for owner in ("ada", "bob", "ada", "eve")] == [
            (["page-1.md"], 1),
            (["page-2.md"], 1),
            (["page-1.md"], 0),
            ([], 0),
        ]
        await ask("cy")
        assert [(await names(owner))[1] for owner in ("cy", "ada", "bob")] == [1, 0, 1], "bob's were used before ada's"

    listing(work)


def test_a_list_does_not_wait_for_a_run_that_goes_on_meanwhile(listing: Callable[..., Any]) -> None:
    async def work(serving: Counted, store: MemoryStore, ask: Any, names: Any) -> None:
        first = await ask()
        runs = await serving.runs()
        await store.append(first, await store.hold(first), [entry_of(cited(9), with_texts=True)])
        serving.runs = AsyncMock(return_value=runs)  # type: ignore[method-assign]
        assert await names() == (["page-1.md"], 1)

    listing(work)


def test_files_of_a_tool_are_embedded_with_their_names(serve: Serve) -> None:
    async def work(client: Client) -> Any:
        return await client.call_tool("clerk__write_report", {})

    result = talk(serve(tools=True).url, work)
    files: list[Any] = [block.resource for block in result.content if isinstance(block, EmbeddedResource)]
    assert [(one.uri, one.mime_type) for one in files] == [
        ("attachment:///sums%20of%20May.csv", "text/csv"),
        ("attachment:///file.pdf", "application/pdf"),
    ]
    assert files[0].text == "a,b"
    assert base64.b64decode(files[1].blob) == b"%PDF-1.7"
    assert "/srv/secret" not in result.model_dump_json()


def test_suggestions_are_prompts(serve: Serve) -> None:
    async def work(client: Client) -> None:
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.title) == ("reader-1", SUGGESTION)
        (message,) = (await client.get_prompt("reader-1")).messages
        assert (message.role, message.content) == ("user", TextContent(text=SUGGESTION))
        with pytest.raises(MCPError, match="unknown prompt 'reader-2'"):
            await client.get_prompt("reader-2")

    talk(serve().url, work)
