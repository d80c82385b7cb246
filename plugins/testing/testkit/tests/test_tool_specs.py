"""What a light module says of a tool is written from its function, and a suite holds the two together."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.errors import BrokenPluginError, ConfigError
from jackfield.plugins import PluginHost, ToolSpec, hook
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext, find_tool
from jackfield_testkit.tool_specs import differences, main, refreshed, tool_specs
from tests.support.site import site

__all__ = ["site"]

TOOLS = '''
from types import MappingProxyType

from jackfield import BaseTool, ToolContext, tool


@tool(read_only=True, timeout_s=2.5)
def convert(amount: float, unit: str = "km", places: list[str] | None = None) -> str:
    """Convert a distance. It knows kilometres, miles and "nautical" miles, and tells in which country each of them
    is used, if that is asked.

    Args:
        amount: How much.
        unit: Of what: km, mi, nmi; whatever else is asked is looked up in a table that has more than one hundred and
            twenty characters.
    """
    return f"{amount} {unit}"


SHOUT = MappingProxyType({"en": "Say it. Loudly.", "zh": "大声说。"})


@tool(description=SHOUT, needs_approval=True, effects=["network"])
def shout(text: str, context: ToolContext) -> str:
    return text.upper()


class Old(BaseTool):
    name = "old"
    description = "Old."

    def call(self, params, *, context=None):
        return ""
'''
LIGHT = '''\
"""What it offers."""

from jackfield.plugins import ToolSpec, hook

OLD = "Old."


@hook.tools
def tools() -> list[ToolSpec]:
    return [
        ToolSpec.of(target="acme_tools:convert"),
        ToolSpec.of("acme_tools:shout", secrets=("ACME_API_KEY",), network=("api.acme.example",)),
        ToolSpec(name="old", target="acme_tools:Old", description=OLD),
    ]
'''
ENTRIES = {"tool.convert": "acme_light", "tool.shout": "acme_light", "tool.old": "acme_light"}


@pytest.fixture
def acme(site: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A light module with two functions and a class, which can be imported."""
    site.add("acme", ENTRIES, modules={"acme_light": LIGHT, "acme_tools": TOOLS})
    for name in ("acme_light", "acme_tools"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return Path(site.folder, "acme_light.py")


def loaded(path: Path) -> list[ToolSpec]:
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    return list(scope["tools"]())


def test_what_is_written_is_what_the_functions_say_and_is_literal(acme: Path) -> None:
    before = loaded(acme)
    assert main(["acme_light", "--check"]) == 1
    assert main(["acme_light"]) == 0
    text = acme.read_text(encoding="utf-8")
    assert ".of(" not in text
    assert loaded(acme) == before
    assert before[1].secrets == ("ACME_API_KEY",)
    assert (before[0].summary, before[1].summary) == ("Convert a distance.", "Say it.")
    for call in [one.call for one in tool_specs(acme)]:
        for keyword in call.keywords:
            if keyword.arg != "effects":
                ast.literal_eval(ast.unparse(keyword.value))
    assert main(["acme_light", "--check"]) == 0
    assert refreshed(acme) == text


def test_what_is_written_is_formatted_as_ruff_would(acme: Path) -> None:
    main(["acme_light"])
    assert max(map(len, acme.read_text(encoding="utf-8").splitlines())) <= 120
    assert formatting_of(acme) == ""


def test_texts_and_flags_of_every_length_are_formatted_as_ruff_would(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, run = "one of many words " * 12, "word" * 60
    texts = {f"tool_{length}": words[:length].strip().ljust(length, ".") for length in range(84, 104)}
    texts |= {"long_run": run, "run_behind": f"a {run}", "quotes": '"one" ' * 40, "long_words": words}
    tools = ["from types import MappingProxyType\nfrom jackfield import tool\n"]
    lines = [
        "from jackfield.plugins import ToolSpec, hook\n\n\n@hook.tools\ndef tools() -> list[ToolSpec]:\n    return ["
    ]
    for name, text in texts.items():
        described = f"MappingProxyType({{'en': {text!r}, 'zh': '一'}})"
        tools.append(
            f"@tool(description={described}, effects=['processes', 'network', 'files'])\ndef {name}(): return ''\n"
        )
        lines.append(f'        ToolSpec.of(target="many_tools:{name}"),')
    modules = {"many_tools": "\n".join(tools), "many_light": "\n".join([*lines, "    ]\n"])}
    site.add("many", {f"tool.{name}": "many_light" for name in texts}, modules=modules)
    for name in modules:
        monkeypatch.delitem(sys.modules, name, raising=False)
    light = Path(site.folder, "many_light.py")
    assert main(["many_light"]) == 0
    assert [dict(spec.description)["en"] for spec in loaded(light)] == list(texts.values())
    assert light.read_text(encoding="utf-8").count('effects=frozenset({"files", "network", "processes"})') == len(texts)
    assert max(map(len, light.read_text(encoding="utf-8").splitlines())) == 120
    assert formatting_of(light) == ""


def formatting_of(path: Path) -> str:
    """Return what ruff would change in a file."""
    ruff = [str(Path(sys.executable).with_name("ruff")), "format", "--isolated", "--line-length=120", "--diff"]
    return subprocess.run([*ruff, str(path)], capture_output=True, text=True, check=False).stdout


def test_only_what_has_changed_is_written_anew(acme: Path) -> None:
    main(["acme_light"])
    formatted = acme.read_text(encoding="utf-8").replace("read_only=True", "read_only = True")
    acme.write_text(formatted, encoding="utf-8")
    assert main(["acme_light", "--check"]) == 0  # how it is formatted is nobody's business
    acme.write_text(formatted.replace("places", "spots").replace("needs_approval=True,", ""), encoding="utf-8")
    assert [one.target for one in tool_specs(acme) if one.is_stale] == ["acme_tools:convert", "acme_tools:shout"]
    assert main(["acme_light"]) == 0
    text = acme.read_text(encoding="utf-8")
    acme.write_text(text.replace("timeout_s=2.5,", "timeout_s=2.5,\n            concurrent=False,"), encoding="utf-8")
    assert [one.target for one in tool_specs(acme) if one.is_stale] == ["acme_tools:convert"], "it says more"
    assert main(["acme_light"]) == 0
    assert acme.read_text(encoding="utf-8") == text
    assert '"places"' in acme.read_text(encoding="utf-8")
    assert "needs_approval=True" in acme.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("ToolSpec.of(target=f'{__name__}:x')", "must be a string literal"),
        ("ToolSpec.of()", "must be a string literal"),
        ("ToolSpec.of(target='acme_tools:gone')", "cannot import acme_tools:gone: "),
        ("ToolSpec.of(target='nowhere:gone')", "cannot import nowhere:gone: "),
        ("ToolSpec.of(target='acme_tools:Old')", "is not a function decorated with @tool"),
    ],
)
def test_what_cannot_be_written_is_said_with_its_line(acme: Path, call: str, reason: str) -> None:
    acme.write_text(f"from jackfield.plugins import ToolSpec\n\nX = {call}\n")
    with pytest.raises(ValueError, match=f"line 3: .*{reason}"):
        main(["acme_light"])


