"""Make documents/field-guide.pdf. The PDF is kept in the repository; this is how to change it.

Needs reportlab: `uv run --with reportlab make_guide.py`.
"""

from __future__ import annotations

from pathlib import Path

from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer

PAGES: list[tuple[str, list[str]]] = [
    (
        "What Jackfield is",
        [
            "A jackfield is the panel of sockets in a recording studio. Nothing sounds until somebody plugs something in, "
            "and anything fits anywhere. Jackfield does the same for agents: the core is the panel, and every backend, "
            "tool, searcher and agent kind is a plugin with a distribution of its own.",
            "Three kinds of people use it. The first install one more tool and expect that nothing else changes. The "
            "second publish a backend of their own and never ask anybody for permission. The third compose the smallest "
            "installation that does one job, and want nothing else on the disk.",
            "The core imports no vendor's SDK, no HTTP client and no parser. It decides; plugins do.",
        ],
    ),
    (
        "Finding plugins",
        [
            "A plugin is found through its entry point in the group jackfield.v1. The group carries the major version of "
            "the plugin API, so a plugin made for another major is recognised without importing it.",
            "Listing what is installed reads metadata files only. A descriptor is loaded when a component is asked for by "
            "name, and its class when the component is first used. An agent with fifty tools sends fifty schemas to its "
            "model before a single tool module has been imported.",
            "When two distributions offer one name, Jackfield does not choose. It names both addresses and lets a person "
            "decide, because the order of installation is never an answer.",
        ],
    ),
    (
        "How a run ends",
        [
            "An agent asks its model, runs the tools the model calls, and asks again. The tool calls of one turn run at "
            "the same time, and their results stand in the order of the calls.",
            "The default turn limit of a run is 20 turns. When it is reached the run ends with the stop reason "
            "turn_limit, and never in silence. Limits on tool calls, tokens, seconds and money can be set as well; none of "
            "them is set by default.",
            "A run that is cancelled closes every open call with a result, so that its history stays valid and the "
            "conversation can go on.",
        ],
    ),
    (
        "What a tool may do",
        [
            "A tool is a typed function or a small class. Its arguments are checked against its schema before it is "
            "called, and a misfit becomes a sentence that the model can read and act on.",
            "The code interpreter runs Python in a kernel of its own. Variables are kept between the calls of one run, "
            "pictures come back as images, and the kernel is closed when the run ends.",
            "Whatever a tool returns is cut to 60,000 characters before a model sees it, both ends kept.",
        ],
    ),
]


def main() -> None:
    """Write the PDF beside the other documents."""
    styles = getSampleStyleSheet()
    story: list[object] = [Paragraph("The Jackfield field guide", styles["Title"]), Spacer(1, 12)]
    for number, (heading, paragraphs) in enumerate(PAGES):
        if number:
            story.append(PageBreak())
        story.append(Paragraph(heading, styles["Heading1"]))
        for text in paragraphs:
            story += [Paragraph(text, styles["BodyText"]), Spacer(1, 8)]
    path = Path(__file__).parent / "documents" / "field-guide.pdf"
    document = SimpleDocTemplate(
        str(path), pagesize=A5, title="The Jackfield field guide", author="The Jackfield authors", invariant=1
    )
    document.build(story)


if __name__ == "__main__":
    main()
