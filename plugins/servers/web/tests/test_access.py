"""The page for everyone: screen readers (checked by axe), keyboards, reduced motion, zoom, and narrow screens."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import tool
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta
from jackfield.request import ChatRequest
from jackfield_serve import Tokens

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
AXE = "axe-core@4.14.1"
CACHE = Path(__file__).parents[4] / ".cache" / "axe-core"
RULES = """
async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => [`${one.id}:`, ...one.nodes.map((node) => node.html.slice(0, 120) + node.failureSummary)].join(" "));
}
"""
TEXT = """# Tides

Low at **six**, see [the tables](https://example.org/tides) and `low`. It is $$h = \\frac{a}{b}$$ high.

| port | low |
|:-----|----:|
| Dover | 06:02 |

> Quoted.

```python
def low() -> str:  # a comment
    return "06:02" + str(1)
```
"""


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the program of axe, which npm downloads once."""
    program = CACHE / "axe.min.js"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed, which downloads axe-core")
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            done = subprocess.run(
                [npm, "pack", "--silent", AXE], cwd=folder, capture_output=True, timeout=120, check=False
            )
            if done.returncode:
                pytest.skip("npm cannot download axe-core")
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
                archive.extract("package/axe.min.js", folder, filter="data")
            (Path(folder) / "package/axe.min.js").replace(program)  # at once, for tests beside this one
    return program.read_text(encoding="utf-8")


@pytest.fixture
def problems(axe: str) -> Callable[[Any], list[str]]:
    """Return the function that asks axe for the serious problems of what a person sees."""

    def check(person: Any) -> list[str]:
        person.page.evaluate(axe)
        return list(person.page.evaluate(RULES))

    return check


@tool(needs_approval=True)
def book(port: str) -> str:
    """Book a berth."""
    return f"berth at {port}"


@tool
def look(port: str) -> str:
    """Look up the tide."""
    return "low at 06:02"


async def write(request: ChatRequest) -> AsyncIterator[ModelEvent]:
    last = request.messages[-1]
    if last.role == "function":
        yield TextDelta(TEXT)
        yield ModelFinished("stop")
        return
    yield ReasoningDelta("Think first.")
    yield FunctionCallDelta(0, "c1", last.get_text_content(), '{"port": "Dover"}')
    yield ModelFinished("tool_calls")


LOOKS = [
    pytest.param({"locale": "en", "color_scheme": "light"}, id="light-en"),
    pytest.param({"locale": "zh-CN", "color_scheme": "dark"}, id="dark-zh"),
    pytest.param({"locale": "en", "color_scheme": "dark", "viewport": {"width": 390, "height": 800}}, id="dark-phone"),
    pytest.param(
        {"locale": "zh-CN", "color_scheme": "light", "viewport": {"width": 390, "height": 800}}, id="light-phone"
    ),
]


@pytest.mark.parametrize("look_", LOOKS)
def test_axe_finds_nothing_serious_in_any_view(
    look_: dict[str, Any],
    serve: Callable[..., str],
    tab: Callable[..., Any],
    pilot: Callable[..., Any],
    problems: Callable[[Any], list[str]],
) -> None:
    person = tab(serve(pilot(write, book, look)), **look_)
    person.wait_for("#log .empty")
    assert problems(person) == []
    person.ask("look")
    person.wait_for(".answer math")
    person.wait_for(".answer .hljs-keyword")
    person.wait_until_answered()
    for folded in person.page.query_selector_all("details:not([open]) > summary:visible"):
        folded.click()
    assert problems(person) == []
    person.ask("book")
    person.wait_for(".approval")
    assert problems(person) == []
    if "viewport" in look_:
        person.page.click("#menu")
        person.wait_for("#side.open")
        assert problems(person) == []


def test_axe_finds_nothing_serious_where_a_token_is_asked_for(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], problems: Callable[[Any], list[str]]
) -> None:
    tokens = Tokens([("ada", "ada-token-of-32-characters-000000")])
    person = tab(serve(pilot(write, book, look), tokens=tokens), refused=True)
    person.wait_for("#token")
    assert problems(person) == []


