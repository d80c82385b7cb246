"""A result is given again for the same call, and for no other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from jackfield import BaseTool, ContentItem, ToolContext, ToolResult, tool
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.tools import ToolEntry, toolset
from jackfield_testkit.forks import output_of
from jackfield_tool_results.cached import CachedResults, _decode, _encode, _Memory
from jackfield_tool_results.kept import KeptResults
from jackfield_tool_results.plugin import toolsets


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Counting:
    """A tool that counts its calls."""

    def __init__(self, **options: Any) -> None:
        self.made: list[Any] = []

        @tool(**{"name": "look_up", "cacheable": True, **options})
        def look_up(word: str, limit: int = 1) -> Any:
            """Look a word up."""
            self.made.append((word, limit))
            if word == "fail":
                raise ToolServiceError("not now")
            if word == "picture":
                return [ContentItem(image="data:image/png;base64,AAAA"), ContentItem(text="a picture")]
            return ToolResult(f"{word} {len(self.made)}", {"hits": 1})

        self.tool = look_up


def cached(*tools: Any, **settings: Any) -> CachedResults:
    return CachedResults(tools=tools, **settings)


def test_the_same_call_is_made_once_and_says_that_it_was_cached(finish: Any) -> None:
    counting = Counting()
    entry = cached(counting.tool)
    one, two = finish([entry], ("look_up", {"word": "a", "limit": 2}), ("look_up", {"limit": 2, "word": "a"}))
    assert one.message.content == two.message.content == "a 1"
    assert counting.made == [("a", 2)]
    assert "cached" not in one.metadata
    assert (two.metadata["cached"], two.metadata["hits"]) == (True, 1)
    (three,) = finish([entry], ("look_up", {"word": "a", "limit": 2}))
    assert three.metadata["cached"]


def test_other_arguments_another_language_and_another_scope_are_other_calls(finish: Any, tmp_path: Path) -> None:
    counting = Counting(name="look_up")
    entry = cached(counting.tool)
    finish([entry], ("look_up", {"word": "a"}), ("look_up", {"word": "b"}), lang="en")
    finish([entry], ("look_up", {"word": "a"}), lang="zh")
    assert len(counting.made) == 3
    for scope in ("anna", "bob", "anna"):
        finish([cached(look_at, path=tmp_path / "cache.sqlite", scope=scope)], ("look_at", {"word": scope}))
        finish([cached(look_at, path=tmp_path / "cache.sqlite", scope=scope)], ("look_at", {"word": "both"}))
    assert LOOKED_AT == ["anna", "both", "bob", "both"]


LOOKED_AT: list[str] = []


@tool(cacheable=True)
def look_at(word: str) -> str:
    """Look at a word."""
    LOOKED_AT.append(word)
    return word


def test_an_error_is_not_kept(finish: Any) -> None:
    counting = Counting()
    entry = cached(counting.tool)
    results = finish([entry], *[("look_up", {"word": "fail"})] * 2)
    assert [result.error for result in results] == ["ToolServiceError"] * 2
    assert len(counting.made) == 2


def test_a_result_is_found_again_after_the_constants_of_its_tool_are_used_elsewhere(finish: Any) -> None:
    counting = Counting()
    entry = cached(counting.tool)
    finish([entry], ("look_up", {"word": "a"}))
    code = counting.tool.function_called.__code__
    used = [list(code.co_consts), list(code.co_names), list(code.co_varnames), code.co_consts, code.co_names]
    (result,) = finish([entry], ("look_up", {"word": "a"}))
    assert (result.metadata.get("cached"), len(counting.made)) == (True, 1), used


def test_a_result_expires(finish: Any) -> None:
    counting, clock = Counting(), Clock()
    entry = cached(counting.tool, ttl_s=60, clock=clock)
    ages = []
    for _ in range(3):
        (result,) = finish([entry], ("look_up", {"word": "a"}))
        ages.append(result.metadata.get("age_s"))
        clock.now += 30
    assert len(counting.made) == 2
    assert ages == [None, 30, None]


def test_a_result_from_a_clock_that_was_set_back_is_0_seconds_old(finish: Any) -> None:
    counting, clock = Counting(), Clock()
    entry = cached(counting.tool, clock=clock)
    finish([entry], ("look_up", {"word": "a"}))
    clock.now -= 30
    (result,) = finish([entry], ("look_up", {"word": "a"}))
    assert result.metadata["age_s"] == 0


def test_in_memory_the_least_recently_used_result_leaves_first(finish: Any) -> None:
    counting = Counting()
    entry = cached(counting.tool, max_bytes=40)
    words = ["a", "b", "a", "c", "a", "b"]
    finish([entry], *(("look_up", {"word": word}) for word in words))
    assert [word for word, _ in counting.made] == ["a", "b", "c", "b"]


def test_items_come_back_as_they_were(finish: Any) -> None:
    one, two = finish([cached(Counting().tool)], *[("look_up", {"word": "picture"})] * 2)
    assert one.message.content == two.message.content
    assert [item.image is not None for item in two.message.items] == [True, False]


def test_a_tool_that_does_not_say_so_is_refused_by_name_and_passed_through_in_a_set(finish: Any) -> None:
    counting = Counting(cacheable=False)
    with pytest.raises(ConfigError, match="'look_up', which is not declared cacheable"):
        finish([cached(counting.tool)])

    @toolset
    async def several(_context: ToolContext[Any]) -> list[ToolEntry]:
        return [counting.tool, look_at]

    LOOKED_AT.clear()
    finish([cached(several)], *[("look_up", {"word": "a"})] * 2, *[("look_at", {"word": "a"})] * 2)
    assert (len(counting.made), len(LOOKED_AT)) == (2, 1)


def test_arguments_are_checked_and_approval_is_asked_before_the_cache_is(finish: Any) -> None:
    counting = Counting(needs_approval=True)
    entry = cached(counting.tool)
    finish([entry], ("look_up", {"word": "a"}), approve=lambda *_: True)
    (refused,) = finish([entry], ("look_up", {"word": "a"}), approve=lambda *_: False)
    assert refused.error == "NotAllowed"
    (wrong,) = finish([entry], ("look_up", {"wort": "a"}), approve=lambda *_: True)
    assert wrong.error == "ToolArgumentError"


LIGHT = (
    "from jackfield.plugins import ToolSpec, hook\n@hook.tools\ndef tools():\n"
    "    return [ToolSpec(name='act', target='acme_heavy:Act', description='Acts.', cacheable=True)]\n"
)
HEAVY = """
from jackfield import BaseTool