def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match="no module 'nothing_of_this_name'"):
        main(["nothing_of_this_name"])


def test_a_descriptor_that_differs_from_its_function_is_told_field_by_field(acme: Path, site: Any) -> None:
    host: PluginHost = site.host()
    found = find_tool("shout", host)
    spec = host.spec("tool", "shout", ToolSpec)
    assert differences(spec, found.load()) == {}
    weaker = ToolSpec(name="shout", target=spec.target, description="Say it.", parameters=spec.parameters)
    assert sorted(differences(weaker, found.load())) == [
        "description", "effects", "file_access", "needs_approval", "summary",
    ]  # fmt: skip
    assert differences(weaker, find_tool("old", host).load()) == {}


# --- a published function is a tool like any other ---


def test_a_function_is_called_by_its_name_and_its_module_imported_then(acme: Path, site: Any) -> None:
    main(["acme_light"])
    sys.modules.pop("acme_tools", None)
    host = site.host()
    model = ScriptedModel([calls(("convert", {"amount": 3, "unit": "mi"})), answer("done")], host=host)
    agent = FnCallAgent(["convert"], model, host=host)
    assert "acme_tools" not in sys.modules
    agent.run_nonstream([{"role": "user", "content": "q"}])
    assert model.requests[1].messages[-1].get_text_content() == "3.0 mi"


def test_two_agents_share_a_function_and_not_its_host(acme: Path, site: Any) -> None:
    one, other = (find_tool("convert", site.host()).load() for _ in range(2))
    assert one is not other
    assert one.host is not other.host


def test_a_function_takes_no_settings_but_those_of_the_core(acme: Path, site: Any) -> None:
    assert find_tool({"name": "convert", "needs_approval": True}, site.host()).safety().needs_approval
    with pytest.raises(ConfigError, match="tool 'acme/convert' takes no settings; got 'colour'"):
        find_tool({"name": "convert", "colour": "red"}, site.host()).load()


def test_the_stricter_of_a_function_and_its_descriptor_holds(acme: Path, site: Any) -> None:
    main(["acme_light"])
    acme.write_text(acme.read_text(encoding="utf-8").replace("needs_approval=True,", ""), encoding="utf-8")
    found = find_tool("shout", site.host())
    assert not found.safety().needs_approval
    found.load()
    assert found.safety().needs_approval


def test_only_a_function_with_a_context_may_see_files() -> None:
    @tool
    def blind(text: str) -> str:
        """See nothing."""
        return text

    @tool
    def seeing(context: ToolContext) -> str:
        """See the files."""
        return ",".join(context.files)

    @tool(file_access=False)
    def modest(context: ToolContext) -> str:
        """See the run."""
        return context.run_id

    assert [ToolSpec.of(one).file_access for one in (blind, seeing, modest)] == [False, True, False]


def test_a_function_of_the_running_program_is_offered_without_its_name_in_a_text(site: Any) -> None:
    class Mine:
        @hook.tools
        def tools(self) -> list[ToolSpec]:
            return [ToolSpec.of(double)]

    host: PluginHost = site.host()
    host.register(Mine())
    made = find_tool("double", host).load()
    assert isinstance(made, BaseTool)
    assert made.call({"number": 21}) == 42


@tool(read_only=True)
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_what_is_no_tool_has_no_descriptor(site: Any) -> None:
    with pytest.raises(TypeError, match="is not a function decorated with @tool"):
        ToolSpec.of("os:getcwd")
    source = "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef t(): return [ToolSpec.of('os:getcwd')]"
    site.add("wrong", {"tool.x": "wrong_light"}, modules={"wrong_light": textwrap.dedent(source)})
    with pytest.raises(BrokenPluginError, match="is not a function decorated with @tool"):
        site.host().spec("tool", "x", ToolSpec)
