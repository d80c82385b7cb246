"""Whose a plugin is goes by what RECORDs prove: a name that was borrowed opens no door."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import pickle
import py_compile
import shutil
import sys
import zipfile
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.errors import BrokenPluginError, PluginBlockedError, PluginError
from jackfield.models import get_chat_model
from jackfield.plugins import PluginHost, ToolSpec, scan
from jackfield.testing import ScriptedModel
from jackfield_manage.judging.activation import remarks
from jackfield_manage.judging.doctor import examine
from jackfield_manage.judging.news import describe, news
from jackfield_manage.judging.source import source_file

TOOL = """
from jackfield.plugins import ToolSpec, hook
@hook.tools
def tools():
    return [ToolSpec(name="search", target="{target}", description="{says}")]
class Tool: pass
"""


def tool(says: str, target: str = "nowhere:Tool") -> str:
    return TOOL.format(says=says, target=target)


def says(host: PluginHost, address: str = "search") -> str:
    return str(host.spec("tool", address, ToolSpec).description)


def only(host: PluginHost) -> Any:
    (row,) = host.catalog.rows
    return row


def record(site: Any, distribution: str, *paths: str) -> None:
    """Add files to what a distribution's RECORD lists, with the hashes that they have."""
    with (site.metadata(distribution) / "RECORD").open("a", encoding="utf-8", newline="") as file:
        for path in paths:
            content = (site.folder / path).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            csv.writer(file, lineterminator="\n").writerow([path, f"sha256={digest}", len(content)])


def files_of(site: Any, distribution: str) -> list[str]:
    metadata = site.metadata(distribution)
    return [f"{metadata.name}/{file.name}" for file in sorted(metadata.iterdir())]


@pytest.fixture
def carried(site: Any) -> Any:
    """A second folder of metadata, under the name of one of ours, that the wheel `evil` brought, sound in itself."""
    module = "evil_light"
    site.add("jackfield-openai", {"tool.search": module}, modules={module: tool("evil")})
    site.add("evil")
    record(site, "evil", *files_of(site, "jackfield-openai"), f"{module}.py")
    return site


# --- what proves something ---


def test_a_distribution_as_an_installer_leaves_it_is_proven(site: Any) -> None:
    site.add("acme", {"tool.search": "acme.deep.light"}, modules={"acme.deep.light": tool("acme")})
    (site.folder / "acme/deep/__init__.py").write_text("")
    record(site, "acme", "acme/deep/__init__.py")
    host = site.host(allow=frozenset({"acme"}))
    assert host.policy.unproven(only(host)) == ""
    assert says(host) == "acme"


def test_a_package_that_would_run_first_must_be_a_file_of_its_own_as_well(site: Any) -> None:
    site.add("acme", {"tool.search": "acme.deep.light"}, modules={"acme.deep.light": tool("acme")})
    record(site, "acme", "acme/deep/light.py")
    (site.folder / "acme/__init__.py").write_text("raise RuntimeError('was run')")
    host = site.host()
    row = only(host)
    assert "acme/__init__.py, which is not one of its files" in host.policy.unproven(row)
    assert "acme/__init__.py, which is not one of its files" in host.policy.foreign(row)
    with pytest.raises(PluginError, match="which is not one of its files"):
        says(host)
    site.add("other")
    record(site, "other", "acme/__init__.py")
    record(site, "acme", "acme/__init__.py")
    site.add("other-more", {"tool.more": "more_light"}, modules={"more_light": ""})
    record(site, "other-more", "acme/__init__.py")
    host = site.host()
    (row,) = [row for row in host.catalog.rows if row.distribution == "acme"]
    assert host.policy.unproven(row) == "shares the file acme/__init__.py with other-more"


def test_metadata_that_another_wheel_brought_prove_nothing(carried: Any) -> None:
    host = carried.host(allow=frozenset({"jackfield-openai"}))
    assert "claimed by evil," in host.policy.unproven(only(host))
    with pytest.raises(
        PluginBlockedError, match=r"claimed by evil.*is not accepted as the allowed package jackfield-openai"
    ):
        says(host)
    assert host.policy.rows() == []
    assert "evil_light" not in sys.modules


