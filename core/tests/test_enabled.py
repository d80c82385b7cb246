"""Processors and observers act when somebody enabled them by name, and never otherwise."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent
from jackfield.errors import (
    AmbiguousPluginError,
    BrokenPluginError,
    ConfigError,
    PluginBlockedError,
    PluginNotFoundError,
)
from jackfield.events import RunEvent
from jackfield.models import BaseChatModel
from jackfield.plugins import PluginHost, Row, ToolSpec
from jackfield.plugins._resolving import proposed_rows
from jackfield.runs import Observer
from jackfield.settings import Settings, load_settings
from jackfield.testing import ScriptedModel, answer
from jackfield_manage.choices import Choices, load_choices, write_choices

SHOUT = """
from jackfield.config import Config
from jackfield.events import TextDelta
from jackfield.processors import Postprocessor

class ShoutConfig(Config):
    mark: str = "!"

class Transform:
    def __init__(self, mark):
        self.mark = mark
    def feed(self, event):
        yield TextDelta(event.text.upper() + self.mark) if isinstance(event, TextDelta) else event

class Shout(Postprocessor):
    name = "shout"
    def __init__(self, mark="!"):
        self.mark = mark
    def start(self, request):
        return Transform(self.mark)
"""
LISTEN = """
from jackfield.runs import Observer

class Listen(Observer):
    name = "listen"
    heard = []
    def observe(self, event):
        self.heard.append(type(event.event).__name__)
"""
LIGHT = """
from jackfield.plugins import ObserverSpec, ProcessorSpec, ToolSpec, hook

@hook.processors
def processors():
    network = frozenset({{"network"}})
    return [
        ProcessorSpec(name="shout", target="{name}_shout:Shout", config="{name}_shout:ShoutConfig", effects=network)
    ]

@hook.observers
def observers():
    return [ObserverSpec(name="listen", target="{name}_listen:Listen")]

@hook.tools
def tools():
    return [ToolSpec(name="nothing", target="{name}_shout:Shout", description="Does nothing.")]