def test_axe_finds_a_problem_that_is_there(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any], problems: Callable[[Any], list[str]]
) -> None:
    person = tab(serve(pilot(write, book, look)))
    person.wait_for("#log .empty")
    person.page.evaluate("document.getElementById('question').removeAttribute('aria-label')")
    person.page.evaluate("document.getElementById('question').removeAttribute('placeholder')")
    assert [one.split(":")[0] for one in problems(person)] == ["label"]


def test_a_call_is_asked_for_allowed_and_read_with_the_keyboard_alone(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(write, book, look)))
    person.wait_for("#log .empty")
    keyboard = person.page.keyboard
    keyboard.press("Tab")
    assert focused(person) == "Skip to the question"
    keyboard.press("Enter")
    keyboard.type("book")
    keyboard.press("Enter")
    person.wait_for(".approval")
    press_until(person, "Allow")
    keyboard.press("Enter")
    person.wait_for(".answer table")
    person.wait_until_answered()
    press_until(person, "book", backward=True)
    keyboard.press("Enter")  # opens the call
    person.wait_for(".tool[open]")


def test_each_thing_that_has_the_focus_shows_it(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(write, book, look)))
    person.ask("look")
    person.wait_for(".answer table")
    person.wait_until_answered()
    outlined = """() => {
      const style = getComputedStyle(document.activeElement);
      const around = document.activeElement.closest(".attach");
      return [style, around && getComputedStyle(around)]
        .some((one) => one && one.outlineStyle !== "none" && parseFloat(one.outlineWidth) >= 2);
    }"""
    seen = set()
    for _ in range(40):
        person.page.keyboard.press("Tab")
        name = focused(person)
        if name:
            assert person.page.evaluate(outlined), f"{name!r} has the focus and does not show it"
        seen.add(name)
    assert {"Edit", "Retry", "New", "Export"} <= seen


def test_nothing_moves_for_people_who_want_less_motion(
    serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    person = tab(serve(pilot(write, book, look)), reduced_motion="reduce")
    person.ask("book")
    person.wait_for(".approval")
    moving = """() => [...document.querySelectorAll("*")].filter((one) => {
      const style = getComputedStyle(one);
      const times = `${style.transitionDuration},${style.animationDuration}`.split(",");
      return times.some((time) => parseFloat(time) > 0);
    }).map((one) => one.outerHTML.slice(0, 100))"""
    assert person.page.evaluate(moving) == []


@pytest.mark.parametrize("size", [(640, 430), (390, 800), (320, 640)], ids=["zoom-200", "phone", "zoom-400"])
def test_nothing_is_cut_off_on_narrow_screens_and_at_200_percent(
    size: tuple[int, int], serve: Callable[..., str], tab: Callable[..., Any], pilot: Callable[..., Any]
) -> None:
    width, height = size  # 1280 pixels at 200 % are 640
    person = tab(serve(pilot(write, book, look)), viewport={"width": width, "height": height})
    person.ask("look")
    person.wait_for(".answer table")
    person.wait_until_answered()
    person.ask("book")
    person.wait_for(".approval")
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    outside = """(width) => [...document.querySelectorAll("button, textarea, select, input, summary")]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest("#side"))
      .filter((one) => { const box = one.getBoundingClientRect(); return box.right > width + 1 || box.left < -1; })
      .map((one) => one.outerHTML.slice(0, 100))"""
    assert person.page.evaluate(outside, width) == []
    log = person.page.evaluate("document.getElementById('log').clientHeight")
    assert log >= height / 4, "the conversation has room"


def focused(person: Any) -> str:
    """Return the name of what has the focus."""
    one = "document.activeElement"
    name = person.page.evaluate(
        f"{one} === document.body ? '' : {one}.getAttribute('aria-label')"
        f" || {one}.querySelector('.name')?.textContent || {one}.textContent || {one}.id"
    )
    return str(name).strip()


def press_until(person: Any, name: str, *, backward: bool = False) -> None:
    """Press Tab until something has the focus."""
    seen = []
    for _ in range(40):
        person.page.keyboard.press("Shift+Tab" if backward else "Tab")
        seen.append(focused(person))
        if seen[-1] == name:
            return
    raise AssertionError(f"Tab does not reach {name!r}, only {seen}")
