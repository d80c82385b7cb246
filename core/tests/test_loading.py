"""Loading: each fault of a plugin is told with its cause and its remedy, and nothing is loaded or asked twice."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from typing import Any

import pytest

from jackfield.errors import BrokenPluginError, PluginBlockedError, PluginError
from jackfield.plugins import PluginHost, ToolSpec, hook
from jackfield.plugins._catalog import ANY, Row
from jackfield.plugins._loading import Once, blaming, host_argument

GOOD = """
from jackfield.plugins import ToolSpec, hook

@hook.tools
def tools():
    return [{tools}]
"""
SPEC = 'ToolSpec(name="{}", target="{}", description="Good.")'


def light(*names: str, target: str = "m:T", before: str = "") -> str:
    return before + GOOD.format(tools=", ".join(SPEC.format(name, target) for name in names))


UPGRADE = "Try: pip install --upgrade bad-one; everything else works without it"
FAILED = "bad-one is broken, bad_light cannot be imported"
TEXTS = {
    "raises": ("raise RuntimeError('no licence')", f"{FAILED} (RuntimeError: no licence). {UPGRADE}"),
    "raises without a text": ("raise RuntimeError", f"{FAILED} (RuntimeError). {UPGRADE}"),
    "raises with a text of control characters": (
        r"raise RuntimeError('a\x1b[31mb\nc')",
        f"{FAILED} (RuntimeError: a [31mb c). {UPGRADE}",
    ),
    "raises with a long text": (
        "raise RuntimeError('x' * 501)",
        f"{FAILED} (RuntimeError: {'x' * 500}). {UPGRADE}",
    ),
    "raises an error whose text raises": (
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        f"{FAILED} (Odd: (no message)). {UPGRADE}",
    ),
    "exits": ("raise SystemExit(3)", f"{FAILED} (SystemExit: 3). {UPGRADE}"),
    "needs a package": (
        "import not_there_at_all.inside",
        "bad-one cannot be loaded: it needs the package 'not_there_at_all', which is not installed: "
        "pip install --upgrade bad-one",
    ),
    "needs a package without a name": (
        "raise ModuleNotFoundError('gone')",
        f"{FAILED} (ModuleNotFoundError: gone). {UPGRADE}",
    ),
    "offers other names": (
        light("y", "z" * 100),
        f"bad-one declares tool.x, but its module bad_light does not provide tool.x (provided: y, {'z' * 80}); "
        "report this to its authors, or run: pip uninstall bad-one",
    ),
    "offers nothing": (
        light(),
        "bad-one declares tool.x, but its module bad_light does not provide tool.x (provided: none); report this to "
        "its authors, or run: pip uninstall bad-one",
    ),
    "offers a name twice": (
        light("x", "x"),
        "bad-one declares tool.x 2 times; report this to its authors",
    ),
    "has a hook that raises": (
        "from jackfield.plugins import hook\n@hook.tools\ndef tools(): raise KeyError('x')",
        f"bad-one is broken, its hook for tools failed (KeyError: 'x'). {UPGRADE}",
    ),
    "describes it incorrectly": (
        light("x", target="no target"),
        "bad-one has an incorrect description of tool.x: 'target' must be 'module:name', got 'no target'",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_an_error_says_the_cause_and_the_remedy(site: Any, case: str) -> None:
    source, text = TEXTS[case]
    site.add("bad-one", {"tool.x": "bad_light"}, modules={"bad_light": source})
    host = site.host()
    for _ in range(2):
        with pytest.raises(BrokenPluginError) as caught:
            host.spec("tool", "x", ToolSpec)
        assert str(caught.value) == text


@pytest.mark.parametrize("module", ["gone_light", "gone_package.light", "here.gone"])
def test_a_module_of_its_own_that_is_missing_is_no_other_package(site: Any, module: str) -> None:
    site.add("bad-one", {"tool.x": "bad_light", "tool.y": module}, modules={
        "bad_light": light("x", target=f"{module}:Tool"), "here.__init__": "", "gone_package_2": "",
    })  # fmt: skip
    with pytest.raises(BrokenPluginError, match=f"^bad-one is broken, {module} cannot be imported \\(ModuleNotFound"):
        site.host().load("tool", "x")


def test_a_package_whose_name_only_begins_like_the_modules_is_another_one(site: Any) -> None:
    modules = {"bad_light": light("x", target="bad_heavy:T"), "bad_heavy": "import bad"}
    site.add("bad-one", {"tool.x": "bad_light"}, modules=modules)
    with pytest.raises(BrokenPluginError, match="it needs the package 'bad', which is not installed"):
        site.host().load("tool", "x")


def test_a_module_that_another_distribution_lacks_is_told_with_both_versions(site: Any) -> None:
    site.add("wool", version="0.2.1", modules={"wool.__init__": ""})
    site.add("mill", {"tool.x": "mill"}, version="3.0", modules={"mill": "import wool.gone"}, requires=["wool>=0.1"])
    with pytest.raises(BrokenPluginError) as caught:
        site.host().spec("tool", "x", ToolSpec)
    assert str(caught.value) == (
        "mill is broken, mill cannot be imported: mill 3.0 uses wool.gone, which wool 0.2.1 does not provide. To fix "
        "it, run: pip install 'wool>=0.1,<0.2'. Everything else works without mill"
    )


@pytest.mark.parametrize(
    ("installed", "advice"),
    [(True, "Try: pip install --upgrade acme"), (False, "Fix it (registered in code)")],
)
def test_the_advice_is_for_whoever_can_follow_it(installed: bool, advice: str) -> None:
    row = Row("tool", "x", "m", "acme" if installed else "acme@code", "1.0", 1, "registered in code")
    with (
        pytest.raises(BrokenPluginError, match=re.escape(f"(ValueError: no). {advice}; everything")),
        blaming(row, "it"),
    ):
        raise ValueError("no")


def test_ctrl_c_and_the_errors_that_are_meant_for_the_caller_pass() -> None:
    row = Row("tool", "x", "m", "acme", "1.0", 1, "")
    with pytest.raises(KeyboardInterrupt), blaming(row, "it", besides=LookupError):
        raise KeyboardInterrupt
    with pytest.raises(KeyError), blaming(row, "it", besides=LookupError):
        raise KeyError
    with pytest.raises(BrokenPluginError), blaming(row, "it"):
        raise KeyError


# --- offers ---


def test_a_source_offers_its_own_kind_unless_another_is_asked_for(site: Any) -> None:
    source = (
        light("a")
        + "\nfrom jackfield.plugins import SearcherSpec\n@hook.searchers\n"
        + ("def searchers(): return [SearcherSpec(name='s', target='m:S')]\n")
    )
    site.add("acme", {"tool.*": "acme_light", "searcher.*": "acme_light"}, modules={"acme_light": source})
    host = site.host()
    [searchers, tools] = host.catalog.rows
    assert [row.id for row in host.offers(tools)] == ["tool.a"]
    assert [row.id for row in host.offers(searchers)] == ["searcher.s"]
    everything = Row(ANY, ANY, "acme_light", "acme", "1.0", 1, tools.location)
    assert sorted(row.id for row in host.offers(everything)) == ["searcher.s", "tool.a"]
    assert [row.id for row in host.offers(everything, "searcher")] == ["searcher.s"]


def test_a_source_that_fails_is_logged_once_or_raises_if_settings_are_strict(
    site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    site.add("down", {"tool.*": "down_light"}, modules={"down_light": "raise OSError('no server')"})
    host = site.host(enabled=("tool.down/*",))
    with caplog.at_level(logging.WARNING, "jackfield"):
        for _ in range(3):
            with pytest.raises(PluginError, match="is installed"):
                host.find("tool", "read")
    assert ["no server" in record.getMessage() for record in caplog.records] == [True]
    with pytest.raises(BrokenPluginError, match="no server"):
        site.host(enabled=("tool.down/*",), strict=True).find("tool", "read")


class Growing:
    """Offers one more tool each time it is asked."""

    def __init__(self, text: str = "Good.") -> None:
        self.asked, self.text = 0, text

    @hook.tools
    def tools(self) -> list[ToolSpec]:
        self.asked += 1
        return [ToolSpec(name=f"t{number}", target="json:loads", description=self.text) for number in range(self.asked)]


def test_a_refresh_asks_again_and_loads_nothing_again(site: Any) -> None:
    site.add("acme", {"tool.*": "acme_light"}, modules={
        "acme_light": GOOD.format(tools="*[" + SPEC.format("{}", "acme_heavy:T").replace('"{}"', "f't{n}'")
        + " for n in range(asked())]") + "\ndef asked():\n    made.append(1)\n    return len(made)\nmade = []\n",
        "acme_heavy": "class T: ...",
    })  # fmt: skip
    host = site.host()
    [source] = host.catalog.rows
    assert len(host.offers(source)) == len(host.offers(source)) == 1
    loaded = host.load("tool", "acme/t0")
    host.refresh()
    assert len(host.offers(source)) == 2
    assert host.load("tool", "acme/t0") is loaded


def test_what_was_unregistered_is_forgotten_and_nothing_else_is(site: Any) -> None:
    site.add_tools("sound", "good")
    host = site.host()
    kept = host.spec("tool", "good", ToolSpec)
    for text in ("First.", "Second.", "Third."):
        name = host.register(Growing(text), name="growing")
        assert host.names("tool") == ["good", "t0"]
        assert host.spec("tool", "t0", ToolSpec).description == text
        host.unregister(name)
        assert host.names("tool") == ["good"]
    assert host.spec("tool", "good", ToolSpec) is kept
    assert site.times_imported("sound") == 1


def test_a_module_of_two_distributions_has_its_hooks_once(site: Any) -> None:
    site.add("one", {"tool.a": "shared_light"}, modules={"shared_light": light("a", "b")})
    (site.folder / "one-1.0.dist-info/RECORD").unlink()
    site.add("two", {"tool.b": "shared_light"})
    (site.folder / "two-1.0.dist-info/RECORD").unlink()
    host = site.host()
    assert host.spec("tool", "one/a", ToolSpec).name == "a"
    assert host.spec("tool", "two/b", ToolSpec).name == "b"


def test_a_class_of_another_plugin_that_may_not_load_is_not_reached_through_one_that_may(site: Any) -> None:
    site.add("owner", {"tool.o": "owner.plugin"}, modules={"owner.plugin": light("o"), "owner.tool": "class T: ..."})
    site.add("user", {"tool.u": "user_light"}, modules={"user_light": light("u", target="owner.tool:T")})
    assert site.host().load("tool", "u").__name__ == "T"
    with pytest.raises(PluginBlockedError, match=r"^user/u uses owner\.tool:T, but owner/o is blocked"):
        site.host(block=frozenset({"owner"})).load("tool", "u")
    # What belongs to its own package is judged with the component itself.
    host = site.host(block=frozenset({"tool.p"}))
    site.add("pair", {"tool.p": "pair.plugin", "tool.q": "pair.plugin"}, modules={
        "pair.plugin": light("p", "q", target="pair.tool:T"), "pair.tool": "class T: ...",
    })  # fmt: skip
    host.refresh()
    assert host.load("tool", "q").__name__ == "T"


@pytest.mark.parametrize("source", ["import time\ntime.sleep(0.02)\n", "import time\ntime.sleep(0.02)\n1 / 0\n"])
def test_the_trace_has_milliseconds_also_of_an_import_that_failed(
    site: Any, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": light("x", before=source)})
    host = site.host(trace=True)
    if "1 / 0" in source:
        with pytest.raises(BrokenPluginError):
            host.spec("tool", "x", ToolSpec)
    else:
        host.spec("tool", "x", ToolSpec)
    match = re.fullmatch(r"jackfield: acme loads acme_light \((\d+\.\d) ms\)\n", capsys.readouterr().err)
    assert match
    assert float(match[1]) >= 20


# --- locks ---


def test_a_step_that_failed_with_another_error_runs_again() -> None:
    once, asked = Once(), []

    def step() -> str:
        asked.append(1)
        if len(asked) == 1:
            raise LookupError
        return "done"

    with pytest.raises(LookupError):
        once.get(("spec", "acme", "x"), step)
    assert once.get(("spec", "acme", "x"), step) == once.get(("spec", "acme", "x"), step) == "done"
    assert len(asked) == 2


def test_two_steps_do_not_wait_for_each_other() -> None:
    once, inside = Once(), threading.Event()

    def step() -> str:
        # Importing one plugin may wait for another thread, which imports a second one.
        thread = threading.Thread(target=lambda: (once.get(("b", "", 0), lambda: "b"), inside.set()), daemon=True)
        thread.start()
        assert inside.wait(30)
        return "a"

    assert once.get(("a", "", 0), step) == "a"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_child_of_a_fork_waits_for_no_lock_of_another_thread(site: Any) -> None:
    """A lock that another thread holds at the time of the fork is held for ever in the child."""
    site.add_tools("acme", "x", "y")
    host: PluginHost = site.host()
    assert host.spec("tool", "x", ToolSpec).name == "x"
    held, go_on = threading.Event(), threading.Event()
    once = host._loader._once

    def hold() -> None:
        with host._lock, host._loader._lock, once._lock:
            for lock in once._step_locks.values():
                lock.acquire()
            held.set()
            go_on.wait(60)
            for lock in once._step_locks.values():
                lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it ends the child
        signal.alarm(20)
        code = 1
        try:
            host.refresh()
            host.register(Growing(), name="growing")
            code = 0 if host.spec("tool", "y", ToolSpec).name == "y" and host.find("tool", "t0") else 2
        finally:
            os._exit(code)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- the host as an argument ---


def needs_host(host: Any) -> Any: ...


def needs_none(other: Any) -> Any: ...


@pytest.mark.parametrize(("factory", "is_given"), [(needs_host, True), (needs_none, False), (5, False), (type, False)])
def test_the_host_goes_to_what_has_a_parameter_for_it(site: Any, factory: Any, is_given: bool) -> None:
    host = site.host()
    row = Row("tool", "x", "m", "acme", "1.0", 1, "")
    assert host_argument(host, row, factory) == ({"host": host} if is_given else {})
