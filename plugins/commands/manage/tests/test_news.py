"""What is new is told once, what was agreed to is remembered by content, and nobody is asked where nobody is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jackfield.hookspecs import KINDS
from jackfield_manage.judging.news import Memory, News, Seen, describe, news, summarise

LIGHT = """
from jackfield.plugins import LLMSpec, ProcessorSpec, hook
raise SystemExit("it ran")
HOSTS = ("api.acme.example",)

@hook.llms
def llms():
    return [LLMSpec(name="acme", target="m:T", secrets=("ACME_KEY",), network=HOSTS, effects={"network"})]

@hook.processors
def processors():
    return [ProcessorSpec(name="peek", target="m:P", effects=effects_of_today())]
"""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "state" / "seen.json", "here")


def remember(memory: Memory, found: News, *, asked: bool = True) -> None:
    kept = {one.distribution: Seen(one.seen.version, one.seen.content, one.seen.mark, asked) for one in found.newcomers}
    memory.keep({**memory.seen(), **kept})


def changes(found: News) -> dict[str, str]:
    return {one.distribution: one.change for one in found.newcomers}


def test_everything_is_new_at_first_and_nothing_is_once_it_was_agreed_to(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    site.add_tools("other", "y")
    assert changes(news(site.host(), memory.seen())) == {"acme": "new", "other": "new"}
    remember(memory, news(site.host(), memory.seen()))
    assert not news(site.host(), memory.seen())
    site.add_tools("third", "z")
    assert changes(news(site.host(), memory.seen())) == {"third": "new"}


def test_a_changed_wheel_is_asked_about_again_even_with_its_old_version(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    remember(memory, news(site.host(), memory.seen()))
    site.remove("acme")
    site.add_tools("acme", "x", before="import os")
    assert changes(news(site.host(), memory.seen())) == {"acme": "changed"}


def test_the_same_content_installed_again_is_not_asked_about(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    remember(memory, news(site.host(), memory.seen()))
    site.remove("acme")
    site.add_tools("acme", "x")
    assert not news(site.host(), memory.seen())


def test_a_component_of_every_kind_is_described_by_what_it_sees_or_does(site: Any, memory: Memory) -> None:
    site.add("acme", {f"{kind}.x": "acme_light" for kind in KINDS}, modules={"acme_light": ""})
    (newcomer,) = news(site.host(), memory.seen()).newcomers
    lines = describe(newcomer, site.host())
    accesses = {line.partition(".")[0]: line.partition(": ")[2].partition(";")[0] for line in lines}
    assert accesses.keys() == set(KINDS)
    assert len(set(accesses.values())) == len(KINDS)


def test_what_was_only_told_is_still_to_be_asked(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    remember(memory, news(site.host(), memory.seen()), asked=False)
    assert changes(news(site.host(), memory.seen())) == {"acme": "not asked about"}


def test_what_has_gone_is_told(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    remember(memory, news(site.host(), memory.seen()))
    site.remove("acme")
    assert news(site.host(), memory.seen()).gone == ("acme",)


def test_what_may_not_load_is_no_news(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    assert not news(site.host(block=frozenset({"acme"})), memory.seen())
    assert not news(site.host(safe=True), memory.seen())


def test_another_environment_has_a_memory_of_its_own(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    remember(memory, news(site.host(), memory.seen()))
    other = Memory(memory.path, "elsewhere")
    assert changes(news(site.host(), other.seen())) == {"acme": "new"}
    remember(other, news(site.host(), other.seen()))
    assert set(json.loads(memory.path.read_text())) == {"here", "elsewhere"}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"here": 5}', '{"here": {"acme": 5}}', '{"here": {"acme": {"version": 1}}}', "[" * 10_000, "\0"],
    ids=range(8),
)
def test_a_memory_that_was_spoilt_remembers_nothing_and_is_mended(site: Any, memory: Memory, content: str) -> None:
    memory.path.parent.mkdir()
    memory.path.write_text(content)
    site.add_tools("acme", "x")
    assert changes(news(site.host(), memory.seen())) == {"acme": "new"}
    remember(memory, news(site.host(), memory.seen()))
    assert not news(site.host(), memory.seen())


def test_a_distribution_without_a_record_is_judged_by_the_date_of_its_metadata(site: Any, memory: Memory) -> None:
    site.add_tools("acme", "x")
    (site.metadata("acme") / "RECORD").unlink()
    remember(memory, news(site.host(), memory.seen()))
    assert not news(site.host(), memory.seen())
    (site.metadata("acme") / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\nSummary: new\n")
    assert changes(news(site.host(), memory.seen())) == {"acme": "changed"}


@pytest.fixture
def acme(site: Any, memory: Memory) -> Any:
    site.add("acme", {"llm.acme": "acme_light", "processor.peek": "acme_light"}, modules={"acme_light": LIGHT})
    (newcomer,) = news(site.host(), memory.seen()).newcomers
    return newcomer


def test_what_a_newcomer_would_see_and_do_is_told_without_running_it(site: Any, acme: Any) -> None:
    llm, processor = describe(acme, site.host())
    assert llm == (
        "llm.acme: receives conversations, if it is the model; uses the network (api.acme.example); reads ACME_KEY"
    )
    assert processor == (
        "processor.peek: sees all questions and answers, once it is enabled; "
        "its other effects are unknown until it is loaded"
    )


def test_several_are_told_in_a_line_each(site: Any, acme: Any) -> None:
    assert summarise(acme, site.host()).startswith(
        "llm.acme, processor.peek; uses the network (api.acme.example); reads ACME_KEY"
    )


@pytest.mark.parametrize("value", ["5", "None", "{'a': 1}", "('x', 5)", "'network'"])
def test_a_source_that_says_nonsense_is_told_all_the_same(site: Any, memory: Memory, value: str) -> None:
    source = f"ToolSpec(name='x', effects={value}, secrets={value}, network={value})"
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": source})
    (newcomer,) = news(site.host(), memory.seen()).newcomers
    assert describe(newcomer, site.host())[0].startswith("tool.x: runs when a model calls it")
