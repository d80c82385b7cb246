"""An error leaves without what stood in its frames, and with its lines."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
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


def group(*errors: Exception) -> None:
    raise ExceptionGroup("several", errors)


def caught_of(work: Callable[[], object]) -> Exception:
    """The error of some work, with what its frames hold."""
    try:
        work()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


def while_handling() -> None:
    secret = f"{SECRET}"
    try:
        fails()
    except KeyError:
        raise ValueError(len(secret))  # noqa: B904 - with the other one as its context


@pytest.mark.parametrize(
    "work",
    [
        while_handling,
        lambda: group(caught_of(fails), caught_of(while_handling), caught_of(fails)),
        lambda: group(caught_of(fails), ExceptionGroup("inner", [caught_of(while_handling)])),
    ],
    ids=["a context", "a group", "a group in a group"],
)
def test_no_error_behind_another_keeps_its_variables(work: Callable[[], None]) -> None:
    with pytest.raises(Exception, match=r".") as caught, ForgetLocals():
        work()
    assert "in fails" in shown(caught.value)
    assert SECRET not in shown(caught.value)


def test_errors_that_are_each_others_contexts_end_the_search_for_none_of_the_others() -> None:
    first, second, third = caught_of(fails), caught_of(fails), caught_of(while_handling)
    first.__context__, second.__context__ = second, first
    with pytest.raises(ExceptionGroup) as caught, ForgetLocals():
        group(third, first, second)
    for error in caught.value.exceptions:
        first.__context__ = second.__context__ = None  # which would be shown without end
        assert SECRET not in shown(error)


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, SystemExit])
def test_what_is_no_exception_loses_its_variables_as_well(error: type[BaseException]) -> None:
    def stops() -> None:
        secret = f"{SECRET}"
        raise error(len(secret))

    async def later() -> None:
        async with ForgetLocals():
            stops()

    coroutine = later()
    with pytest.raises(error) as caught:
        coroutine.send(None)
    assert "in stops" in shown(caught.value)
    assert SECRET not in shown(caught.value)
    with pytest.raises(BaseExceptionGroup) as several, ForgetLocals():
        raise BaseExceptionGroup("several", [error(), caught_of(fails)])
    assert SECRET not in shown(several.value)
    with pytest.raises(error) as caught, ForgetLocals():
        stops()
    assert SECRET not in shown(caught.value)
