"""Components that are known without being installed, as their distributions describe them."""

from __future__ import annotations

import pytest

from jackfield.plugins._known import (
    Known,
    backend_of_model,
    install_hint,
    known_components,
    known_distribution,
    known_with_key,
    parser_of_extension,
)


def test_known_components_are_read_as_their_distributions_describe_them() -> None:
    assert Known.of("d", {}) == Known("d", "")
    values = {
        "summary": 5, "requires": ["a.b"], "extensions": ("pdf",), "keys": ["k"], "names": ["n*"],
        "required_by": {"x": "tool"},
    }  # fmt: skip
    known = Known.of("d", values)
    assert known == Known("d", "5", ("a.b",), ("pdf",), ("k",), ("n*",), {"x": "tool"})
    assert Known.of("d", {"requires": "ab", "required_by": ["x"], "keys": 5}) == Known("d", "")
    assert known.asks_for({"x": ["y"]}) == ["a.b", "tool.y"]
    assert list(known_components()) == sorted(known_components())
    assert known_components()["parser.pdf"].distribution == known_distribution("parser", "pdf") == "jackfield-pdf"
    assert (known_distribution("parser", "nothing"), install_hint("parser", "nothing")) == (None, "")
    assert install_hint("parser", "pdf") == ". To install it, run: pip install jackfield-pdf"
    assert (parser_of_extension("pdf"), parser_of_extension("nothing")) == ("pdf", None)
    assert known_with_key("llm", ["nothing at all"]) is None


@pytest.mark.parametrize("model", ["claude-sonnet", "CLAUDE-SONNET", "nothing like it"])
def test_a_backend_is_known_by_the_names_of_its_models(model: str) -> None:
    patterns = {
        pattern: component.partition(".")[2]
        for component, known in known_components().items()
        if component.startswith("llm.")
        for pattern in known.names
    }
    from fnmatch import fnmatchcase

    fits = [pattern for pattern in patterns if fnmatchcase(model.lower(), pattern)]
    assert backend_of_model(model) == (patterns[max(fits, key=len)] if fits else None)
    assert bool(fits) == ("claude" in model.lower())
