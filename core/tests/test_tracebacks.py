"""An error leaves without what stood in its frames, and with its lines."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jackfield.secrets import ForgetLocals

SECRET = "value-of-a-local"


def fails() -> None:
    secret = f"{SECRET}"
    raise KeyError(len(secret))


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        secret = f"{SECRET}"
        raise ValueError(len(secret)) from error


def shown(error: BaseException) -> str:
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def border() -> None:
    secret = f"{SECRET}"
    with ForgetLocals(), translated():
        fails()
    assert secret


async def async_border() -> None:
    async with ForgetLocals():
        border()


def test_lines_and_causes_stay_and_variables_do_not() -> None:
    for work in (border, lambda: asyncio.run(async_border())):
        with pytest.raises(ValueError, match="16") as caught:
            work()
        assert SECRET not in shown(caught.value)
        assert "in fails" in shown(caught.value)
        assert isinstance(caught.value.__cause__, KeyError)


def test_what_is_behind_from_none_is_forgotten() -> None:
    def hides() -> None:
        try:
            fails()
        except KeyError:
            raise ValueError("hidden") from None

    with pytest.raises(ValueError, match="hidden") as caught, ForgetLocals():
        hides()
    assert caught.value.__context__ is None


def test_an_error_that_somebody_else_handles_stays_as_it_is() -> None:
    def own() -> None:
        mine = "my own"
        raise LookupError(mine)

    def handles() -> None:
        try:
            own()
        except LookupError:
            with pytest.raises(ValueError, match="16"):
                border()
            raise

    with pytest.raises(LookupError) as caught:
        handles()
    assert "mine = 'my own'" in shown(caught.value)
