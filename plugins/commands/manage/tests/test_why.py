"""Why a plugin is here, in plain sentences, and without loading it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import PluginNotFoundError
from jackfield.projects import Project
from jackfield.settings import Settings
from jackfield_manage.judging.why import Explanation, why
from tests.support.site import FakeSite

Explain = Callable[..., list[Explanation]]


@pytest.fixture
def explain(site: FakeSite) -> Explain:
    """Explains a name with what is installed in `site`, and the given settings."""

    def explained(name: str, **settings: Any) -> list[Explanation]:
        return why(name, Settings(**settings), [str(site.folder)])

    return explained


@pytest.mark.parametrize("name", ["acme-search", "Acme.Search", "tool.search", "acme-search/search", "search"])
def test_every_name_of_a_plugin_leads_to_it(name: str, site: FakeSite, explain: Explain) -> None:
    site.add_tools("acme-search", "search")
    assert [one.distribution for one in explain(name)] == ["acme-search"]
    assert site.times_imported("acme-search") == 0


def test_a_short_name_that_two_offer_leads_to_both_and_says_what_to_write(site: FakeSite, explain: Explain) -> None:
    site.add_tools("acme", "search")
    site.add_tools("other", "search")
    one, two = explain("search")
    assert one.offers[0].also_from == ("other",)
    assert "'search' is ambiguous: use 'acme/search', or set a preference" in one.offers[0].choice
    origins = {"prefer:tool.search": "~/config.toml"}
    one, two = explain("search", prefer={"tool.search": "Other"}, origins=origins)
    assert (
        one.offers[0].choice
        == "'search' means the one from other (~/config.toml prefers it); use 'acme/search' for this one"
    )
    assert two.offers[0].choice == "'search' means this one (~/config.toml prefers it)"
    # Who may not load makes nothing ambiguous.
    (offer,) = explain("acme", block=frozenset({"other"}))[0].offers
    assert (offer.also_from, offer.choice) == ((), "")


def test_the_rule_that_decides_is_named_with_its_file(site: FakeSite, explain: Explain) -> None:
    site.add_tools("acme", "search")
    blocked = explain("acme", block=frozenset({"tool.search"}), origins={"block:tool.search": "/home/me/choices.toml"})
    assert "tool.search is blocked ('tool.search' in /home/me/choices.toml)." in blocked[0].lines()
    other = explain("acme", allow=frozenset({"other"}), origins={"allow": "JACKFIELD_PLUGINS"})
    assert "tool.search is not in the list of allowed packages (JACKFIELD_PLUGINS)." in other[0].lines()
    assert "tool.search may load." in explain("acme")[0].lines()


def test_what_acts_unasked_says_who_enabled_it(site: FakeSite, explain: Explain) -> None:
    site.add("acme", {"processor.redact": "acme", "tool.x": "acme"})
    origins = {"enabled:processor.acme/redact": "/project/pyproject.toml"}
    redact, tool = explain("acme", enabled=("processor.acme/redact",), origins=origins)[0].offers
    assert (redact.acts, redact.acts_because) == (True, "acts in every run (/project/pyproject.toml enables it)")
    assert tool.acts is None
    (line,) = (line for line in explain("acme")[0].lines() if "acts only" in line)
    assert line.endswith("named in code or enabled. To enable it, run: jackfield plugins enable processor.redact")


def test_who_requires_a_plugin_is_told_with_the_extra_it_takes(site: FakeSite, explain: Explain) -> None:
    site.add("acme", {"tool.x": "acme"}, requires=["lib>=1", "old; python_version < '3'"])
    site.add("bundle", {"agent.y": "b"}, requires=["Acme>=1", "more; extra == 'all'"])
    metadata = site.add("lib", requires=["acme; extra == 'tools'"])
    with (metadata / "METADATA").open("a") as headers:
        headers.write("Provides-Extra: tools\n")
    (acme,) = explain("acme")
    assert acme.required_by == ("bundle", "lib[tools]")
    assert acme.requires == ("lib>=1",)
    assert (
        "The installer does not record whether it was requested by name; "
        "bundle requires it, and so does the extra lib[tools]."
    ) in acme.lines()
    (lib,) = explain("lib")  # a library has a reason to be here, too
    assert lib.required_by == ("acme",)


def test_pip_tells_who_was_asked_for(site: FakeSite, explain: Explain) -> None:
    (site.add("asked", {"tool.a": "a"}) / "REQUESTED").touch()
    site.add("brought", {"tool.b": "b"})
    site.add("marked", {"tool.c": "c"})
    for name, installer in (("asked", "pip"), ("brought", "pip"), ("marked", "uv")):
        (site.metadata(name) / "INSTALLER").write_text(f"{installer}\n")
    assert [explain(name)[0].requested for name in ("asked", "brought", "marked")] == [True, False, None]


def test_a_broken_plugin_is_explained_as_far_as_it_goes(site: FakeSite, explain: Explain) -> None:
    site.add("broken", raw=b"[jackfield.v1]\ntool.x = \xff\n")
    (site.add("headless", {"tool.y": "y"}) / "METADATA").unlink()
    assert "entry_points.txt is not valid UTF-8" in explain("broken")[0].problems[0]
    assert explain("headless")[0].version == "1.0"


def test_what_is_not_installed_says_what_to_install_and_which_rule_names_it(site: FakeSite, explain: Explain) -> None:
    site.add_tools("acme", "search")
    with pytest.raises(PluginNotFoundError, match="To install it, run: jackfield plugins install jackfield-openai"):
        explain("llm.openai")
    with pytest.raises(PluginNotFoundError, match="did you mean 'search'"):
        explain("serch")
    with pytest.raises(PluginNotFoundError, match="; block in the project refers to it"):
        explain("gone", block=frozenset({"gone"}), origins={"block:gone": "the project"})


@pytest.mark.parametrize("name", ["llm.oai", "oai", "jackfield-openai/oai", "jackfield-openai", "Jackfield_OpenAI"])
def test_every_name_of_a_known_plugin_leads_to_its_package(name: str, explain: Explain) -> None:
    with pytest.raises(PluginNotFoundError, match=r"To install it, run: jackfield plugins install jackfield-openai$"):
        explain(name)


def test_a_name_that_two_known_packages_have_leads_to_one_of_them(explain: Explain) -> None:
    with pytest.raises(PluginNotFoundError, match=r"To install it, run: jackfield plugins install jackfield-openai$"):
        explain("openai")


@pytest.mark.parametrize("target", ["Gone_Thing", "gone-thing"])
def test_the_rule_that_names_what_is_gone_is_found_in_any_spelling(target: str, explain: Explain) -> None:
    with pytest.raises(PluginNotFoundError, match="; block in the project refers to it; known: nothing"):
        explain("Gone_Thing", origins={f"block:{target}": "the project"})


def test_only_names_that_can_be_written_are_suggested(site: FakeSite, explain: Explain) -> None:
    site.add("acme", {"tool.*": "acme", "tool.x": "acme"})
    with pytest.raises(PluginNotFoundError, match=r"; known: acme, x$"):
        explain("zzz")


def test_a_package_that_is_named_like_a_component_is_explained_only_if_no_component_is(
    site: FakeSite, explain: Explain
) -> None:
    site.add("search")
    assert [one.distribution for one in explain("search")] == ["search"]
    site.add_tools("acme", "search")
    assert [one.distribution for one in explain("search")] == ["acme"]


def test_every_sentence_is_true_of_its_component(site: FakeSite, explain: Explain) -> None:
    entries = ["llm.oai", "processor.truncation", "processor.x", "processor.y", "store.s", "tool.x", "tool.y"]
    metadata = site.add("acme", dict.fromkeys(entries, "acme"), requires=["lib>=1", "other"])
    (metadata / "direct_url.json").write_text('{"url": "file:///srv/acme", "dir_info": {"editable": true}}')
    (metadata / "INSTALLER").unlink()
    site.add("one", dict.fromkeys(["tool.x", "tool.y", "llm.oai"], "one"))
    site.add("two", {"tool.x": "two"})
    (acme,) = explain(
        "acme",
        enabled=("processor.acme/truncation", "processor.acme/x"),
        block=frozenset({"processor.x", "acme/oai"}),
        prefer={"tool.y": "acme"},
        project=Project(Path("/srv/pyproject.toml"), {"prefer": {"tool.x": "acme"}}, "c"),
    )
    assert acme.lines() == [
        f"acme 1.0 is installed in editable mode: {metadata}",
        "The installer does not record whether it was requested by name; no installed package requires it.",
        "It requires lib>=1, other.",
        "llm.oai is blocked ('acme/oai' in `block`).",
        "  It has the same name as a component of jackfield-openai, but comes from acme.",
        "  one also offers it.",
        "processor.truncation may load.",
        "  It has the same name as a component of jackfield-truncation, but comes from acme.",
        "  It acts in every run (`enabled` enables it).",
        "processor.x is blocked ('processor.x' in `block`).",
        "processor.y may load.",
        "  It acts only if it is named in code or enabled. To enable it, run: jackfield plugins enable processor.y",
        "store.s may load.",
        "tool.x may load.",
        "  one and two also offer it.",
        "  'x' is ambiguous: use 'acme/x', or set a preference in your config.toml: [prefer] \"tool.x\" = \"acme\".",
        "tool.y may load.",
        "  one also offers it.",
        "  'y' means this one (`prefer` prefers it).",
        "ignored prefer in /srv/pyproject.toml, because you have not trusted the file. To review the settings, run: "
        "jackfield trust",
    ]


def test_faults_of_metadata_are_sentences(site: FakeSite, explain: Explain) -> None:
    broken = site.add("broken", raw=b"[jackfield.v1]\ntool.x = \xff\n")
    (broken / "METADATA").unlink()
    (found,) = explain("broken")
    assert (found.version, found.location) == ("", str(broken))
    assert found.lines()[2].startswith("Its entry_points.txt is not valid UTF-8: ")
    site.add("acme", {"tool.x": "acme"}, version="1.0")
    site.add("acme", {"tool.x": "acme"}, version="0.9")
    (found,) = explain("acme")
    assert found.lines()[2].startswith("It is installed twice; ")


def test_the_command_line_explains_in_sentences_and_in_json(place: Any, wheelhouse: Any) -> None:
    wheelhouse.add("acme", offers=["tool.search"], requires=["lib"])
    wheelhouse.add("lib")
    place.done("install", "--any", *place.offline, "acme")
    said = place.done("why", "search", JACKFIELD_PLUGINS_BLOCK="acme").splitlines()
    assert said[0].startswith("acme 1.0 is installed by uv: ")
    assert "tool.search is blocked ('acme' in JACKFIELD_PLUGINS_BLOCK)." in said
    (explained,) = json.loads(place.done("why", "lib", "--json"))
    assert (explained["distribution"], explained["required_by"]) == ("lib", ["acme"])
    ran = place.run("why", "nothing")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("jackfield: nothing named 'nothing' is installed")


@pytest.mark.parametrize(
    ("requirers", "sentence"),
    [
        ((), "no installed package requires it"),
        (("a",), "a requires it"),
        (("a", "b"), "a and b require it"),
        (("a", "b", "c"), "a, b and c require it"),
        (("a[x]",), "only the extra a[x] requires it"),
        (("a[x]", "b[y]"), "only the extras a[x] and b[y] require it"),
        (("a", "b[y]"), "a requires it, and so does the extra b[y]"),
        (("a", "a[x]", "b[y]"), "a requires it, and so do the extras a[x] and b[y]"),
    ],
)
def test_requirers_and_extras_are_listed_apart(requirers: tuple[str, ...], sentence: str) -> None:
    explanation = Explanation("lib", "1.0", "/site", requested=True, required_by=requirers)
    assert explanation.lines()[1] == f"It was requested by name; {sentence}."
