"""How properties are tested everywhere in the repository, and how a test that never ends is ended.

`make test` tries the same examples each time, so that it fails for a change and never by chance; of a test that asks
for many, a third. `make nightly` tries new ones, twenty times as many as the test asks for. What it finds becomes an
`@example` of the test, and so a part of `make test`. Tests that are marked `nightly` run only then.

A test whose time is up fails with the stacks of all threads; that is pytest-timeout's alarm, which rings once. If
nothing comes of it, the process prints the stacks again and ends itself: a worker's test counts as failed, and another
worker goes on.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TextIO

import hypothesis
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key  # of pytest's standard error, which it does not capture

pytest_plugins = ("scripts.forked_workers",)

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "always-the-same")
EXAMPLES: Mapping[str, Callable[[int], int]] = {
    "always-the-same": lambda asked: min(asked, max(20, asked // 3)),
    "nightly": lambda asked: 20 * asked,
}
"""How many examples of a test are tried that asks for so many."""

# No test asks the hub of Hugging Face, whichever imports its client first: the client reads this once.
os.environ["HF_HUB_OFFLINE"] = "1"
# No thread of numpy is in a process that forks workers; and where several wait for each other, they spin.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# No deadline: how long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("always-the-same", deadline=None, derandomize=True)
hypothesis.settings.register_profile("nightly", deadline=None, print_blob=True)
hypothesis.settings.load_profile(PROFILE)

# Tests that share what is costly to make: models of torch, files that are bombs, servers and databases of others, one
# with Qwen-Agent, environments with the oldest versions. So do those of each class of a suite, what was found of their
# component.
TOGETHER = (
    ("plugins/searchers/pgvector-search/tests/",),
    ("plugins/parsers/epub/tests/test_contract.py",),
    ("plugins/parsers/office/tests/test_contract.py",),
    (
        "tests/test_documentation.py::test_an_example_with_torch",
        "plugins/llms/transformers/tests/",
        "plugins/embedders/local-embedder/tests/test_torch.py",
    ),
    ("tests/test_clean_install.py::test_the_oldest",),
    ("tests/test_coming_from_qwen.py",),
    ("tests/test_hostile_neighbours.py",),
    ("tests/test_real_server.py",),
    *(
        (f"plugins/tools/code-interpreter/tests/test_{name}.py",)
        for name in ("escapes", "tool", "sandboxed", "forgery")
    ),
    ("plugins/stores/postgres-store/tests/",),
    ("plugins/libraries/postgres/tests/",),
    ("plugins/tools/mcp/tests/test_real_servers.py",),
    ("plugins/llms/dashscope/tests/test_tokenizer.py", "plugins/llms/dashscope/tests/test_contract.py::TestTokenizer"),
    ("plugins/libraries/bpe/tests/",),
    ("plugins/tokenizers/tiktoken/tests/",),
    (
        "plugins/llms/openai/tests/test_sdk.py",
        "plugins/llms/openai/tests/responses/",
        "plugins/llms/azure/tests/test_sdk.py",
    ),
    # An environment and a process that forks for commands; and installers that are unpacked and compiled.
    tuple(f"plugins/commands/terminal/tests/test_{name}.py" for name in ("running", "chatting", "approval", "files")),
    tuple(f"plugins/commands/manage/tests/test_{name}.py" for name in ("cli_plugins", "manager", "near_names")),
    tuple(f"plugins/commands/manage/tests/test_{name}.py" for name in ("lock", "packages", "bisect", "why")),
)

# Tests that take long, each a unit of its own. They begin before the other single tests: the end waits for none.
LONG = (
    "tests/test_template.py",
    "tests/test_release.py",
    "tests/test_clean_install.py",
    "tests/test_documentation.py::test_the_plugins_that_pages_make",
    "tests/test_documentation.py::test_the_site",
)

_SETTINGS = "_hypothesis_internal_use_settings"  # of a test; hypothesis has no public way to change what a test says


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long tests first, and have each test try as many examples as the profile says, whatever it names itself."""
    if PROFILE != "nightly":
        _leave_out([item for item in items if item.get_closest_marker("nightly")], items, config)
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    for test in {getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}:
        said = getattr(test, _SETTINGS, None)
        if said is not None:
            setattr(test, _SETTINGS, hypothesis.settings(said, max_examples=EXAMPLES[PROFILE](said.max_examples)))


def _leave_out(some: list[pytest.Item], items: list[pytest.Item], config: pytest.Config) -> None:
    config.hook.pytest_deselected(items=some)
    left_out = set(some)
    items[:] = [item for item in items if item not in left_out]


def pytest_unit_of_work(item: pytest.Item) -> str:
    """What one worker runs: a line of `TOGETHER`, a class of a suite, a file, or one test of `tests/`.

    What a file makes for its tests is then made once. Those of `tests/` take long, and share what is made for a run.
    """
    for places in TOGETHER:
        if item.nodeid.startswith(places):
            return places[0]
    file = item.nodeid.partition("::")[0]
    if file.endswith("/test_contract.py"):
        return item.nodeid.rpartition("::")[0]
    return item.nodeid if file.startswith("tests/") else file


def pytest_before_workers(folder: Path) -> None:
    """Have all workers share the processes that programs of tests are forks of."""
    from jackfield_testkit.forks import share_forks

    (folder / "forks").mkdir()
    share_forks(folder / "forks")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the tests: all of it is needed to the end, and looking took a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Number bytes, and do not show them: a file made on the spot has the time in it, and workers would not agree."""
    return argname if isinstance(val, bytes) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting for tests that do not end when their time is up."""
    help_ = "how many seconds the process goes on if a test, or a thread at the end, does not end in time"
    parser.addini("timeout_grace", help_, default="180")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process if the alarm is not heard: if it is swallowed, or rings while no Python runs."""
    _end_in_time(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Begin again after a failure, as what ends a fixture may not end; pytest has just cancelled it for debuggers."""
    if isinstance(node, pytest.Item):
        _end_in_time(node)


def _end_in_time(item: pytest.Item) -> None:
    if seconds := _seconds_of(item):
        _end_after(item.config, seconds, item.config.stash[fault_handler_stderr_fd_key])


def _end_after(config: pytest.Config, seconds: float, stderr: int | TextIO) -> None:
    # By a thread of C: neither a deadlock nor an expression that keeps the interpreter to itself holds it up.
    faulthandler.dump_traceback_later(seconds + float(config.getini("timeout_grace")), exit=True, file=stderr)


def _seconds_of(item: pytest.Item) -> float:
    """How long a test may take, 0 for as long as it likes; a test's own mark wins, as for pytest-timeout."""
    mark = item.get_closest_marker("timeout")
    if mark and mark.args:
        return float(mark.args[0])
    named = item.config.getoption("timeout", None)
    return float(item.config.getini("timeout") or 0) if named is None else float(named)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process if threads are left that would keep it from ending. A worker does not wait for threads."""
    left = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    if left:
        sys.stdout.flush()  # its end flushes nothing
        _end_after(config, 0, sys.__stderr__ or sys.stderr)
