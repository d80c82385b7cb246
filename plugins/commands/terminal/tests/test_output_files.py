"""What code makes is kept, wherever it is; and it is only copied, never believed."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.events import MediaDelta, RunEvent, ToolFinished
from jackfield.messages import ContentItem, Message
from jackfield_terminal import output_files
from jackfield_terminal.output_files import OutputFiles, check_folder

PNG = b"\x89PNG\r\n\x1a\n..."
URI = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def finished(*items: ContentItem, **metadata: Any) -> RunEvent:
    message = Message("function", [ContentItem(text="done"), *items], name="painter")
    return RunEvent("r", 1, "a", 0, ToolFinished(0, "c", message, 0.1, "", metadata))


def test_pictures_are_saved_and_nothing_is_written_over(tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path / "out")
    first = outputs.save(finished(ContentItem(image=URI), ContentItem(image=URI)))
    assert [path.name for path in first] == ["painter-1.png", "painter-2.png"]
    assert first[0].read_bytes() == PNG
    again = OutputFiles(tmp_path / "out")
    assert [path.name for path in again.save(finished(ContentItem(image=URI)))] == ["painter-3.png"]
    assert again.save(RunEvent("r", 2, "a", 0, MediaDelta(ContentItem(image=URI))))[0].name == "answer-1.png"


def test_nothing_is_made_where_nothing_comes(tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path / "out")
    assert outputs.save(finished(ContentItem(image="https://acme.example/x.png"))) == []
    assert outputs.save(finished(ContentItem(image="data:image/png;base64,???"))) == []
    assert not (tmp_path / "out").exists()


def test_files_that_go_with_the_run_are_copied_and_a_changed_one_again(tmp_path: Path) -> None:
    source = tmp_path / "work" / "table.csv"
    source.parent.mkdir()
    source.write_text("1")
    outputs = OutputFiles(tmp_path / "out")
    (path,) = outputs.save(finished(files=[str(source)], files_are_temporary=True))
    source.write_text("1,2")
    assert outputs.save(finished(files=[str(source)], files_are_temporary=True)) == [path]
    assert path.read_text() == "1,2"
    assert outputs.saved == [path]


def test_files_that_stay_are_named_where_they_are(tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path / "out")
    for files in (["/data/x.csv", "/data/y.csv"], ("/data/x.csv", "/data/y.csv")):
        saved = outputs.save(finished(files=files, files_are_temporary=False))
        assert saved == [Path("/data/x.csv"), Path("/data/y.csv")]
    assert outputs.saved == saved


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (ContentItem(audio={"data": URI.replace("image/png", "audio/x-wav"), "format": "wav"}), "painter-1.wav"),
        (ContentItem(image=URI.replace(";base64", ";charset=utf-8;x=1;base64")), "painter-1.png"),
        (ContentItem(file=URI.replace("image/png", "x-acme/unknown")), "painter-1.bin"),
    ],
    ids=["audio", "parameters", "unknown"],
)
def test_every_form_of_inline_data_is_saved(item: ContentItem, name: str, tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path / "out")
    (path,) = outputs.save(finished(ContentItem(image="https://acme.example/x.png"), item))
    assert (path.name, path.read_bytes()) == (name, PNG)


def test_a_folder_for_output_may_not_exist_yet_but_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (None, str(tmp_path), str(tmp_path / "new")):
        check_folder(folder)
    with pytest.raises(ConfigError, match="is a file: specify a folder"):
        check_folder(str(tmp_path / "file"))


def test_links_pipes_and_odd_names_do_no_harm(tmp_path: Path) -> None:
    import os

    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    (work / "secret").symlink_to("/etc/hostname")
    os.mkfifo(work / "pipe")
    odd = work / "\x1b[31m..\u202e.txt"
    odd.write_text("x")
    outputs = OutputFiles(out)
    names = [str(work / name) for name in ("secret", "pipe", odd.name, "gone", "..")]
    (path,) = outputs.save(finished(files=names, files_are_temporary=True))
    assert path.parent == out
    assert path.name.isprintable()
    assert len(outputs.problems) == 4
    assert outputs.save(finished(files=[1, None], files_are_temporary=True)) == []
    assert outputs.save(finished(files="text", files_are_temporary=True)) == []


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        (".bashrc", "_bashrc"),
        ("..tar", "_tar"),
        ("x" * 130 + ".csv", "x" * 116 + ".csv"),
        ("plot-1.png", "plot-1.png"),
        ("taken.txt", "taken-2.txt"),
        ("gone-1.txt", "gone-2.txt"),
    ],
)
def test_a_name_is_not_hidden_not_long_and_not_taken(name: str, saved: str, tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    out.mkdir()
    (work / name).write_text("x")
    (out / "taken.txt").write_text("mine")
    (out / "gone-1.txt").symlink_to(tmp_path / "nowhere")
    [path] = OutputFiles(out).save(finished(files=[str(work / name)], files_are_temporary=True))
    assert path == out / saved


def test_a_text_that_looks_like_a_picture_is_a_text(tmp_path: Path) -> None:
    assert OutputFiles(tmp_path / "out").save(finished(ContentItem(text=URI))) == []


def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path) -> None:
    work, host = tmp_path / "work", tmp_path / "host"
    (work / "results").mkdir(parents=True)
    host.mkdir()
    (host / "id_rsa").write_text("secret")
    (work / "results").rmdir()
    (work / "results").symlink_to(host)
    outputs = OutputFiles(tmp_path / "out")
    assert outputs.save(finished(files=[str(work / "results" / "id_rsa")], files_are_temporary=True)) == []
    assert len(outputs.problems) == 1
    assert not (tmp_path / "out").exists()


def test_files_with_holes_do_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "_MAX_FILE_BYTES", 3000)
    monkeypatch.setattr(output_files, "_MAX_TOTAL_BYTES", 5000)
    for number, size in enumerate((4000, 2000, 2500, 1000)):
        with (tmp_path / f"{number}.bin").open("wb") as file:
            file.truncate(size)
    outputs = OutputFiles(tmp_path / "out")
    files = [str(tmp_path / f"{number}.bin") for number in range(4)]
    kept = outputs.save(finished(files=files, files_are_temporary=True))
    assert [path.stat().st_size for path in kept] == [2000, 2500]
    assert [problem.split()[0] for problem in outputs.problems] == ["0.bin", "3.bin"]


def test_a_file_that_grows_while_it_is_copied_has_an_end() -> None:
    target = io.BytesIO()
    assert output_files._copy_bytes(io.BytesIO(b"x" * 100), target, 10) == 10
    assert target.getvalue() == b"x" * 10
