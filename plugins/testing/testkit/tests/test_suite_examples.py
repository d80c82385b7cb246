"""The examples in the docstrings of the suites run as they stand, on components that are as they say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jackfield_testkit import suites
from jackfield_testkit.forks import output_of

HERE = Path(__file__).parent
ABOUT_A_DISTRIBUTION = {"PluginSuite", "Suite"}  # they have no component
# Of the suites that ask a server, what the attributes of the example are about: all of it runs in the tests of each.
ENOUGH = {
    "LLMBackendSuite": ("test_the_seed_is_sent", "test_a_stream_has_one_end_and_it_comes_last"),
    "EmbedderSuite": (
        "test_vectors_that_cannot_be_compared_are_of_two_spaces",
        "test_many_texts_keep_their_number_and_order",
    ),
}


def example_of(suite: str) -> str:
    """The code in a docstring; its class has the name of the suite behind its own, so that all fit into one module."""
    found = re.findall(r"^```python\n(.*?)^```$", inspect.cleandoc(getattr(suites, suite).__doc__), re.M | re.S)
    return re.sub(r"^class \w+", f"class TestOf{suite}", "\n\n".join(found), flags=re.M)


EXAMPLES = {suite: text for suite in suites.__all__ if (text := example_of(suite))}


def test_every_suite_of_a_kind_shows_an_example() -> None:
    assert set(suites.__all__) - EXAMPLES.keys() == ABOUT_A_DISTRIBUTION


# One run for all of them: starting pytest costs more than most of these tests.
def test_the_examples_in_docstrings_pass(run_suites: Callable[..., Any], installed_acme: Path) -> None:
    module = f"from jackfield_testkit.suites import {', '.join(EXAMPLES)}\n\n\n" + "\n\n".join(EXAMPLES.values())
    selected = [f"TestOf{suite}" for suite in EXAMPLES if suite not in ENOUGH]
    selected += [f"TestOf{suite}::{test}" for suite, tests in ENOUGH.items() for test in tests]
    outcomes = run_suites(module, selected, installed_acme, HERE / "zoo", HERE / "backends")
    failed = {
        suite: outcomes.of(f"TestOf{suite}", "failure") | outcomes.of(f"TestOf{suite}", "error") for suite in EXAMPLES
    }
    assert {suite: tests for suite, tests in failed.items() if tests} == {}
    assert all(outcomes.of(f"TestOf{suite}", "passed") for suite in EXAMPLES)


def test_failed_assertions_of_every_suite_show_their_values() -> None:
    registered = output_of(
        "import pytest\n"
        "pytest.register_assert_rewrite = lambda *modules: print(*modules)\n"
        "from jackfield_testkit.suites import Suite"
    )
    with_assertions = [
        f"{suites.__name__}.{path.stem}"
        for path in Path(suites.__file__).parent.glob("*.py")
        if "    assert " in path.read_text(encoding="utf-8")
    ]
    assert set(registered.split()) >= {*with_assertions}
