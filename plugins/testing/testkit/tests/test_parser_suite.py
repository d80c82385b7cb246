"""The suite for parsers lets a correct one pass, and catches each that is wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import PluginNotFoundError
from jackfield_testkit.suites import ParserSuite

BROKEN = {
    "ReversesBlocks": "test_blocks_stand_in_the_order_of_the_file",
    "ReadsTheHost": "test_it_does_what_it_declares_and_nothing_else",
    "LosesTheEnd": "test_its_samples_are_read",
    "RenamesSources": "test_its_samples_are_read",
    "WritesPoems": "test_blocks_are_whole_and_stand_in_reading_order",
    "NumbersSomePages": "test_pages_count_from_one_and_never_go_back",
    "SignsBlocks": "test_the_same_bytes_give_the_same_document",
    "HidesNamesOfNothing": "test_an_empty_file_is_refused",
    "ShoutsTypes": "test_its_descriptor_says_which_files_it_reads",
    "BeginsWithNothing": "test_its_descriptor_says_which_files_it_reads",
    "BeginsWithAnother": "test_its_descriptor_says_which_files_it_reads",
    "IsForNoFile": "test_its_descriptor_says_which_files_it_reads",
    "GivesBlanks": "test_blocks_are_whole_and_stand_in_reading_order",
    "LevelsAll": "test_blocks_are_whole_and_stand_in_reading_order",
    "HandsOverParts": "test_files_in_a_file_are_left_to_others_only_if_declared",
    "CountsFromZero": "test_pages_count_from_one_and_never_go_back",
    "GoesBack": "test_pages_count_from_one_and_never_go_back",
    "Throws": "test_the_same_bytes_give_the_same_document",
    "MixesThreads": "test_several_threads_read_with_one_parser",
    "ReadsNothing": "test_an_empty_file_is_refused",
    "HidesNames": "test_what_it_cannot_read_is_refused_by_name",
    "ReadsAll": "test_what_it_cannot_read_is_refused_by_name",
    "ChokesOnCuts": "test_a_file_that_was_cut_off_is_read_or_refused",
    "IsTiredAfterDamage": "test_a_damaged_file_is_read_or_refused",
    "ChokesOnDamage": "test_a_damaged_file_is_read_or_refused",
    "ChokesOnNoise": "test_random_bytes_are_read_or_refused",
    "TrustsNames": "test_a_file_cannot_name_a_codec_of_python",
    "Inflates": "test_memory_is_bounded_by_the_length_of_the_file",
    "GrowsFaster": "test_memory_grows_no_faster_than_the_file",
    "Unpacks": "test_a_hostile_file_costs_an_error_and_nothing_else",
    "CountsQuotes": "test_what_is_parsed_without_a_process_of_its_own_is_linear[> ]",
    "CountsLevels": "test_what_is_parsed_without_a_process_of_its_own_is_linear[> ]",
    "Backtracks": "test_what_is_parsed_without_a_process_of_its_own_is_linear[> ]",
    "Writes": "test_it_does_what_it_declares_and_nothing_else",
    "DotsExtensions": "test_its_descriptor_says_which_files_it_reads",
    "ForgetsExtensions": "test_its_descriptor_says_which_files_it_reads",
    "LooksAtNames": "test_files_come_to_it_by_extension_and_by_their_first_bytes",
    "GivesLookalikes": "test_blocks_are_whole_and_stand_in_reading_order",
    "HasHeadingsOfNoLevel": "test_blocks_are_whole_and_stand_in_reading_order",
    "CountsParsers": "test_the_same_bytes_give_the_same_document",
    "HidesNamesOfBombs": "test_a_hostile_file_costs_an_error_and_nothing_else",
}
"""A parser of the zoo, and the test that is made for its fault."""

SUITES = """
import pytest

from jackfield.errors import PluginNotFoundError
from jackfield_testkit.suites import ParserSuite


def suite_for(name):
    mark, extension = f"ZOO:{name}:".encode(), name.lower()
    members = {
        "component": f"jackfield-zoo/{name}",
        "samples": {
            f"lions.{extension}": (
                mark + "A lion.\\n\\nIt sleeps.\\fThe bear döst.\\nend".encode(), ("A lion.", "The bear döst.")
            ),
            f"bears.{extension}": (mark + b"A bear.\\nend", "A bear."),
        },
        "unreadable": {f"cats.{extension}": b"CATS and dogs, and none of them with a mark.\\nend"},
        "hostile": {f"bomb.{extension}": mark + b"A lion, a hundred million times.\\nend"},
        "giving_up_s": 20.0 if name == "Honest" else 0.2,
        "make_file": staticmethod(lambda count: mark + b"A lion and a bear.\\n\\n" * (20 * count) + b"\\nend"),
    }
    return type(f"Test{name}", (ParserSuite,), members)


def like_honest(name, **members):
    globals()[f"Test{name}"] = type(f"Test{name}", (ParserSuite,), {**MEMBERS, **members})


MEMBERS = {name: value for name, value in vars(suite_for("Honest")).items() if not name.startswith("__")}
LION = {"lion.honest": (b"ZOO:Honest:A lion.\\n\\nIt sleeps.\\nend", "A lion.")}
like_honest("HasNoSamples", samples={})
like_honest("HasOneText", samples=LION)
like_honest("HasOneBlock", samples={"lion.honest": (LION["lion.honest"][0], ("A", "lion."))})
like_honest("SaysOneBlock", one_block="a reason")
like_honest("MakesNoFile", make_file=None)

for name in NAMES:
    globals().setdefault(f"Test{name}", suite_for(name))
"""
EVERY_TEST = {name for name in dir(ParserSuite) if name.startswith("test_")}


def test_a_correct_parser_passes_all_and_each_broken_one_is_caught(
    run_suites: Callable[..., Any], read_checks: Callable[[str], Any], installed_zoo: Path
) -> None:
    checks = read_checks("parser")
    pairs = checks.with_laws(BROKEN)
    selected = ["TestHonest", *(f"Test{name}::{test}" for name, test in pairs)]
    outcomes = run_suites(f"NAMES = ['Honest', *{[name for name, _ in pairs]}]{SUITES}", selected, installed_zoo)
    assert outcomes.of("TestHonest", "passed") == EVERY_TEST
    assert outcomes.not_caught(BROKEN) == {}
    assert checks.not_failed(outcomes) == {}
    assert checks.unknown() == set()
    assert outcomes.cases("TestHonest") == checks.cases.keys()
    assert {test.partition("[")[0] for test in BROKEN.values()} == EVERY_TEST


def test_a_component_is_that_of_its_distribution_and_no_other_of_its_name() -> None:
    ours = type("Ours", (ParserSuite,), {"component": "jackfield-text/text", "samples": {}})
    assert ours()._row().distribution == "jackfield-text"
    nobodys = type("Nobodys", (ParserSuite,), {"component": "jackfield-nobody/text", "samples": {}})
    with pytest.raises(PluginNotFoundError):
        nobodys()._row()
