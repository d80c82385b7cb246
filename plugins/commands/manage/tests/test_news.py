"""What is new is told once, what was agreed to is remembered by content, and nobody is asked where nobody is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jackfield.hookspecs import KINDS
from jackfield.projects import LocalFile
from jackfield_manage.judging.news import (
    Memory,
    News,
    Seen,
    describe,
    news,
    remarks_on,
    summarise,
    summarise_all,
)

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


def test_the_package_that_asks_is_no_news(site: Any, memory: Memory) -> None:
    site.add("jackfield-manage", {"command.plugins": "nowhere"})
    site.add_tools("acme", "x")
    assert changes(news(site.host(), memory.seen())) == {"acme": "new"}


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
        "llm.acme: receives conversations when used as the model; uses the network (api.acme.example); reads ACME_KEY"
    )
    assert processor == (
        "processor.peek: sees all questions and answers, once enabled; other effects are unknown until loaded"
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
    assert describe(newcomer, site.host())[0].startswith("tool.x: runs when called by the model")


# --- what counts as changed or gone ---


def test_a_blocked_package_is_not_gone_and_a_local_file_is_not_new(site: Any, memory: Memory, tmp_path: Path) -> None:
    site.add_tools("acme", "x")
    remember(memory, news(site.host(), memory.seen()))
    local = LocalFile(path=str(tmp_path / "mine.py"), name="mine@user", content="0" * 64)
    assert not news(site.host(block=frozenset({"acme"}), local=(local,)), memory.seen())


@pytest.mark.parametrize(("version", "change"), [("1.0", {}), ("2.0", {"acme": "changed"})])
def test_content_is_read_again_only_if_its_time_size_or_version_differs(
    site: Any, memory: Memory, version: str, change: dict[str, str]
) -> None:
    site.add_tools("acme", "x")
    remember(memory, news(site.host(), memory.seen()))
    status = (site.metadata("acme") / "RECORD").stat()
    site.remove("acme")
    site.add_tools("acme", "y", version=version)
    record = site.metadata("acme") / "RECORD"
    assert record.stat().st_size == status.st_size
    os.utime(record, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert changes(news(site.host(), memory.seen())) == change
    os.utime(record, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert changes(news(site.host(), memory.seen())) == {"acme": "changed"}


def test_the_state_is_kept_below_the_users_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "deep" / "state"))
    for state, folder in ((str(tmp_path / "deep" / "state"), "deep/state"), ("", "home/.local/state")):
        monkeypatch.setenv("XDG_STATE_HOME", state)
        Memory().keep({"acme": Seen("1.0", "", (1, 2), asked=True)})
        assert list(Memory().seen()) == ["acme"]
        assert (tmp_path / folder / "jackfield" / "seen.json").is_file()


# --- what is told of a newcomer ---


def newcomer_of(site: Any, memory: Memory, *specs: str, **settings: Any) -> Any:
    """Install `acme` with descriptors, each with the name of its kind, and return the newcomer and its host."""
    source = "\n".join(specs)
    kinds = [spec.partition("Spec(")[0].lower() for spec in specs]
    site.add("acme", {f"{kind}.{kind}": "acme_light" for kind in kinds}, modules={"acme_light": source})
    host = site.host(**settings)
    (newcomer,) = news(host, memory.seen()).newcomers
    return newcomer, host


@pytest.mark.parametrize(
    ("more", "effects"),
    [
        ("", []),
        ("effects={'network'}", ["uses the network"]),
        ("effects={'files', 'network', 'own'}, network=('b', 'a', 'a')", [
            "reads or writes files", "uses the network (a, b)", "own",
        ]),
        ("effects=['processes'], network=('b',)", ["starts processes"]),
        ("secrets=('B', 'A')", ["reads A, B"]),
        ("secrets=('B', 'A', 'C')", ["reads A, B, C"]),
        ("secrets=keys()", ["other effects are unknown until loaded"]),
        ("network=hosts()", ["other effects are unknown until loaded"]),
        ("effects=effects()", ["other effects are unknown until loaded"]),
        ("**more", ["other effects are unknown until loaded"]),
        ("summary=text()", []),
    ],
    ids=range(11),
)  # fmt: skip
def test_the_declared_effects_are_told_sorted_and_once(
    site: Any, memory: Memory, more: str, effects: list[str]
) -> None:
    newcomer, host = newcomer_of(site, memory, f"ToolSpec(name='tool', {more})")
    access = "tool.tool: runs when called by the model of an agent that has this tool"
    assert describe(newcomer, host) == ["; ".join([access, *effects])]
    assert summarise(newcomer, host) == "; ".join(["tool.tool", *effects])


def test_a_component_that_its_source_does_not_show_has_unknown_effects(site: Any, memory: Memory) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": ""})
    (newcomer,) = news(site.host(), memory.seen()).newcomers
    assert summarise(newcomer, site.host()) == "tool.x; other effects are unknown until loaded"


def test_what_acts_in_every_run_is_told_first_and_of_many_keys_only_two(site: Any, memory: Memory) -> None:
    newcomer, host = newcomer_of(
        site, memory, "ProcessorSpec(name='processor', secrets=('A', 'B', 'C'))", "ObserverSpec(name='observer')",
        enabled=("processor.processor",),
    )  # fmt: skip
    assert describe(newcomer, host) == [
        "observer.observer: sees every event of every run, once enabled",
        "processor.processor: sees all questions and answers: it acts in every run (`enabled` enables it); "
        "reads A, B, C",
    ]
    assert summarise(newcomer, host) == "observer.observer, processor.processor (acts in every run); reads A, B, C"
    assert summarise_all([newcomer], host) == (
        "in every run: processor; reads A, B and 1 more; offers observer.observer, processor.processor"
    )
    assert summarise_all([newcomer], site.host()).startswith("reads A, B and 1 more; offers ")


def test_of_two_keys_none_is_left_out(site: Any, memory: Memory) -> None:
    newcomer, host = newcomer_of(site, memory, "ToolSpec(name='tool', secrets=('A', 'B'))")
    assert summarise_all([newcomer], host) == "reads A, B; offers tool.tool"


def test_a_warning_that_holds_for_all_components_is_told_once(site: Any, memory: Memory) -> None:
    newcomer, host = newcomer_of(site, memory, "ToolSpec(name='tool')", "StoreSpec(name='store')")
    assert remarks_on(newcomer, host) == []
    (site.metadata("acme") / "RECORD").unlink()
    host = site.host()
    warning = "has no RECORD, so its owner cannot be verified"
    assert remarks_on(newcomer, host) == [warning]
    assert describe(newcomer, host)[1::2] == [f"  Warning: it {warning}"] * 2
    assert summarise(newcomer, host) == f"store.store, tool.tool; warning: it {warning}"
