"""What acts in every run: one answer, which runs follow and every report tells."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.models import load_processors
from jackfield.plugins import PluginHost, Plugins
from jackfield.plugins._acting import acting, default_chain, enabled_by
from jackfield.plugins._host import default_host
from jackfield_manage.judging.activation import activations
from jackfield_manage.judging.doctor import examine
from jackfield_manage.judging.news import describe, news, summarise
from jackfield_manage.judging.why import why

LIGHT = """
from jackfield.plugins import ProcessorSpec, hook

@hook.processors
def processors():
    return [ProcessorSpec(name={name!r}, target="{module}_heavy:Passing")]
"""
HEAVY = """
from jackfield.processors import Processor

class Passing(Processor):
    name = {name!r}
    def around(self, request, call_next):
        return call_next(request)
"""
TRUNCATION = DEFAULT_CHAIN[2]
OTHER = "acme-noise/noise"


def add(site: Any, *addresses: str) -> None:
    for address in addresses:
        distribution, _, name = address.partition("/")
        module = distribution.replace("-", "_")
        site.add(
            distribution,
            {f"processor.{name}": module},
            modules={module: LIGHT.format(name=name, module=module), f"{module}_heavy": HEAVY.format(name=name)},
        )


def runs_with(host: PluginHost) -> set[str]:
    made = load_processors((), host)
    return {type(one).__module__.removesuffix("_heavy").replace("_", "-") + f"/{one.name}" for one in made}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"enabled": (f"processor.{OTHER}",)},
        {"enabled": ("processor.noise", "processor.acme-cut/truncation")},
        {"enabled": ("processor.truncation",), "prefer": {"processor.truncation": "acme-cut"}},
        {"block": frozenset({"jackfield-truncation"})},
        {"block": frozenset({"processor.truncation"})},
        {"allow": frozenset({"acme-noise"})},
        {"safe": True},
    ],
    ids=str,
)
def test_every_report_says_what_a_run_does(site: Any, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    add(site, TRUNCATION, OTHER, "acme-cut/truncation")
    host = site.host(**settings)
    acting = runs_with(host)
    assert {row.address for row, one in activations(host).items() if one.is_active} == acting
    told = {
        offer.address for name in ("jackfield-truncation", "acme-noise", "acme-cut")
        for one in why(name, host.settings, [str(site.folder)]) for offer in one.offers if offer.acts
    }  # fmt: skip
    assert told == acting
    told = {
        finding.distribution
        for finding in examine(host)
        if finding.status != "blocked"
        and not any(text.startswith(("it acts only", "it would act")) for text in (finding.why, *finding.more))
    }
    assert told == {address.partition("/")[0] for address in acting}
    for newcomer in news(host, {}).newcomers:
        acts = any(row.address in acting for row in newcomer.rows)
        assert ("acts in every run" in summarise(newcomer, host)) == acts
        assert any("acts in every run" in line for line in describe(newcomer, host)) == acts


def test_the_default_chain_is_listed_as_what_it_is_and_can_be_switched_off_and_on(command_line: Any, site: Any) -> None:
    add(site, TRUNCATION)

    def state() -> str:
        (row,) = json.loads(command_line("plugins", "list", "--kind", "processor", "--json").stdout)["plugins"]
        return str(row["state"])

    assert state() == "acts by default"
    assert (
        "acts in every run (as part of the default chain)"
        in command_line("plugins", "why", "processor.truncation").stdout
    )
    for _ in range(2):
        said = command_line("plugins", "disable", "processor.truncation")
        assert said.returncode == 0
        assert "is blocked" in said.stdout
        assert "is blocked" in state()
    assert "acts in every run" in command_line("plugins", "enable", "processor.truncation").stdout
    assert state() == "enabled"
    command_line("plugins", "disable", "processor.truncation")
    assert "is blocked" in state(), "it would act by default"


@pytest.mark.parametrize("form", ["processor.noise", "acme-noise", "acme-noise/noise", "processor.acme-noise/noise"])
def test_disabling_twice_is_the_same_as_once(command_line: Any, site: Any, form: str) -> None:
    add(site, OTHER)
    choices = command_line.config / "choices.toml"
    command_line("plugins", "enable", form)
    said = command_line("plugins", "disable", form).stdout
    once = choices.read_text()
    assert command_line("plugins", "disable", form).stdout == said
    assert choices.read_text() == once
    assert "acts only if it is named in code or enabled" in said


def test_what_a_users_own_file_enables_is_blocked_or_named(command_line: Any, site: Any) -> None:
    add(site, OTHER)
    command_line.config.mkdir(parents=True)
    (command_line.config / "config.toml").write_text('enabled = ["processor.noise"]\n')
    assert "is blocked" in command_line("plugins", "disable", "processor.noise").stdout
    site.remove("acme-noise")
    done = command_line("plugins", "disable", "processor.noise")
    assert done.returncode == 1
    assert "config.toml: remove it there" in done.stderr


def test_only_processors_act_by_default(site: Any) -> None:
    assert default_chain(site.host(), "observer", besides=()) == []
    chain = default_chain(default_host(), "processor", besides=())
    assert chain
    assert default_chain(default_host(), "processor", besides=chain[:1]) == chain[1:]


def test_what_is_enabled_is_listed_with_its_entry(site: Any) -> None:
    source = "from jackfield.plugins import ProcessorSpec, hook\n@hook.processors\ndef p(): return [ProcessorSpec("
    source += "name='p', target='m:P')]"
    site.add("acme", {"processor.p": "acme_light"}, modules={"acme_light": source})
    names = ("observer.p", "processor.gone", "processor.p", "processor.acme/p")
    host: Plugins = site.host(enabled=names)
    assert {row.address: name for row, name in enabled_by(host, "processor").items()} == {"acme/p": "processor.p"}  # type: ignore[arg-type]
    blocked = site.host(enabled=names, block=frozenset({"acme"}))
    assert enabled_by(blocked, "processor") == {}


def test_what_is_enabled_comes_once_and_first_and_not_again_if_it_is_named_in_code(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "jackfield_truncation", raising=False)  # the real one, of an earlier test
    add(site, TRUNCATION, OTHER, "acme-cut/truncation")
    host = site.host(enabled=("processor.noise", f"processor.{OTHER}"))
    noise, cut = host.find("processor", "noise"), host.find("processor", "acme-cut/truncation")
    assert [row.address for row in acting(host, "processor")] == [OTHER, TRUNCATION]
    assert [row.address for row in acting(host, "processor", named=[noise])] == [TRUNCATION]
    assert [row.address for row in acting(host, "processor", named=[cut])] == [OTHER]
    both = site.host(enabled=("processor.acme-cut/truncation", "processor.noise"))
    assert [row.address for row in acting(both, "processor")] == ["acme-cut/truncation", OTHER]
