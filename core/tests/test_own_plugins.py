"""A plugin need not be installed: what code registers, local files that settings name, and sources that are asked."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jackfield import FnCallAgent, PluginHost
from jackfield._localfiles import local_files
from jackfield.errors import (
    AmbiguousPluginError,
    BrokenPluginError,
    ConfigError,
    PluginBlockedError,
    PluginNotFoundError,
)
from jackfield.plugins import ToolSpec, hook
from jackfield.projects import trust_file
from jackfield.settings import Settings, load_project, load_settings
from jackfield.testing import ScriptedModel, answer, calls

TOOLS = """
from jackfield import BaseTool
from jackfield.plugins import ToolSpec, hook


class Shout(BaseTool):
    name = "shout"
    description = "Say it louder."

    def call(self, params, *, context=None):
        return "HEY"


@hook.tools
def tools():
    return [ToolSpec(name="shout", target=f"{__name__}:Shout", description="Say it louder.")]
"""


def module_of(source: str, name: str) -> ModuleType:
    module = ModuleType(name)
    exec(source, module.__dict__)
    return module


@pytest.fixture
def shouting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with a tool, which can be imported."""
    (tmp_path / "shouting.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shouting  # type: ignore[import-not-found]

    yield shouting
    del sys.modules["shouting"]


class Offers:
    """An object with a hook."""

    def __init__(self, *names: str) -> None:
        self.names = names

    @hook.tools
    def offered(self) -> list[ToolSpec]:
        return [ToolSpec(name=name, target="nowhere:Tool", description="None.") for name in self.names]


def run_shout(host: PluginHost, tool: str = "shout") -> str:
    model = ScriptedModel([calls(("shout", {})), answer("done")], host=host)
    FnCallAgent([tool], model, host=host).run_nonstream([{"role": "user", "content": "q"}])
    return model.requests[1].messages[-1].get_text_content()


# --- registered in code ---


def test_a_registered_module_is_found_by_name_and_says_where_it_is_from(site: Any, shouting: ModuleType) -> None:
    host = site.host()
    assert host.register(shouting) == "shouting@code"
    (row,) = host.policy.rows("tool")
    assert (row.id, row.address, row.location) == ("tool.shout", "shouting@code/shout", "registered in code")
    assert run_shout(host) == "HEY"
    assert run_shout(host, "shouting@code/shout") == "HEY"
    host.refresh()
    assert host.names("tool") == ["shout"]


def test_an_object_may_offer_what_it_knows_at_run_time(site: Any) -> None:
    host = site.host()
    host.register(Offers("one", "two"), name="My_Server")
    assert host.names("tool") == ["one", "two"]
    assert host.spec("tool", "my-server@code/two", ToolSpec).description == "None."


def test_what_is_registered_and_what_is_installed_under_one_name_is_ambiguous(site: Any) -> None:
    site.add_tools("acme", "shout")
    host = site.host()
    host.register(Offers("shout"))
    with pytest.raises(AmbiguousPluginError, match="'acme/shout' or 'offers@code/shout'"):
        host.find("tool", "shout")
    assert site.times_imported("acme") == 0
    preferring = site.host(prefer={"tool.shout": "offers@code"})
    preferring.register(Offers("shout"))
    assert preferring.find("tool", "shout").distribution == "offers@code"


def test_registering_twice_is_refused_and_changes_nothing(site: Any) -> None:
    host, offers = site.host(), Offers("one")
    host.register(offers)
    for again, name in ((offers, ""), (Offers("two"), "offers"), (offers, "other")):
        with pytest.raises(ConfigError, match="already registered"):
            host.register(again, name=name)
    assert host.names("tool") == ["one"]


def test_what_was_registered_can_be_taken_back_and_come_again(site: Any) -> None:
    host = site.host()
    offers = Offers("one")
    host.unregister(host.register(offers))
    assert host.names("tool") == []
    with pytest.raises(PluginNotFoundError):
        host.find("tool", "one")
    with pytest.raises(ConfigError, match="is not registered"):
        host.unregister("offers@code")
    host.register(offers)
    assert host.spec("tool", "one", ToolSpec).name == "one"


class Unhashable(Offers):
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("plugin", "name", "reason"),
    [
        (object(), "", "defines no hooks"),
        (Offers(), "", "hooks provide nothing"),
        (Offers("a b"), "", "has an incorrect description"),
        (Offers("x", "x"), "", "2 times"),
        (Offers("x"), "a/b", "is not a valid plugin name"),
        (Offers("x"), "a@b", "is not a valid plugin name"),
        (Unhashable("x"), "", "objects are not hashable"),
        (module_of("from jackfield.plugins import hook\n@hook.tools\ndef f(): 1 / 0", "bad"), "", "division by zero"),
        (module_of("from jackfield.plugins import hook\n@hook.tools\nasync def f(): ...", "bad"), "", "is async"),
    ],
)
def test_what_cannot_be_registered_is_refused_and_leaves_nothing(
    site: Any, plugin: object, name: str, reason: str
) -> None:
    host = site.host()
    host.register(Offers("sound"), name="sound")
    for _ in range(2):
        with pytest.raises((ConfigError, BrokenPluginError), match=reason):
            host.register(plugin, name=name)
    assert host.names("tool") == ["sound"]
    assert host.spec("tool", "sound", ToolSpec).name == "sound"


