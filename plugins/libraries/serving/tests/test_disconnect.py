"""The parameter of an address that says what becomes of a run whose client leaves."""

from __future__ import annotations

import pytest

from jackfield.servers import RequestRefusedError
from jackfield_serving import read_disconnect


@pytest.mark.parametrize("cancels", [True, False])
def test_the_address_decides_before_the_setting(cancels: bool) -> None:
    assert read_disconnect({}, cancels=cancels) is cancels
    assert read_disconnect({"on_disconnect": "cancel"}, cancels=cancels)
    assert not read_disconnect({"on_disconnect": "continue"}, cancels=cancels)


@pytest.mark.parametrize("query", [{"on_disconnect": ""}, {"on_disconnect": "stop"}, {"other": "cancel"}])
def test_other_parameters_and_values_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(RequestRefusedError, match="which must be 'cancel' or 'continue'"):
        read_disconnect(query, cancels=False)