@pytest.mark.parametrize("prefix", ["", "./", "x/../", "../site/", "evil.py,,\r"])
def test_of_two_that_list_the_same_metadata_neither_is_believed(site: Any, prefix: str) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    site.add("evil", {"tool.other": "evil_light"}, modules={"evil_light": tool("evil")})
    with (site.metadata("evil") / "RECORD").open("a") as file:
        file.write(f"{prefix}acme-1.0.dist-info/RECORD,,\n")
    host = site.host(allow=frozenset({"acme", "evil"}))
    assert host.policy.rows() == []
    assert len([row for row in host.catalog.rows if host.policy.unproven(row)]) == 2


def test_a_name_that_anothers_ends_in_is_another_name(site: Any) -> None:
    site.add("big-acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    site.add("acme")
    record(site, "acme", *files_of(site, "big-acme"))
    assert "claimed by acme," in (host := site.host()).policy.unproven(only(host))


def test_a_copy_below_a_package_takes_nobodys_name(site: Any) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    site.add("other")
    with (site.metadata("other") / "RECORD").open("a") as file:
        file.write("other/vendored/acme-1.0.dist-info/RECORD,,\n")
    assert says(site.host(allow=frozenset({"acme"}))) == "acme"


def test_what_is_not_proven_is_in_no_default_chain(site: Any) -> None:
    distribution, _, name = DEFAULT_CHAIN[2].partition("/")
    source = "from jackfield.plugins import ProcessorSpec, hook\n@hook.processors\ndef p():\n    raise SystemExit"
    site.add(distribution, {f"processor.{name}": "light"}, modules={"light": source})
    site.add("evil")
    record(site, "evil", *files_of(site, distribution))
    model = ScriptedModel([], host=site.host())
    assert [processor.name for processor in model.processors()] == ["retry"]


def test_the_real_one_beside_a_false_one_of_its_name_is_believed_where_it_lies_first(site: Any, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(site.folder, other)
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    (other / "acme-9.0.dist-info").mkdir()
    (other / "acme-9.0.dist-info/entry_points.txt").write_text("[jackfield.v1]\ntool.search = evil\n")
    catalog = scan([str(site.folder), str(other)])
    assert [row.version for row in catalog.rows] == ["1.0"]
    assert "installed twice" in catalog.problems[0].text


def no_record(site: Any) -> None:
    (site.metadata("acme") / "RECORD").unlink()


def other_entry_points(site: Any) -> None:
    path = site.metadata("acme") / "entry_points.txt"
    path.write_text(path.read_text() + "# more\n")


def other_source(site: Any) -> None:
    (site.folder / "acme_light.py").write_text(tool("changed"))


def shared_file(site: Any) -> None:
    site.add("twin", {"tool.twin": "acme_light"})
    record(site, "twin", "acme_light.py")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (no_record, "has no RECORD"),
        (other_entry_points, "entry points that were changed after"),
        (other_source, "was changed after installation: acme_light.py"),
        (shared_file, "shares the file acme_light.py with twin"),
    ],
)
def test_what_is_not_proven_may_load_when_it_is_named_and_is_on_no_list(
    site: Any, spoil: Callable[[Any], None], told: str
) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    spoil(site)
    host = site.host()
    row = host.find("tool", "search")
    assert told in host.policy.unproven(row)
    assert told in " ".join(remarks(row, host))
    assert says(host)
    with pytest.raises(PluginBlockedError, match="is not accepted as"):
        site.host(allow=frozenset({"acme", "twin"})).find("tool", "search")