def test_policy_holds_for_what_is_registered(site: Any) -> None:
    for settings, allowed in (
        ({"block": frozenset({"offers@code"})}, False),
        ({"block": frozenset({"tool.one"})}, False),
        ({"safe": True}, False),
        ({"allow": frozenset({"acme"})}, False),
        ({"allow": frozenset({"offers@code"})}, True),
    ):
        host = site.host(**settings)
        host.register(Offers("one"))
        assert host.names("tool") == (["one"] if allowed else []), settings
        if not allowed:
            with pytest.raises(PluginBlockedError):
                host.spec("tool", "one", ToolSpec)


def test_a_distribution_cannot_pass_for_what_is_registered(site: Any) -> None:
    site.add("offers@code", {"tool.two": "acme_light"})
    host = site.host(allow=frozenset({"offers@code"}))
    assert host.policy.rows("tool") == []
    assert len(host.catalog.problems) == 1


def test_many_threads_register_and_ask_at_once(site: Any) -> None:
    site.add_tools("acme", "installed")
    host, failures = site.host(), []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        try:
            for turn in range(20):
                own = host.register(Offers(f"tool{number}"), name=f"own{number}")
                assert host.spec("tool", f"tool{number}", ToolSpec).name == f"tool{number}"
                assert host.spec("tool", "installed", ToolSpec).name == "installed"
                if turn < 19:
                    host.unregister(own)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(host.names("tool")) == ["installed", *(f"tool{number}" for number in range(8))]


def test_a_host_with_a_registered_module_can_be_pickled_and_one_with_an_object_says_why_not(
    site: Any, shouting: ModuleType
) -> None:
    host = site.host()
    host.register(shouting, name="loud")
    again = pickle.loads(pickle.dumps(host))
    assert again.find("tool", "shout").address == "loud@code/shout"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(run_shout, (host,)) == "HEY"
    impostor = ModuleType(shouting.__name__)
    vars(impostor).update({name: value for name, value in vars(shouting).items() if not name.startswith("__")})
    other = site.host()
    other.register(impostor, name="loud")
    with pytest.raises(ConfigError, match=r"loud@code cannot be pickled"):
        pickle.dumps(other)  # the process would import another module
    host.register(Offers("one"))
    with pytest.raises(ConfigError, match=r"offers@code cannot be pickled.*register the object again"):
        pickle.dumps(host)


