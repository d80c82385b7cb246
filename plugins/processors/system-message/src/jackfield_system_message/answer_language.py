"""Sentences that ask the model to answer in a given language."""

from __future__ import annotations

from collections.abc import Mapping

from jackfield.config import Lang

IN_THIS_LANGUAGE: Mapping[Lang, str] = {"en": "Answer in English.", "zh": "请用中文回答。"}
AS_THE_USER = "Answer in the language in which the user writes."
SENTENCES = (*IN_THIS_LANGUAGE.values(), AS_THE_USER)
