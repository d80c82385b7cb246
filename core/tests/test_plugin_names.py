"""Names in errors: few of them, sorted, and all that may explain one that is absent."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import PluginNotFoundError
from jackfield.suggestions import close_names, list_names, suggest
from tests.support.site import light


def test_names_for_a_sentence_are_sorted_and_few() -> None:
    names = [f"n{number}" for number in range(9)]
    assert list_names(reversed(names[:8])) == "n0, n1, n2, n3, n4, n5, n6, n7"  # type: ignore[arg-type]
    assert list_names([*names, "n0"]) == "n0, n1, n2, n3, n4, n5, n6, n7 and 1 more"
    assert list_names(names, max_names=2) == "n0, n1 and 7 more"
    assert suggest("serch", ["search", "read"]) == "; did you mean 'search'?"
    assert suggest("aab", ["aac", "xyz", "aad"]) == "; did you mean 'aad' or 'aac'?"
    assert suggest("x", ["search"]) == "; known: search"
    assert suggest("x", []) == "; known: nothing"
    assert len(close_names("aaaa", ["aaab", "aaac", "aaad", "aaae"])) == 3


def test_an_absent_name_is_told_all_that_may_explain_it(site: Any) -> None:
    site.add("bad", raw=b"[jackfield.v1]\ntool.reed = bad:Tool\n")
    site.add("acme", {"tool.*": "acme_light"}, modules={"acme_light": light("z")})
    with pytest.raises(PluginNotFoundError) as caught:
        site.host(enabled=("tool.gone/*",)).find("tool", "reed")
    assert caught.value.component == "tool.reed"
    assert str(caught.value) == (
        "no tool 'reed' is installed; known: nothing. bad specifies the object 'Tool' for tool.reed, but must "
        "specify a module: tool.reed = bad. tool.acme/* was not searched: use the component's full address, or enable "
        "'tool.acme/*'. 'tool.gone/*' is enabled, but not installed"
    )