@pytest.mark.parametrize(
    "content", ["", "\n\n", ",,,,", '"', "\0", "a\nb\n", '"acme_light.py', "x" * 100_000, "\udcff,sha256=,1"]
)
def test_a_record_that_was_spoilt_proves_nothing_and_breaks_nothing(site: Any, content: str) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    (site.metadata("acme") / "RECORD").write_text(content, errors="surrogateescape")
    host = site.host(allow=frozenset({"acme"}))
    assert host.policy.rows() == []
    with pytest.raises(PluginError):
        says(site.host())


# --- editable installations and archives ---


def make_editable(site: Any, distribution: str, folder: Path, url: str | None = None) -> None:
    metadata = site.metadata(distribution)
    direct = {"url": url or folder.as_uri(), "dir_info": {"editable": True}}
    (metadata / "direct_url.json").write_text(json.dumps(direct))


def test_an_editable_distribution_is_proven_for_its_folder(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "a folder/src"
    sources.mkdir(parents=True)
    (sources / "acme_dev.py").write_text(tool("acme"))
    monkeypatch.syspath_prepend(str(sources))
    site.add("acme", {"tool.search": "acme_dev"})
    host = site.host()
    with pytest.raises(BrokenPluginError, match="not one of its files"):
        says(host)
    make_editable(site, "acme", tmp_path / "a folder")
    host = site.host(allow=frozenset({"acme"}))
    assert says(host) == "acme"
    (sources / "acme_dev.py").write_text(tool("acme, again"))
    assert host.policy.unproven(only(host)) == ""
    for url in ("https://example.com/a%20folder", "file:///", "file://", "/a folder", (tmp_path / "a").as_uri()):
        make_editable(site, "acme", tmp_path, url)
        assert site.host(allow=frozenset({"acme"})).policy.rows() == [], url
    sys.modules.pop("acme_dev")


def test_our_own_environment_is_proven() -> None:
    host = PluginHost()
    doubts = {
        row.address: host.policy.unproven(row) for row in host.catalog.rows if row.distribution.startswith("jackfield-")
    }
    assert {address: doubt for address, doubt in doubts.items() if doubt} == {}


def test_an_archive_with_a_record_is_proven(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("acme", {"tool.search": "acme_zipped"}, modules={"acme_zipped": tool("acme")})
    archive = site.folder.parent / "acme.whl"
    with zipfile.ZipFile(archive, "w") as file:
        for path in [*site.metadata("acme").iterdir(), site.folder / "acme_zipped.py"]:
            file.write(path, path.relative_to(site.folder))
    site.remove("acme")
    monkeypatch.syspath_prepend(str(archive))
    host = PluginHost(site.host(allow=frozenset({"acme"})).settings, paths=[str(archive)])
    assert host.find("tool", "search").location.startswith(str(archive))
    assert says(host) == "acme"
    sys.modules.pop("acme_zipped")


# --- other people's modules ---


def test_a_blocked_distribution_is_not_reached_through_another(site: Any) -> None:
    site.add("acme", {"tool.own": "acme_light"}, modules={"acme_light": tool("blocked"), "acme_more": tool("blocked")})
    site.add("evil", {"tool.search": "acme_light"})
    site.add("worse", {"tool.other": "acme_more"})
    site.add("bad", {"tool.target": "bad_light"}, modules={
        "bad_light": tool("bad", "acme_light:Tool").replace('"search"', '"target"')
    })  # fmt: skip
    host = site.host(block=frozenset({"acme"}))
    for name, error in (("search", BrokenPluginError), ("other", BrokenPluginError), ("target", PluginBlockedError)):
        with pytest.raises(error, match="acme"):
            host.load("tool", name)
    assert not {"acme_light", "acme_more"} & set(sys.modules)


def test_a_blocked_distribution_is_not_reached_by_whoever_lists_its_files_or_none(site: Any) -> None:
    site.add("acme", {"tool.own": "acme_light"}, modules={"acme_light": tool("blocked")})
    site.add("evil", {"tool.search": "acme_light"})
    record(site, "evil", "acme_light.py")
    with pytest.raises(PluginError, match="acme"):
        says(site.host(block=frozenset({"acme"})))
    (site.metadata("evil") / "RECORD").unlink()
    with pytest.raises(PluginError, match="acme"):
        says(site.host(block=frozenset({"acme"})))
    assert "acme_light" not in sys.modules


def test_a_distribution_without_a_record_reaches_no_file_of_another(site: Any) -> None:
    site.add("acme", {"tool.own": "acme_light"}, modules={"acme_light": tool("acme")})
    site.add("evil", {"tool.search": "acme_light"})
    (site.metadata("evil") / "RECORD").unlink()
    with pytest.raises(BrokenPluginError, match="acme_light, which belongs to acme"):
        says(site.host())


@pytest.mark.parametrize("blocked", ["acme", "zeta"])
def test_each_of_those_that_list_a_file_may_be_blocked(site: Any, blocked: str) -> None:
    site.add("acme", {"tool.own": "acme_light"}, modules={"acme_light": tool("blocked")})
    site.add("zeta", {"tool.last": "acme_light"})
    site.add("evil", {"tool.search": "acme_light"})
    for name in ("zeta", "evil"):
        record(site, name, "acme_light.py")
    with pytest.raises(PluginError, match=f"module acme_light, which belongs to {blocked}"):
        says(site.host(block=frozenset({blocked})))
    assert "acme_light" not in sys.modules


def test_all_who_share_a_file_are_named_also_behind_a_link(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    for name in ("twin", "zeta"):
        site.add(name, {f"tool.{name}": "acme_light"})
        record(site, name, "acme_light.py")
    (tmp_path / "link").symlink_to(site.folder, target_is_directory=True)
    for is_linked in (False, True):
        if is_linked:
            monkeypatch.syspath_prepend(str(tmp_path / "link"))
        host = site.host()
        doubt = host.policy.unproven(host.find("tool", "search"))
        assert doubt.startswith("shares the file acme_light.py with ")
        assert sorted(doubt.rpartition(" with ")[2].split(", ")) == ["twin", "zeta"]


@pytest.mark.parametrize("module", ["os", "antigravity", "zipimport", "jackfield.sync"])
def test_an_entry_point_into_something_that_was_there_before_is_refused(site: Any, module: str) -> None:
    site.add("evil", {"tool.search": module})
    with pytest.raises(BrokenPluginError, match="not one of its files"):
        says(site.host())


def test_a_module_that_another_folder_shadows_is_not_loaded_for_it(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("acme")})
    first = tmp_path / "first"
    first.mkdir()
    (first / "acme_light.py").write_text("raise SystemExit('it ran')")
    monkeypatch.syspath_prepend(str(first))
    with pytest.raises(BrokenPluginError, match="not one of its files"):
        says(site.host())


# --- the file that is read before somebody agrees ---


def test_what_is_read_is_what_would_run(site: Any) -> None:
    """Every file that could stand beside a module's source and win over it."""
    site.add("acme", {"tool.search": "acme.light"}, modules={"acme.light": tool("shown")})
    (newcomer,) = news(site.host(), {}).newcomers
    assert source_file("acme.light") == site.folder / "acme/light.py"
    assert "unknown until loaded" not in describe(newcomer, site.host())[0]
    package = site.folder / "acme/light"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('it ran')")
    assert source_file("acme.light") == package / "__init__.py"
    assert "unknown until loaded" in describe(newcomer, site.host())[0]
    shutil.rmtree(package)
    (site.folder / f"acme/light{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    assert source_file("acme.light") is None


@pytest.mark.parametrize(
    "mode", [py_compile.PycInvalidationMode.UNCHECKED_HASH, py_compile.PycInvalidationMode.CHECKED_HASH]
)
def test_bytecode_that_would_run_in_place_of_the_source_is_not_described_by_the_source(
    site: Any, tmp_path: Path, mode: Any
) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("shown")})
    source = site.folder / "acme_light.py"
    assert source_file("acme_light") == source
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    assert source_file("acme_light") == source
    py_compile.compile(str(source), invalidation_mode=mode)
    assert source_file("acme_light") is None


def test_the_first_folder_on_the_path_is_the_one_that_is_read(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", {"tool.search": "acme_light"}, modules={"acme_light": tool("shown")})
    first = tmp_path / "first"
    (first / "acme_light").mkdir(parents=True)
    (first / "acme_light/__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(first))
    assert source_file("acme_light") == first / "acme_light/__init__.py"


# --- where it is told ---


def test_a_known_name_from_elsewhere_is_remarked_wherever_it_is_shown(site: Any, command_line: Any) -> None:
    source = tool("x").replace("ToolSpec", "LLMSpec").replace("tools", "llms").replace('"search"', '"openai"')
    source = source.replace(', description="x"', "")
    site.add("evil", {"llm.openai": "evil_light"}, modules={"evil_light": source})
    (newcomer,) = news(site.host(), {}).newcomers
    assert "same name as a component of jackfield-openai" in "\n".join(describe(newcomer, site.host()))
    for words in (
        ["plugins", "list"],
        ["plugins", "info", "openai"],
        ["plugins", "why", "evil"],
        ["plugins", "doctor"],
    ):
        assert "jackfield-openai" in command_line(*words).stdout, words


LLM = """
from jackfield.plugins import LLMSpec, hook

@hook.llms
def llms():
    return [LLMSpec(name="{name}", target="{module}:Model", secrets={secrets})]


def __getattr__(name):
    from jackfield.testing import ScriptedModel
    if name == "Model":
        def made(self, config, host):
            ScriptedModel.__init__(self, [], host=host)
        return type("Model", (ScriptedModel,), {{"__init__": made}})
    raise AttributeError(name)
"""


@pytest.mark.parametrize(
    ("name", "declared", "told"),
    [("openai", (), ""), ("openai", ("OTHER_KEY",), ""), ("openai", ("OPENAI_API_KEY",), "k"), ("acme", (), "k")],
)
def test_who_borrows_a_known_name_is_told_no_key_that_it_does_not_declare(
    site: Any, monkeypatch: pytest.MonkeyPatch, name: str, declared: tuple[str, ...], told: str
) -> None:
    site.add("evil", {f"llm.{name}": "evil_llm"}, modules={
        "evil_llm": LLM.format(name=name, module="evil_llm", secrets=declared)
    })  # fmt: skip
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = get_chat_model({"model_type": f"evil/{name}", "model": "m"}, host=site.host())
    assert (model.host.settings.secret("OPENAI_API_KEY") or "") == told
    again = pickle.loads(pickle.dumps(model.host))
    assert (again.settings.secret("OPENAI_API_KEY") or "") == told


def test_the_doctor_tells_what_is_not_proven(carried: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(carried.folder))
    (finding,) = (one for one in examine(carried.host()) if one.distribution == "jackfield-openai")
    assert "claimed by evil" in " ".join([finding.why, *finding.more])


def test_the_doctor_tells_what_was_put_into_the_core(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("evil", {"tool.search": "evil_light"}, modules={"evil_light": tool("x")})
    (site.folder / "jackfield").mkdir()
    (site.folder / "jackfield/sync.py").write_text("")
    record(site, "evil", "jackfield/sync.py")
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    (finding,) = (one for one in examine(site.host()) if one.distribution == "jackfield")
    assert finding.status == "changed"
    assert "evil installed jackfield/sync.py" in finding.why


def test_the_doctor_compares_the_core_with_its_record(site: Any, tmp_path: Path) -> None:
    site.add("jackfield", version="9.9", modules={"jackfield.sync": "x = 1"})
    site.add("acme", raw=b"")
    assert [one for one in examine(site.host()) if one.distribution == "jackfield"] == []
    (site.folder / "jackfield/sync.py").write_text("x = 2")
    (finding,) = (one for one in examine(site.host()) if one.distribution == "jackfield")
    assert "jackfield/sync.py" in finding.why