CALLS = []

class Act(BaseTool):
    cacheable = True

    def call(self, params, *, context=None):
        CALLS.append(1)
        return f"{self.cfg['unit']} {len(CALLS)}"
"""


def test_an_installed_tool_is_known_by_package_version_and_settings_but_not_by_its_key(
    finish: Any, site: Any, tmp_path: Path
) -> None:
    path = tmp_path / "cache.sqlite"
    results = []
    for number, (version, unit, key) in enumerate(
        (("1", "m", "K1"), ("1", "m", "K2"), ("1", "ft", "K1"), ("2", "m", "K1"))
    ):
        if number:
            site.remove("acme")
        site.add(
            "acme", {"tool.act": "acme_light"}, version=version, modules={"acme_light": LIGHT, "acme_heavy": HEAVY}
        )
        entry = cached({"name": "act", "unit": unit, "api_key": f"secret-{key}"}, path=path)
        results += finish([entry], ("act", {}), host=site.host())
    assert [result.message.content for result in results] == ["m 1", "m 1", "ft 2", "m 3"]
    assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.glob("cache.sqlite*"))


WHO = """
import os, sys
from jackfield import FnCallAgent, tool
from jackfield.testing import ScriptedModel, answer, calls

@tool(cacheable=True)
def who() -> str:
    "Say who works."
    return str(os.getpid())

