"""Each processor of a chain is shown with the rules that have put it where it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from jackfield.events import ModelEvent
from jackfield.plugins import PluginHost
from jackfield.processors import CallNext, Processor, in_order
from jackfield.request import ChatRequest
from jackfield.settings import Settings
from jackfield.testing import ScriptedModel
from jackfield_manage.judging.pipeline import explain_order, explain_pipeline


def named(name: str, phase: Any = "context", after: Iterable[str] = (), before: Iterable[str] = ()) -> Processor:
    class Passing(Processor):
        def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
            return call_next(request)

    made = Passing()
    # The class variables of a class made on the spot.
    Passing.name, Passing.phase, Passing.after, Passing.before = name, phase, tuple(after), tuple(before)
    return made


CHAIN = [named("a", after=["b"]), named("b"), named("c"), named("z", "output", before=["y"]), named("y", "output")]


@pytest.mark.parametrize(
    ("order", "reasons"),
    [
        (
            (),
            {
                "z": ("phase output",),
                "y": ("phase output", "inside z (z declares before='y')"),
                "b": ("phase context",),
                "c": ("phase context", "tied with b, ordered by name"),
                "a": ("phase context", "inside b (a declares after='b')"),
            },
        ),
        (
            ("a", "b"),
            {
                "z": ("phase output",),
                "y": ("phase output", "inside z (z declares before='y')"),
                "a": ("listed in `order`",),
                "b": ("listed in `order`",),
                "c": ("phase context", "tied with b, ordered by name"),
            },
        ),
    ],
    ids=["by their wishes", "by a list"],
)
def test_a_place_has_the_reasons_for_it(order: tuple[str, ...], reasons: dict[str, tuple[str, ...]]) -> None:
    ordered = explain_order(CHAIN, order)
    assert [entry.processor for entry in ordered] == in_order(CHAIN, order)
    assert {entry.processor.name: entry.reasons for entry in ordered} == reasons


def test_a_model_shows_its_own_chain() -> None:
    model = ScriptedModel([], processors=[named("b"), named("a")])
    assert [(entry.processor.name, entry.reasons) for entry in explain_pipeline(model)] == [
        ("a", ("phase context",)),
        ("b", ("phase context", "tied with a, ordered by name")),
    ]


def test_only_processors_of_one_phase_and_depth_are_ordered_by_name() -> None:
    chain = [named("a", "output"), named("b", after=["a"]), named("c", after=["b"]), named("d")]
    assert [(entry.processor.name, entry.reasons) for entry in explain_order(chain)] == [
        ("a", ("phase output",)),
        ("b", ("phase context",)),
        ("d", ("phase context", "tied with b, ordered by name")),
        ("c", ("phase context", "inside b (c declares after='b')")),
    ]
    assert [entry.processor for entry in explain_order(chain)] == in_order(chain)


def test_a_list_that_names_one_of_two_leaves_their_own_rule_in_force() -> None:
    chain = [named("a", after=["b"]), named("b")]
    assert [(entry.processor.name, entry.reasons) for entry in explain_order(chain, ["b"])] == [
        ("b", ("listed in `order`",)),
        ("a", ("phase context", "inside b (a declares after='b')")),
    ]


def test_a_list_settles_a_circle() -> None:
    chain = [named("a", after=["b"]), named("b", after=["a"])]
    assert [(entry.processor.name, entry.reasons) for entry in explain_order(chain, ["b", "a"])] == [
        ("b", ("listed in `order`",)),
        ("a", ("listed in `order`",)),
    ]


def test_the_order_of_the_settings_is_a_reason() -> None:
    host: Any = PluginHost(Settings(order=("b", "a")), paths=[])
    model = ScriptedModel([], processors=[named("a"), named("b")], host=host)
    assert [(entry.processor.name, entry.reasons) for entry in explain_pipeline(model)] == [
        ("b", ("listed in `order`",)),
        ("a", ("listed in `order`",)),
    ]
