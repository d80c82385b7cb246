"""Each agent of the gallery runs as the page says, and its picture shows that. `make recordings` makes them anew."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.recording import PAGE as WEB_PAGE
from tests.support.recording import WIDTHS, Command, Player, Recording, check, player

__all__ = ["player"]

ROOT = Path(__file__).resolve().parent.parent
GALLERY = ROOT / "examples/gallery"
ENDS = ["", pytest.param("-narrow", marks=pytest.mark.nightly)]
PAGE = ROOT / "docs/gallery.md"
RUN = "jackfield run -C agent.yaml"
ENTRIES = {
    "handbook": Recording(
        "An agent that quotes a document",
        [Command(f'{RUN} "How many days of holiday do I have?"')],
    ),
    "analyst": Recording(
        "An agent that computes from a file",
        [Command(f'{RUN} "How much does the water rise at most?"')],
        [
            'call code_interpreter {"code": "import csv\\nrows = [float(row[\'metres\']) for row in'
            " csv.DictReader(open('tides.csv'))]\\nround(max(b - a for a, b in zip(rows, rows[1:])), 1)\"}",
            "By **3.8 metres**, from 12 to 18 hours.",
        ],
    ),
    "editor": Recording(
        "An agent that corrects a file after approval",
        [Command(f'{RUN} "Correct tides.md."', [("Allow it?", "y\n")])],
        [
            'call read_file {"path": "tides.md"}',
            'call edit_file {"path": "tides.md", "edits": [{"old_text": "once", "new_text": "twice"}]}',
            "`tides.md` says now that high water comes **twice** a day.",
        ],
    ),
    "shell": Recording(
        "An agent that runs a command in a sandbox",
        [Command(f'{RUN} "How many lines has list.txt?"', [("Allow it?", "y\n")])],
        ['call shell {"command": "wc -l list.txt"}', "It has **three** lines."],
    ),
    "reader": Recording(
        "An agent that reads a web page, behind a guardrail",
        [Command(f'{RUN} "High water? {{page}}"', [("[y/N]", "y\n")])],
        [
            'call web_extractor {"url": "{page}"}',
            "Twice a day. [Photos](https://evil.example/?q=holiday)",
        ],
        page="<title>Tides</title><main><p>High water comes twice a day.</p></main>",
    ),
    "berths": Recording(
        "An agent that calls an MCP server",
        [Command(f'{RUN} "Is there a berth for 10 metres?"', [("[y/N]", "y\n")])],
        ['call harbour-free_berths {"metres": 10}', "Yes: berths 4 and 7."],
    ),
    "desk": Recording(
        "A router that hands a question over",
        [Command(f'{RUN} "When may I leave berth 4?"')],
        ["call transfer_to_harbour {}", "At high water, at 06:10."],
    ),
    "round-table": Recording(
        "Three characters who discuss a question",
        [Command(f'{RUN} "Do we sail tomorrow?"')],
        ["The forecast says 8 Beaufort.", "Then I stay in the harbour.", "We do not sail."],
    ),
    "writer": Recording(
        "An agent that writes an outline and its sections",
        [Command(f'{RUN} "Tides, for children."')],
        ["I. The moon\\nII. The sea", "The moon pulls at the water.", "So the sea rises and falls."],
    ),
    "diary": Recording(
        "An agent that remembers from one run to the next",
        [Command(f'{RUN} "I am Ada. I like tea."'), Command(f'{RUN} "I am Ada. What do I like?"')],
        [
            'call storage {"operate": "put", "key": "people/Ada", "value": "likes tea"}',
            "I will remember that, Ada.",
            'call storage {"operate": "get", "key": "people/Ada"}',
            "You like tea.",
        ],
    ),
    "notes": Recording(
        "An agent that follows a skill",
        [Command(f'{RUN} "Write the notes: skills were added."')],
        ['call skill {"name": "release-notes"}', "- Adds skills."],
    ),
    "card": Recording(
        "An agent that returns data",
        [Command(f'{RUN} --schema card.json "Westerhever: lighthouse, 41 m."')],
        ['{"name": "Westerhever", "metres": 41}'],
    ),
    "translator": Recording(
        "A template with a variable",
        [Command(f'{RUN} -p language=French "High water"')],
        ["Marée haute"],
    ),
    "budget": Recording(
        "An agent that ends before it costs too much",
        [Command(f'{RUN} "Name a sea."'), Command(f'{RUN} "And another."')],
        ["The North Sea."],
        usage={"prompt_tokens": 12_000, "completion_tokens": 9_000, "total_tokens": 21_000},
    ),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", ENTRIES)
def test_an_agent_of_the_gallery_does_what_its_picture_shows(
    name: str, end: str, player: Player, tmp_path: Path
) -> None:
    folder = shutil.copytree(GALLERY / name, tmp_path / name)
    check(ENTRIES[name], player, folder, name=f"{name}{end}", columns=WIDTHS[end])


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    """The parts of the page, by the name of the picture in each."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {re.findall(r"assets/terminal/([\w-]+)\.svg\" alt=", part)[0]: part for part in parts if "<img" in part}


def test_the_page_shows_every_agent(sections: dict[str, str]) -> None:
    assert sections.keys() == ENTRIES.keys() == {path.name for path in GALLERY.iterdir()}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_page_shows_the_files_of_an_agent_and_its_commands(name: str, sections: dict[str, str]) -> None:
    blocks = re.findall(r"^```\w+ title=\"([^\"]+)\"\n(.*?)^```$", sections[name], re.M | re.S)
    assert "agent.yaml" in dict(blocks)
    assert [file for file, text in blocks if (GALLERY / name / file).read_text(encoding="utf-8") != text] == []
    commands = [command.line.replace("{page}", WEB_PAGE) for command in ENTRIES[name].commands]
    assert re.findall(r"^\$ (.*)$", sections[name], re.M) == commands
    assert f'srcset="assets/terminal/{name}-narrow.svg"' in sections[name], "a picture for telephones"
    assert re.search(r'alt="[^"]{20,}"', sections[name])
