"""`plugins enable` and `disable`: the choices that each name leads to."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost
from jackfield.settings import choices_path, load_settings
from jackfield_manage.choices import Choices, load_choices, write_choices
from jackfield_manage.cli.policy import disable, enable
from tests.support.site import FakeSite


@pytest.fixture
def host(site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], PluginHost]:
    """Makes a host that sees two tools, a processor and a source of tools, and the user's files."""
    for name in [name for name in os.environ if name.startswith("JACKFIELD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    site.add("acme-tools", {"tool.x": "nowhere", "tool.y": "nowhere"})
    site.add("acme-guard", {"processor.guard": "nowhere", "processor.watch": "nowhere"})
    site.add("acme-more", {"tool.*": "nowhere"})
    return lambda: PluginHost(load_settings(), paths=[str(site.folder)])


FORMS = ("acme-tools", "tool.x", "acme-tools/x", "tool.acme-tools/x")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Acme_Tools", "acme-tools"),
        ("tool.x", "tool.x"),
        ("acme-tools/x", "acme-tools/x"),
        ("tool.acme-tools/x", "tool.acme-tools/x"),
        ("x", "tool.x"),
    ],
)
@pytest.mark.parametrize("other", ["x", *FORMS])
def test_a_disabled_tool_is_enabled_by_any_of_its_names(
    name: str, rule: str, other: str, host: Callable[[], PluginHost]
) -> None:
    write_choices(Choices(block=("kept",)))
    assert disable(host(), [name]) == 0
    assert load_choices() == Choices(block=("kept", rule))
    (row,) = [row for row in host().catalog.rows if row.id == "tool.x"]
    assert host().policy.why_not(row)
    assert enable(host(), [other]) == 0
    assert load_choices() == Choices(block=("kept",))
    assert not host().policy.why_not(row)


@pytest.mark.parametrize(
    ("name", "blocked"),
    [
        ("x", {"tool.acme-tools/x", "tool.acme-twins/x", "llm.acme-twins/x"}),
        ("tool.x", {"tool.acme-tools/x", "tool.acme-twins/x"}),
        ("acme-twins/x", {"tool.acme-twins/x", "llm.acme-twins/x"}),
        ("tool.acme-twins/x", {"tool.acme-twins/x"}),
    ],
)
def test_a_name_blocks_all_components_of_that_name_and_no_others(
    name: str, blocked: set[str], host: Callable[[], PluginHost], site: FakeSite
) -> None:
    site.add("acme-twins", {"tool.x": "nowhere", "llm.x": "nowhere"})
    assert disable(host(), [name]) == 0
    rows = host().catalog.rows
    assert {f"{row.kind}.{row.address}" for row in rows if host().policy.why_not(row)} == blocked
    assert enable(host(), [name]) == 0
    assert load_choices() == Choices()


def test_the_state_of_everything_that_is_named_is_told_after_the_change(
    host: Callable[[], PluginHost], capsys: pytest.CaptureFixture[str]
) -> None:
    def states(change: Callable[..., int]) -> dict[str, str]:
        assert change(host(), ["acme-tools", "guard", "x"]) == 0
        first, *lines = capsys.readouterr().out.splitlines()
        assert first == f"Wrote {choices_path()}"
        words = [line.split(" ", 2) for line in lines]
        assert [address for _, address, _ in words] == ["acme-tools/x", "acme-tools/y", "acme-guard/guard"]
        return {address: reason for _, address, reason in words}

    before, after = states(enable), states(disable)
    assert [before[address] != after[address] for address in before] == [True, True, True]
    assert "acme-tools" in after["acme-tools/y"]
    assert states(enable) == before


@pytest.mark.parametrize("name", ["guard", "processor.guard", "acme-guard/guard", "processor.acme-guard/guard"])
def test_a_processor_is_enabled_by_its_full_name_and_disabled_by_any(name: str, host: Callable[[], PluginHost]) -> None:
    assert enable(host(), ["watch"]) == enable(host(), ["guard", name]) == 0
    full = ("processor.acme-guard/watch", "processor.acme-guard/guard")
    assert load_choices() == Choices(enabled=full)
    assert disable(host(), [name]) == 0
    assert load_choices() == Choices(enabled=full[:1])


def test_a_parser_of_others_is_enabled_because_it_would_not_be_used_otherwise(
    host: Callable[[], PluginHost], site: FakeSite
) -> None:
    site.add("acme-read", {"parser.p": "nowhere"})
    assert enable(host(), ["p"]) == 0
    assert load_choices() == Choices(enabled=("parser.acme-read/p",))


@pytest.mark.parametrize("form", ["processor.guard", "processor.acme-guard/guard"])
def test_any_form_in_which_a_processor_is_enabled_is_removed(form: str, host: Callable[[], PluginHost]) -> None:
    write_choices(Choices(enabled=(form, "processor.watch")))
    assert disable(host(), ["acme-guard/guard"]) == 0
    assert load_choices() == Choices(enabled=("processor.watch",))


def test_choices_that_are_made_at_the_same_time_are_all_kept(host: Callable[[], PluginHost], site: FakeSite) -> None:
    names = [f"tool.t{number}" for number in range(6)]
    site.add("acme-many", dict.fromkeys(names, "nowhere"))
    start = threading.Barrier(len(names))

    def change(name: str) -> None:
        start.wait(30)
        for step in (disable, enable, disable):
            assert step(host(), [name]) == 0

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(change, names))
    assert sorted(load_choices().block) == names


def test_several_names_are_changed_together(host: Callable[[], PluginHost]) -> None:
    assert enable(host(), ["guard", "acme-more"]) == 0
    assert load_choices().enabled == ("processor.acme-guard/guard", "tool.acme-more/*")
    for _ in range(2):
        assert disable(host(), ["guard", "x", "acme-more"]) == 0
        assert load_choices() == Choices(block=("tool.x",))
    assert enable(host(), ["x", "guard"]) == 0
    assert load_choices() == Choices(enabled=("processor.acme-guard/guard",))


def test_what_another_file_still_blocks_is_an_exit_code_and_what_it_enables_is_blocked(
    host: Callable[[], PluginHost], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "config/jackfield/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('block = ["tool.x"]\nenabled = ["processor.guard"]\n')
    assert enable(host(), ["x", "y"]) == 1
    assert f"('tool.x' in {own})" in capsys.readouterr().out
    assert disable(host(), ["guard"]) == 0
    assert "processor acme-guard/guard is blocked" in capsys.readouterr().out
    assert load_choices() == Choices(block=("processor.acme-guard/guard",))
    own.write_text('enabled = ["processor.gone"]\n')
    with pytest.raises(ConfigError, match=rf"^'processor\.gone' is enabled in {own}: remove it there$"):
        disable(host(), ["processor.gone"])


def test_the_manager_is_not_disabled_by_the_way(host: Callable[[], PluginHost], site: FakeSite) -> None:
    site.add("jackfield-manage", {"command.x": "nowhere"})
    before: Any = load_choices()
    with pytest.raises(ConfigError, match=r"^jackfield-manage cannot be disabled by a command"):
        disable(host(), ["x"])  # also a tool of another package
    assert load_choices() == before
