"""An error about a missing name tells which distribution lacks it, in which version, and what to type."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.errors import BrokenPluginError
from jackfield.plugins import Misfit, misfit_of
from jackfield.plugins._misfits import explain_error, misfit_between
from jackfield.testing import ScriptedModel, answer, calls
from tests.support.site import FakeSite

LIBRARY = """
class Reader:
    def read(self): ...

def parse(text): return text.nope

def __getattr__(name):
    raise AttributeError(f"no {name} here")
"""
USER = """
import wool

class Mine(wool.Reader):
    def read(self): return self.gone

class Own:
    def read(self): return self.gone

def as_import(): from wool import gone
def as_module(): import wool.gone
def as_attribute(): return wool.gone
def of_an_instance(): return wool.Reader().gone
def of_a_class(): return wool.Reader.gone
def inside_the_library(): return wool.parse("x")
def of_ones_own(): return Own().read()
def of_ones_own_below_a_stranger(): return Mine().read()
def private(): return wool.Reader()._gone
def of_the_standard_library(): import json; return json.gone
def of_python(): return None.gone
def not_installed(): import entirely_absent
"""
REPORTED = {
    "as_import": "wool.gone",
    "as_module": "wool.gone",
    "as_attribute": "wool.gone",
    "of_an_instance": "wool.Reader.gone",
    "of_a_class": "wool.Reader.gone",
}
IGNORED = (
    "inside_the_library", "of_ones_own", "of_ones_own_below_a_stranger", "private", "of_the_standard_library",
    "of_python", "not_installed",
)  # fmt: skip


@pytest.fixture
def fail(site: FakeSite) -> Callable[..., Exception]:
    """Return the error of a function of the plugin, which requires `wool`."""

    def error_of(function: str, requires: tuple[str, ...] = ("wool>=0.1",), version: str = "0.2.1") -> Exception:
        site.add("wool", version=version, modules={"wool.__init__": LIBRARY})
        site.add("mill", version="3.0", modules={"mill": USER}, requires=requires)
        try:
            getattr(importlib.import_module("mill"), function)()
        except Exception as error:
            return error
        raise AssertionError(f"{function} did not fail")

    return error_of


@pytest.mark.parametrize("function", REPORTED)
def test_a_name_that_another_distribution_lacks_is_reported(fail: Callable[..., Exception], function: str) -> None:
    error = fail(function)
    misfit = misfit_of(error)
    assert misfit == Misfit("mill 3.0", REPORTED[function], "wool 0.2.1", "pip install 'wool>=0.1,<0.2'")
    explained = explain_error(error)
    assert isinstance(explained, BrokenPluginError)
    assert explained.__cause__ is error
    assert str(explained) == f"{misfit}. To fix it, run: pip install 'wool>=0.1,<0.2'"


@pytest.mark.parametrize("function", IGNORED)
def test_any_other_error_stays_as_it_is(fail: Callable[..., Exception], function: str) -> None:
    error = fail(function)
    assert misfit_of(error) is None
    assert explain_error(error) is error


@pytest.mark.parametrize(
    ("requires", "version", "command"),
    [
        ("wool>=0.1,<0.2", "0.2.1", "pip install 'wool>=0.1,<0.2'"),
        ("wool (<0.2,>=0.1) ; python_version > '3'", "0.2.1", "pip install 'wool<0.2,>=0.1'"),
        ("Wool[dyed] >= 0.3", "0.2.1", "pip install 'wool>=0.3'"),
        ("wool>=0.1,<2", "0.2", "pip install 'wool>=0.1,<0.2'"),
        ("wool>=1.4", "3.0rc1", "pip install 'wool>=1.4,<2'"),
        ("wool>=0.2,<0.3", "0.2.1", "pip install --upgrade mill wool"),
        ("wool>=1.4", "1.6", "pip install --upgrade mill wool"),
        ("wool", "0.2.1", "pip install --upgrade mill wool"),
        ("woollen>=3", "0.2.1", "pip install --upgrade mill wool"),
        ("wool<0.2", "0.2", "pip install 'wool<0.2'"),
        ("wool<0.2.0", "0.2", "pip install 'wool<0.2.0'"),
        ("wool<0.2.1", "0.2", "pip install --upgrade mill wool"),
        ("wool>=0.2.1", "0.2.1", "pip install --upgrade mill wool"),
        ("wool>=0.2.2", "0.2.1", "pip install 'wool>=0.2.2'"),
        ("wool>=0.3", "v0.2.1", "pip install 'wool>=0.3'"),
        ("wool<0.2", "v0.2.1", "pip install 'wool<0.2'"),
    ],
)
def test_the_command_follows_from_the_requirement(
    fail: Callable[..., Exception], requires: str, version: str, command: str
) -> None:
    misfit = misfit_of(fail("as_import", (requires,), version))
    assert misfit is not None
    assert misfit.command == command


def test_a_package_and_itself_are_no_misfit(site: Any) -> None:
    site.add("wool", version="1.0", modules={"wool": ""})
    site.add("mill", version="2.0", modules={"mill": ""})
    assert misfit_between("wool", "wool", "x") is None
    assert misfit_between("mill", "wool", "wool.x") == Misfit(
        "mill 2.0", "wool.x", "wool 1.0", "pip install --upgrade mill wool"
    )


@pytest.mark.parametrize("function", ["as_import", "as_attribute"])
def test_a_misfit_is_explained_where_a_tool_or_a_model_fails(fail: Callable[..., Exception], function: str) -> None:
    error = fail(function)

    @tool
    def work() -> str:
        """Work."""
        raise error

    model = ScriptedModel([calls(("work", {})), answer("done")])
    result = FnCallAgent([work], model).ask("go")
    said = "mill 3.0 uses wool.gone, which wool 0.2.1 does not provide. To fix it, run: pip install"
    assert f"Tool work cannot be used: {said}" in str(result.messages[1].content)
    with pytest.raises(BrokenPluginError, match=said) as caught:
        ScriptedModel([[error]]).ask("go", config={"max_retries": 1})
    assert caught.value.__cause__ is error