# --- local files ---


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with a local file, and a user without settings."""
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    (folder / "my_tools.py").write_text(TOOLS)
    (folder / "pyproject.toml").write_text('[tool.jackfield]\nlocal = ["./my_tools.py"]\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(folder)
    return folder


def trust(tmp_path: Path) -> None:
    found = load_project()
    assert found is not None
    target = trust_file(tmp_path / "config/jackfield/trusted", found.path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f'{{"path": "{found.path}", "content": "{found.content}"}}')


def host_here(site: Any) -> PluginHost:
    return PluginHost(load_settings(), paths=[str(site.folder)])


def test_a_projects_local_file_counts_only_after_a_yes_and_until_it_changes(
    site: Any, project: Path, tmp_path: Path
) -> None:
    with pytest.raises(PluginNotFoundError):
        host_here(site).find("tool", "shout")
    trust(tmp_path)
    host = host_here(site)
    (row,) = host.catalog.rows
    assert (row.distribution, row.location) == ("my-tools@project", str(project / "my_tools.py"))
    assert row.module not in sys.modules  # nothing was asked yet
    assert run_shout(host) == "HEY"
    assert row.module in sys.modules
    (project / "my_tools.py").write_text(TOOLS.replace("HEY", "changed"))
    found = load_project()
    assert found
    assert found.answer == "changed"
    with pytest.raises(PluginNotFoundError):
        host_here(site).find("tool", "shout")
    trust(tmp_path)
    assert run_shout(host_here(site)) == "changed"
    assert run_shout(host) == "HEY"  # what is loaded stays


def test_a_file_that_changed_after_it_was_agreed_to_is_not_run(site: Any, project: Path, tmp_path: Path) -> None:
    trust(tmp_path)
    host = host_here(site)
    (project / "my_tools.py").write_text("import sys\nsys.fell_for_it = True\n" + TOOLS)
    with pytest.raises(BrokenPluginError, match="has changed since the settings were read"):
        host.find("tool", "my-tools@project/shout")
    assert not hasattr(sys, "fell_for_it")


def test_a_users_local_file_needs_no_yes(site: Any, project: Path, tmp_path: Path) -> None:
    config = tmp_path / "config/jackfield"
    config.mkdir(parents=True)
    (config / "mine").mkdir()
    (config / "mine/tools.py").write_text(TOOLS)
    (config / "config.toml").write_text('local = ["mine/tools.py"]')
    host = host_here(site)
    assert host.find("tool", "shout").distribution == "mine-tools@user"
    assert run_shout(pickle.loads(pickle.dumps(host))) == "HEY"


def test_a_name_of_a_local_file_and_of_a_plugin_is_ambiguous(site: Any, project: Path, tmp_path: Path) -> None:
    trust(tmp_path)
    site.add_tools("acme", "shout")
    with pytest.raises(AmbiguousPluginError, match="'acme/shout' or 'my-tools@project/shout'"):
        host_here(site).find("tool", "shout")
    assert run_shout(host_here(site), "my-tools@project/shout") == "HEY"
    assert host_here(site).names("tool") == ["shout"]
    site.remove("acme")
    assert host_here(site).names("tool") == ["shout"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("../outside.py", "is outside "),
        ("/etc/passwd.py", "is outside "),
        ("sub/../../outside.py", "is outside "),
        ("link.py", "is or passes through a symbolic link"),
        ("linked/tools.py", "is or passes through a symbolic link"),
        ("missing.py", "cannot be read"),
        ("folder.py", "is not a regular file"),
        ("tools.txt", "is not a Python file"),
        ("large.py", "is larger than 1 MiB"),
    ],
)
def test_what_may_not_be_a_local_file_is_a_row_with_its_reason(tmp_path: Path, given: str, reason: str) -> None:
    folder = tmp_path / "project"
    (folder / "folder.py").mkdir(parents=True)
    (folder / "sub").mkdir()
    (tmp_path / "outside.py").write_text(TOOLS)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/tools.py").write_text(TOOLS)
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "linked").symlink_to(tmp_path / "tools")
    (folder / "large.py").write_bytes(b"#" * (1 << 20) + b"#")
    host = PluginHost(Settings(local=local_files(folder, [given], "project")), paths=[])
    (row,) = host.catalog.rows
    assert reason in host.policy.why_not(row)
    assert host.names("tool") == []
    with pytest.raises(PluginNotFoundError, match=reason):
        host.find("tool", "shout")


def test_two_local_files_of_one_name_are_both_left_out(tmp_path: Path) -> None:
    for name in ("my_tools.py", "my-tools.py"):
        (tmp_path / name).write_text(TOOLS)
    found = local_files(tmp_path, ["my_tools.py", "my-tools.py", "./my_tools.py"], "project")
    assert [bool(file.fault) for file in found] == [True] * len(found)


def test_each_local_file_has_its_own_fault(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text(TOOLS)
    files = local_files(tmp_path, ["fine.py", "gone.py", "folder.txt"], "project")
    policy = PluginHost(Settings(local=files), paths=[]).policy
    reasons = {row.distribution: policy.why_not(row) for row in policy.catalog.rows}
    assert [bool(reasons[file.name]) for file in files] == [False, True, True]


def test_local_files_are_asked_before_packages(site: Any, tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text(TOOLS)
    site.add("acme", {"tool.*": "acme_light"}, modules={"acme_light": ""})
    host = site.host(local=local_files(tmp_path, ["fine.py"], "user"))
    assert [row.distribution for row in host.policy.sources("tool")] == ["fine@user", "acme"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("1 / 0", "division by zero"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("from jackfield.plugins import hook\n@hook.tools\nasync def f(): ...", "is async"),
        ("from jackfield.plugins import hook\n@hook.tools\ndef f(): return 5", "must return a list"),
    ],
)
def test_a_broken_local_file_costs_its_own_names_only_and_is_told_once(
    site: Any, project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, source: str, reason: str
) -> None:
    (project / "my_tools.py").write_text(source)
    trust(tmp_path)
    site.add_tools("acme", "good")
    host = host_here(site)
    with caplog.at_level(logging.WARNING, "jackfield"):
        for _ in range(3):
            assert host.spec("tool", "good", ToolSpec).name == "good"
    assert [reason in record.getMessage() for record in caplog.records] == [True]
    with pytest.raises(BrokenPluginError, match=reason):
        host.find("tool", "my-tools@project/shout")


def test_the_command_line_shows_a_local_file_asks_for_a_yes_and_does_not_run_it(site: Any, command_line: Any) -> None:
    marker = command_line.folder / "ran"
    (command_line.folder / "my_tools.py").write_text(f"open({str(marker)!r}, 'w').close()\n{TOOLS}")
    (command_line.folder / "pyproject.toml").write_text('[tool.jackfield]\nlocal = ["my_tools.py"]\n')
    assert "my-tools@project" not in command_line("plugins", "list").stdout
    done = command_line("trust", "--yes")
    assert "my_tools.py runs here (SHA-256 " in done.stdout
    for words in (("list",), ("why", "my-tools@project")):
        done = command_line("plugins", *words)
        assert done.returncode == 0, done.stderr
        assert "my-tools@project" in done.stdout
    assert "searched on every name lookup" in command_line("plugins", "list").stdout
    assert not marker.exists()
    done = command_line("plugins", "info", "my-tools@project")
    assert "offers: tool.shout" in done.stdout
    assert "broken" not in done.stdout
    done = command_line("plugins", "doctor", "my-tools@project")
    assert (done.returncode, "ok" in done.stdout) == (0, True), done.stdout
    (command_line.folder / "my_tools.py").write_text("1 / 0")
    assert command_line("trust", "--yes").returncode == 0
    done = command_line("plugins", "doctor", "my-tools@project")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout
    assert "fix " in done.stdout
    assert command_line("plugins", "list").returncode == 0


def test_the_command_line_enables_a_source_and_says_so(site: Any, command_line: Any) -> None:
    marker = add_source(site, "acme", "read")
    assert "searched only by full address" in command_line("plugins", "list").stdout
    for words in (("enable", "tool.acme/*"), ("why", "acme"), ("doctor", "acme")):
        done = command_line("plugins", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert "enabled: searched if no other plugin has the name" in command_line("plugins", "list").stdout
    assert not marker.exists()
    assert command_line("plugins", "disable", "tool.acme/*").returncode == 0
    assert "searched only by full address" in command_line("plugins", "list").stdout


# --- sources ---

SOURCE = textwrap.dedent("""
    from jackfield.plugins import ToolSpec, hook
    asked = []

    @hook.tools
    def tools():
        with open({marker!r}, "a") as file:
            file.write("x")
        return [ToolSpec(name=name, target="nowhere:Tool", description="Of {name}.") for name in {names!r}]