entry = {"name": "cached_results", "tools": [who], "path": sys.argv[1]}
agent = FnCallAgent([entry], ScriptedModel([calls(("who", {})), answer("done")]))
print(agent.ask("go").messages[1].content)
"""


def test_another_process_finds_what_was_kept_on_disk(tmp_path: Path) -> None:
    first, second = (output_of(WHO, tmp_path / "cache.sqlite") for _ in range(2))
    assert first == second
    assert first.isdecimal()


def test_what_is_in_the_file_and_cannot_be_read_is_as_if_it_was_not_there(finish: Any, tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "cache.sqlite"
    LOOKED_AT.clear()
    for content in (b"[", json.dumps([[{"film": 1}], {}]).encode(), b"7"):
        finish([cached(look_at, path=path)], ("look_at", {"word": "a"}))
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE answers SET events = ?", (content,))
        connection.close()
        assert finish([cached(look_at, path=path)], ("look_at", {"word": "a"}))[0].message.content == "a"
    assert len(LOOKED_AT) == 4


def test_a_result_with_a_secret_is_given_and_written_to_no_file(
    finish: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "sk-5f3a9c1e7b2d48600a"
    monkeypatch.setenv("ACME_API_KEY", secret)
    counting: list[int] = []

    @tool(cacheable=True)
    def show() -> str:
        """Show it."""
        counting.append(1)
        return f"the key is {secret}"

    entry = cached(show, path=tmp_path / "cache.sqlite")
    for _ in range(2):
        (result,) = finish([entry], ("show", {}))
        assert "cached" not in result.metadata
    assert len(counting) == 2
    assert "not caching a result: it contains a secret" in caplog.text
    assert secret.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("cache.sqlite*"))


def test_a_tool_with_a_state_of_its_own_is_not_found_by_another_one(finish: Any, tmp_path: Path) -> None:
    class Greets(BaseTool):
        name, description, cacheable = "greet", "Greets.", True

        def __init__(self, word: str) -> None:
            super().__init__()
            self.word = word

        def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            return self.word

    said = [
        finish([cached(Greets(word), path=tmp_path / "cache.sqlite")], ("greet", {}))[0].message.content
        for word in ("hello", "hi")
    ]
    assert said == ["hello", "hi"]


VERSIONS = {
    "a constant": ("word: str", "return word + '1'", "return word + '2'"),
    "a name": ("word: str", "return word.upper()", "return word.lower()"),
    "an operation": ("word: str", "return str(word < 'b')", "return str(word > 'b')"),
    "a function within": ("word: str", "return (lambda: word + '1')()", "return (lambda: word + '2')()"),
    "a default": ("word: str, limit: int = {}", "return word * limit", ""),
    "a default of a keyword": ("word: str, *, limit: int = {}", "return word * limit", ""),
}


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_a_function_whose_code_has_changed_is_another_tool(version: Any, finish: Any, tmp_path: Path) -> None:
    signature, before, after = version

    def made(number: int) -> Any:
        body = after if after and number == 3 else before
        namespace: dict[str, Any] = {"__name__": "versions"}
        exec(f"def look({signature.format(number)}) -> str:\n    'Look.'\n    {body}", namespace)
        return tool(cacheable=True)(namespace["look"])

    path = tmp_path / "results.sqlite"
    for number, is_cached in ((2, False), (3, False), (2, True), (3, True)):
        (plain,) = finish([made(number)], ("look", {"word": "aB"}))
        (result,) = finish([cached(made(number), path=path)], ("look", {"word": "aB"}))
        assert result.message.content == plain.message.content
        assert bool(result.metadata.get("cached")) is is_cached


def test_a_result_that_another_entry_has_changed_is_not_that_of_the_tool(finish: Any, tmp_path: Path) -> None:
    @tool(cacheable=True)
    def report() -> str:
        """Report."""
        return "x" * 501

    path = tmp_path / "results.sqlite"
    kept = KeptResults(tools=[report], max_chars=500)
    (shortened,) = finish([cached(kept, path=path)], ("report", {}))
    (whole,) = finish([cached(report, path=path)], ("report", {}))
    assert shortened.metadata["kept_as"] == "result_1"
    assert (whole.message.content, "cached" in whole.metadata) == ("x" * 501, False)


def test_a_path_may_begin_with_a_tilde_and_is_found_once(
    finish: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    counting = Counting()
    for path in ("~/a.sqlite", "b.sqlite"):
        entry = cached(counting.tool, path=path)
        (tmp_path / "other").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "other")
        finish([entry], ("look_up", {"word": "a"}))
        monkeypatch.chdir(tmp_path)
    assert sorted(file.name for file in tmp_path.glob("*.sqlite")) == ["a.sqlite", "b.sqlite"]


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = cached(Counting().tool).config
    assert (config.ttl_s, config.max_bytes, config.path, config.scope, config.key) == (3600, 64 * 2**20, None, "", None)
    effects = {spec.name: spec.effects for spec in toolsets()}
    assert effects == {
        "cached_results": frozenset({"files"}), "kept_results": frozenset(), "retried_calls": frozenset()
    }  # fmt: skip


def memory(**settings: Any) -> Any:
    return _Memory(**{"ttl_s": 60.0, "max_bytes": 10, "clock": Clock(), **settings})


def test_in_memory_a_result_lives_up_to_its_time() -> None:
    clock = Clock()
    store = memory(clock=clock)

    async def main() -> None:
        await store.put(b"k", b"abc")
        clock.now += 59.9
        hit = await store.get(b"k")
        assert (hit.content, hit.made_at) == (b"abc", 1_000_000.0)
        clock.now += 0.1
        assert await store.get(b"k") is None

    asyncio.run(main())


def test_in_memory_as_much_is_kept_as_fits() -> None:
    store = memory()

    async def keys() -> str:
        found = [key for key in (b"a", b"b", b"c") if await store.get(key) is not None]
        return b"".join(found).decode()

    async def main() -> None:
        await store.put(b"a", b"x" * 5)
        await store.put(b"b", b"x" * 5)
        assert await keys() == "ab"
        await store.put(b"a", b"y" * 5)  # it takes its own place, and is the latest
        assert await keys() == "ab"
        await store.get(b"b")
        await store.get(b"a")
        await store.put(b"c", b"x")
        assert await keys() == "ac"
        await store.put(b"b", b"x" * 11)  # larger than all together may be
        assert await keys() == "ac"
        await store.put(b"b", b"x" * 10)
        assert await keys() == "b"

    asyncio.run(main())


def test_a_result_that_is_not_json_is_given_and_not_kept(finish: Any, caplog: pytest.LogCaptureFixture) -> None:
    made: list[int] = []

    @tool(cacheable=True)
    def odd() -> Any:
        """Be odd."""
        made.append(1)
        return ToolResult("odd", {"object": {1, 2}})

    tools: Any = cached(odd).fixed_tools()
    for _ in range(2):
        assert asyncio.run(tools[0].call({}, context=ToolContext())).content == "odd"
    assert len(made) == 2
    assert "not caching a result: its metadata is not JSON-serializable" in caplog.text


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"[1]", b'["a"]', b'["a", 5]', b'[[{"image": 5}], {}]', b"[" * 100_000, b"\xff"]
)
def test_what_is_no_result_is_not_one(data: bytes) -> None:
    assert _decode(data) is None


def test_a_result_is_decoded_as_it_was() -> None:
    for result in (ToolResult("é\ud83d", {"a": [1]}), ToolResult([ContentItem(text="a")], {})):
        encoded = _encode(result)
        assert encoded is not None
        assert _decode(encoded) == result