"""


@pytest.fixture
def install(site: Any) -> Any:
    """Installs a distribution that offers a tool, the processor `shout` and the observer `listen`, in one module."""

    def put(name: str) -> None:
        entries = {f"{kind}": f"{name}_light" for kind in ("processor.shout", "observer.listen", "tool.nothing")}
        sources = {f"{name}_light": LIGHT.format(name=name), f"{name}_shout": SHOUT, f"{name}_listen": LISTEN}
        site.add(name, entries, modules=sources)

    return put


def ask(host: PluginHost, config: Any = None, **options: Any) -> str:
    model = ScriptedModel([answer("hello")], config=config, host=host)
    return str(
        FnCallAgent([], model, host=host, **options).run_nonstream([{"role": "user", "content": "Hi"}])[-1]["content"]
    )


# --- processors ---


def test_an_installed_processor_does_nothing_until_it_is_enabled(site: Any, install: Any) -> None:
    install("acme")
    host = site.host()
    host.spec("tool", "nothing", ToolSpec)  # its neighbour in the same module
    assert ask(host) == "hello"
    assert ask(site.host(enabled=("processor.shout",))) == "HELLO!"


@pytest.mark.parametrize("name", ["processor.shout", "processor.acme/shout"])
def test_a_processor_is_enabled_by_name_or_address_and_takes_its_settings(site: Any, install: Any, name: str) -> None:
    install("acme")
    assert ask(site.host(enabled=(name,), options={name: {"mark": "?"}})) == "HELLO?"


def test_a_processor_that_is_named_in_a_configuration_acts_without_being_enabled(site: Any, install: Any) -> None:
    install("acme")
    config = {"model": "scripted", "processors": [{"name": "shout", "mark": "…"}]}
    assert ask(site.host(), config=config) == "HELLO…"
    assert ask(site.host(enabled=("processor.shout",)), config=config) == "HELLO…", "and not twice if it is both"


def test_what_an_agent_forbids_its_tools_does_not_keep_a_processor_from_acting(site: Any, install: Any) -> None:
    install("acme")
    host = site.host(enabled=("processor.shout",))
    assert ask(host, forbid=["network"]) == ask(host) != "hello"


def test_settings_that_do_not_fit_are_named_before_anything_is_asked(site: Any, install: Any) -> None:
    install("acme")
    with pytest.raises(ConfigError, match=r"settings of processor 'acme/shout': unknown setting 'volume'"):
        ask(site.host(), config={"model": "m", "processors": [{"name": "shout", "volume": 11}]})
    with pytest.raises(ConfigError, match="needs a 'name'"):
        ask(site.host(), config={"model": "m", "processors": [{"mark": "?"}]})


def test_what_is_enabled_and_not_installed_stops_the_run_and_says_what_to_do(site: Any) -> None:
    host = site.host(enabled=("processor.redact",), origins={"enabled:processor.redact": "choices.toml"})
    with pytest.raises(PluginNotFoundError) as caught:
        ask(host)
    assert "'processor.redact' is enabled (choices.toml), but no processor 'redact' is installed" in str(caught.value)
    assert "jackfield plugins disable processor.redact" in str(caught.value)


def test_two_that_could_be_meant_stop_the_run(site: Any, install: Any) -> None:
    install("acme")
    install("other")
    with pytest.raises(AmbiguousPluginError) as caught:
        ask(site.host(enabled=("processor.shout",)))
    # Neither is ours, so the first in the alphabet is not recommended.
    assert str(caught.value).endswith('[prefer] "processor.shout" = "acme" or "processor.shout" = "other"')
    assert ask(site.host(enabled=("processor.other/shout",))) == "HELLO!"


@pytest.mark.parametrize("rule", [{"block": frozenset({"acme"})}, {"safe": True}], ids=str)
def test_a_deny_of_the_user_wins_over_being_enabled(site: Any, install: Any, rule: dict[str, Any]) -> None:
    install("acme")
    assert ask(site.host(enabled=("processor.shout",), **rule)) == "hello"
    if "safe" not in rule:
        install("other")
        assert ask(site.host(enabled=("processor.shout",), **rule)) == "HELLO!", "one of two is left"
        rule = {"block": frozenset({"acme", "other"})}
        assert ask(site.host(enabled=("processor.shout",), **rule)) == "hello"
        with pytest.raises(PluginBlockedError):
            ask(site.host(enabled=("processor.shout",), strict=True, **rule))


def test_what_is_enabled_and_only_missing_from_the_list_of_what_may_load_stops_the_run(site: Any, install: Any) -> None:
    install("acme")
    with pytest.raises(PluginBlockedError, match=r"'processor.shout' is enabled .* not in the list .*--block"):
        ask(site.host(enabled=("processor.shout",), allow=frozenset({"other"})))
    assert ask(site.host(enabled=("processor.shout",), allow=frozenset[str](), block=frozenset({"processor.shout"})))


def test_a_processor_that_cannot_be_made_is_named(site: Any) -> None:
    source = "class P:\n    def __init__(self): 1 / 0\n"
    light = "from jackfield.plugins import ProcessorSpec, hook\n@hook.processors\ndef p(): return [ProcessorSpec("
    site.add("acme", {"processor.p": "acme_light"}, modules={
        "acme_light": f"{light}name='p', target='acme_p:P')]",
        "acme_p": source,
    })  # fmt: skip
    with pytest.raises(BrokenPluginError, match=r"acme is broken, making processor\.p failed \(ZeroDivisionError"):
        ask(site.host(enabled=("processor.p",)))


# --- observers ---


def test_an_enabled_observer_hears_every_event_of_a_run_and_changes_nothing(site: Any, install: Any) -> None:
    install("acme")
    assert ask(site.host(enabled=("observer.listen",))) == "hello"
    from acme_listen import Listen  # type: ignore[import-not-found]

    assert Listen.heard[0] == "RunStarted"
    assert Listen.heard[-1] == "RunFinished"
    assert "TextDelta" in Listen.heard


class Failing(Observer):
    name = "failing"

    def __init__(self) -> None:
        self.told = 0

    def observe(self, event: RunEvent) -> None:
        self.told += 1
        raise ValueError("no more disk")


def test_a_failing_observer_costs_the_run_nothing_and_is_silenced_after_three_faults(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing = Failing()
    numbers: list[int] = []

    class Counting(Observer):
        name = "counting"

        def observe(self, event: RunEvent) -> None:
            numbers.append(event.number)

    model = ScriptedModel([answer("hello"), answer("hello")])
    agent = FnCallAgent([], model, observers=[failing, Counting()])
    with caplog.at_level(logging.ERROR, "jackfield.observers"):
        for _ in range(2):
            assert agent.run_nonstream([{"role": "user", "content": "Hi"}])[-1]["content"] == "hello"
    assert failing.told == 3
    assert [record.getMessage() for record in caplog.records][
        -1
    ] == "observer 'failing' failed; it will receive no more events"
    half = len(numbers) // 2
    assert numbers[:half] == numbers[half:] == list(range(1, half + 1))


def test_an_observer_is_told_of_a_run_that_failed(site: Any) -> None:
    heard: list[str] = []

    class Hearing(Observer):
        name = "hearing"

        def observe(self, event: RunEvent) -> None:
            heard.append(type(event.event).__name__)

    class Broken(ScriptedModel):
        def stream(self, request: Any) -> Any:
            raise ConfigError("no")

    with pytest.raises(ConfigError):
        FnCallAgent([], Broken([]), observers=[Hearing()]).run_nonstream([{"role": "user", "content": "Hi"}])
    assert heard[-1] == "RunFailed"


# --- the settings ---


class Files:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = folder / "config.toml"
        self.choices = folder / "choices.toml"

    def load(self, **environ: str) -> Settings:
        return load_settings(environ, project_dir=self.folder, user_file=self.user)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whoever_enables_something_enables_it_and_it_is_known_who(files: Files) -> None:
    files.user.write_text('enabled = ["processor.a"]')
    files.choices.write_text('enabled = ["processor.Acme_X/b"]')
    (files.folder / "pyproject.toml").write_text('[tool.jackfield]\nblock = ["acme"]')
    found = files.load(JACKFIELD_PLUGINS_ENABLED="processor.d", JACKFIELD_PLUGINS_BLOCK="other")
    assert set(found.enabled) == {"processor.a", "processor.acme-x/b", "processor.d"}
    assert found.origins["enabled:processor.acme-x/b"] == str(files.choices)
    assert found.origins["block:acme"].endswith("pyproject.toml")
    assert found.origins["block:other"] == "JACKFIELD_PLUGINS_BLOCK"


@pytest.mark.parametrize("name", ["tool.x", "shout", "", "processor.", "acme/shout", "processor.acme/", "x.y"])
def test_what_cannot_be_enabled_is_refused_with_the_way_to_write_it(files: Files, name: str) -> None:
    files.user.write_text(f'enabled = ["{name}"]')
    with pytest.raises(
        ConfigError, match=r"use processor\.NAME, observer\.NAME, parser\.PACKAGE/NAME or sandbox\.PACKAGE/NAME"
    ):
        files.load()


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
flat = st.booleans() | st.integers(-(2**31), 2**31) | names | st.lists(names, max_size=2)
values = flat | st.dictionaries(names, flat, max_size=2)


@given(
    st.builds(
        Choices,
        block=st.lists(names, max_size=3).map(tuple),
        order=st.lists(names, max_size=3).map(tuple),
        enabled=st.lists(st.sampled_from(["processor.a", "observer.b/c"]), max_size=2).map(tuple),
        prefer=st.dictionaries(names, names, max_size=2),
        settings=st.dictionaries(
            st.just("processor.a"),
            st.dictionaries(names, values, max_size=2),
        ),
        allow=st.none() | st.lists(names, max_size=2).map(tuple),
    )
)
def test_choices_survive_being_written_and_read(tmp_path_factory: pytest.TempPathFactory, choices: Choices) -> None:
    path = tmp_path_factory.mktemp("c") / "deeper" / "choices.toml"
    assert write_choices(choices, path) == path
    assert load_choices(path) == choices
    assert [file.name for file in path.parent.iterdir()] == ["choices.toml"]


def test_choices_that_cannot_be_written_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/choices\.toml cannot be written"):
        write_choices(Choices(), tmp_path / "file" / "choices.toml")


def test_an_order_that_is_listed_wins_over_phases(site: Any, install: Any) -> None:
    install("acme")
    model = ScriptedModel([], host=site.host(enabled=("processor.shout",)))
    assert names_of(model) == ["shout", "retry"]
    model = ScriptedModel([], host=site.host(enabled=("processor.shout",), order=("retry", "shout")))
    assert names_of(model) == ["retry", "shout"]


def names_of(model: BaseChatModel) -> list[str]:
    return [processor.name for processor in model.processors()]


def test_of_two_with_a_name_that_we_publish_only_ours_is_proposed_and_only_if_it_is_proven() -> None:
    rows = [Row("tool", "retrieval", "m", name, "1.0", 1, name) for name in ("jackfield-bad", "jackfield-retrieval")]

    class Proof:
        def __init__(self, doubt: str) -> None:
            self.doubt = doubt

        def unproven(self, row: Row) -> str:
            return self.doubt

    assert proposed_rows(rows, Proof("")) == [rows[1]]  # type: ignore[arg-type]
    assert proposed_rows(rows, Proof("has no RECORD")) == rows  # type: ignore[arg-type]