""")


def add_source(site: Any, distribution: str, *names: str) -> Path:
    marker = Path(site.folder, f"{distribution}.asked")
    source = SOURCE.format(marker=str(marker), names=list(names), name=distribution)
    site.add(distribution, {"tool.*": f"{distribution}_light"}, modules={f"{distribution}_light": source})
    return marker


def test_a_source_is_asked_when_its_address_is_written(site: Any) -> None:
    marker = add_source(site, "acme", "read", "write")
    host = site.host()
    assert [row.id for row in host.catalog.rows] == ["tool.*"]
    assert (host.policy.rows("tool"), host.names("tool"), host.specs("tool", ToolSpec)) == ([], [], [])
    with pytest.raises(PluginNotFoundError, match=r"tool\.acme/\* was not searched: .* enable 'tool\.acme/\*'"):
        host.find("tool", "read")
    assert not marker.exists()
    assert host.spec("tool", "acme/read", ToolSpec).description == "Of acme."
    with pytest.raises(PluginNotFoundError):
        host.find("tool", "acme/delete")
    assert host.find("tool", "acme/write").address == "acme/write"
    assert marker.read_text() == "x"


def test_a_name_that_is_nowhere_else_is_asked_of_the_sources_that_are_enabled(site: Any) -> None:
    marker = add_source(site, "acme", "read", "good")
    other = add_source(site, "other", "read", "list")
    site.add_tools("sound", "good")
    host = site.host(enabled=("tool.acme/*",))
    assert host.find("tool", "good").distribution == "sound"
    assert not marker.exists()
    assert host.find("tool", "read").distribution == "acme"
    assert not other.exists()
    both = site.host(enabled=("tool.acme/*", "tool.other/*"))
    with pytest.raises(AmbiguousPluginError, match="'acme/read' or 'other/read'"):
        both.find("tool", "read")
    assert both.find("tool", "list").distribution == "other"


def test_a_source_that_is_blocked_or_broken_harms_nobody(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    marker = add_source(site, "acme", "read")
    source = "from jackfield.plugins import hook\n@hook.tools\ndef f(): raise OSError('no server')"
    site.add("down", {"tool.*": "down_light"}, modules={"down_light": source})
    for block in ("acme", "tool.*", "acme/*"):
        host = site.host(block=frozenset({block}), enabled=("tool.acme/*",))
        with pytest.raises(PluginBlockedError):
            host.find("tool", "acme/read")
        with pytest.raises(PluginNotFoundError):
            host.find("tool", "read")
    assert not marker.exists()
    host = site.host(enabled=("tool.acme/*", "tool.down/*", "tool.gone/*"))
    assert host.find("tool", "read").distribution == "acme"
    assert "no server" in caplog.text
    with pytest.raises(BrokenPluginError, match="no server"):
        host.find("tool", "down/read")
    with pytest.raises(PluginNotFoundError, match=r"'tool\.gone/\*' is enabled, but not installed"):
        host.find("tool", "nothing")


def test_a_setting_enables_a_source_by_its_whole_address_only(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"

    def enabled(name: str) -> tuple[str, ...]:
        file.write_text(f'enabled = ["{name}"]')
        return load_settings({}, user_file=file, with_project=False).enabled

    assert enabled("tool.Acme_MCP/*") == ("tool.acme-mcp/*",)
    for wrong in ("tool.*", "tool.read", "tool.acme/read", "processor.*", "processor.acme/*"):
        with pytest.raises(ConfigError, match="cannot be enabled"):
            enabled(wrong)
