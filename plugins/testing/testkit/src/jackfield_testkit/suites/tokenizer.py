"""Contract tests for tokenizers."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

import pytest

from jackfield.errors import ConfigError
from jackfield.plugins import TokenizerSpec
from jackfield.tokenizers import Tokenizer
from jackfield_testkit.effects import undeclared, watching
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.threads import at_once

TEXTS: Sequence[str] = (
    "a",
    " ",
    "\n",
    "The weather in the mountains changes within an hour, and whoever climbs them takes a coat along.",
    "I don't know whether they're there;  the others\tweren't.\r\n\r\nNor was I.   ",
    "天气在山里一小时之内就会变化，所以爬山的人总是带着外套。",
    "Der Bär läßt grüßen. Ça va? Ещё раз! 안녕하세요, こんにちは。 שלום مرحبا \u2068\u2069",
    'def double(n: int) -> int:\n    return 2 * n  # {"a": [1, 2.5e-3], "b": null}\n',
    "0123456789 3.14159 1,000,000 ²⅓Ⅷ٣",
    "🙂🙃 👩‍👩‍👧‍👦 🇨🇳 👍🏽 ❤️",
    "e\u0301 é \u1e9b\u0323 ﬁ Å \u212b 각",
    "null \0 escape \x1b delete \x7f mark \ufeff joiner \u200d end",
    "supercalifragilisticexpialidocious" * 3,
    "a b " * 50,
    "\n\n\n    \t\t  ...---!!!???   ",
)
CONTROL_TOKENS: Sequence[str] = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|fim_prefix|>",
    "<|eot_id|>",
)
HEAVY = ("tiktoken", "tokenizers", "transformers", "sentencepiece", "torch", "numpy", "dashscope", "openai")
_MAKE_ONE = """
import json, sys
from jackfield.plugins import PluginHost
from jackfield.plugins import Settings
from jackfield.tokenizers import Tokenizer

host = PluginHost(Settings())
host.make(host.find("tokenizer", sys.argv[1]), json.loads(sys.argv[2]), Tokenizer)
print(*(name for name in sys.argv[3:] if name in sys.modules))
"""
SLACK = 8  # how many tokens may change at a cut or join, because a long word may be one token or several
# tiktoken's Rust code panics on spaces of this length, and a panic is not an Exception.
LONG_TEXTS = [(" ", 1_000_000), *((text, 220_000) for text in ("a", "\n", "数", "1", "🙂", "\0", "a "))]


class TokenizerSuite(Suite):
    """Contract of tokenizers.

    ```python
    class TestAcme(TokenizerSuite):
        component = "jackfield-acme/acme"
    ```

    Attributes:
        component: The tokenizer to test, as `distribution/name`, or only the name if it is unique.
        config: The tokenizer's settings.
        normal_form: The Unicode normal form applied before encoding, which decoded texts therefore have, or '' for
            none.
        control_tokens: The vocabulary's control tokens, as text.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    normal_form: ClassVar[Literal["", "NFC", "NFKC"]] = ""
    control_tokens: ClassVar[Sequence[str]] = CONTROL_TOKENS

    def make_tokenizer(self) -> Tokenizer:
        """Create a tokenizer to test. Override this if yours needs more than `config`."""
        host = plain_host()
        made = host.make(host.find("tokenizer", self.component), self.config, Tokenizer)
        assert isinstance(made, Tokenizer)
        return made

    @pytest.fixture
    def tokenizer(self) -> Tokenizer:
        """Return a tokenizer that has not loaded its vocabulary yet."""
        return self.make_tokenizer()

    # --- its facts ---

    def test_it_has_the_name_by_which_it_is_asked_for(self, tokenizer: Tokenizer) -> None:
        # Model facts refer to the tokenizer by name.
        assert tokenizer.name == self.component.rpartition("/")[2]
        assert isinstance(tokenizer.exact, bool)

    def test_making_one_reads_and_does_nothing(self) -> None:
        self.make_tokenizer()  # the module is imported by now
        with watching() as effects:
            made = self.make_tokenizer()
            assert made.name
        assert (effects.outside, effects.read) == ([], []), (
            "creating a tokenizer must not read files or connect: read the vocabulary on the first call"
        )

    def test_making_one_loads_no_library_that_encodes(self) -> None:
        # In a separate interpreter, because other tests may have loaded the packages here.
        command = [sys.executable, "-B", "-c", _MAKE_ONE, self.component, json.dumps(dict(self.config)), *HEAVY]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603 - our own
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [], (
            "creating a tokenizer must not import these packages: import them on the first call"
        )

    def test_it_does_what_it_declares_and_nothing_else(self, tokenizer: Tokenizer) -> None:
        host = plain_host()
        with watching() as effects:
            tokenizer.count("one two")
            tokenizer.cut("one two", 1)
        spec = host.spec_of(host.find("tokenizer", self.component), TokenizerSpec)
        assert undeclared(effects, spec.effects) == [], (
            "undeclared effects: add them to `effects` of the descriptor, or remove them"
        )

    # --- counting ---

    def test_nothing_has_no_tokens_and_anything_else_has_some(self, tokenizer: Tokenizer) -> None:
        assert tokenizer.count("") == 0
        assert [text for text in TEXTS if tokenizer.count(text) < 1] == []

    def test_a_count_is_the_number_of_tokens(self, tokenizer: Tokenizer) -> None:
        self._needs_tokens(tokenizer)
        assert tokenizer.encode("") == []
        for text in (*TEXTS, *_of_all_planes()):
            tokens = tokenizer.encode(text)
            assert tokenizer.count(text) == len(tokens), f"{text!r}"
            assert all(type(token) is int and token >= 0 for token in tokens), f"{text!r}: {tokens}"

    def test_two_texts_have_about_as_many_tokens_together_as_apart(self, tokenizer: Tokenizer) -> None:
        for first in TEXTS:
            for second in TEXTS:
                apart = tokenizer.count(first) + tokenizer.count(second)
                assert tokenizer.count(first + second) <= apart + SLACK, f"{first!r} and {second!r}"

    def test_a_beginning_has_no_more_tokens_than_the_whole(self, tokenizer: Tokenizer) -> None:
        for text in TEXTS:
            whole = tokenizer.count(text)
            for end in range(0, len(text), 7):
                assert tokenizer.count(text[:end]) <= whole + SLACK, f"{text[:end]!r}"

    def test_a_text_again_and_again_has_ever_more_tokens(self, tokenizer: Tokenizer) -> None:
        for text in TEXTS[3:9]:
            once, often = tokenizer.count(text), tokenizer.count(text * 40)
            assert 20 * once <= often <= 40 * (once + SLACK), (
                f"{text!r}: {once} tokens, but {often} when repeated forty times"
            )

    # --- tokens ---

    def test_tokens_become_the_text_again(self, tokenizer: Tokenizer) -> None:
        self._needs_tokens(tokenizer)
        for text in (*TEXTS, *_of_all_planes()):
            assert tokenizer.decode(tokenizer.encode(text)) == self._normalised(text)
        assert tokenizer.decode([]) == ""

    def test_what_looks_like_a_control_token_is_text(self, tokenizer: Tokenizer) -> None:
        for text in self.control_tokens:
            assert tokenizer.count(text) > 1, (
                f"{text} counts as one token, so users could write tokens reserved for servers"
            )
            if tokenizer.exact:
                said = f"a {text} b"
                assert tokenizer.decode(tokenizer.encode(said)) == said

    def test_a_character_that_was_cut_is_the_replacement_character(self, tokenizer: Tokenizer) -> None:
        self._needs_tokens(tokenizer)
        for text in ("🙂", "\U0001f9ff", "\U00013000", "\U0010fffd"):
            tokens = tokenizer.encode(text)
            for end in range(1, len(tokens)):
                cut = tokenizer.decode(tokens[:end])
                assert cut == "" or set(cut) <= {"\ufffd"}, f"{text!r}: {cut!r}"

    def test_a_token_that_is_not_in_the_vocabulary_is_a_value_error(self, tokenizer: Tokenizer) -> None:
        self._needs_tokens(tokenizer)
        for token in (-1, 2**31 - 1, 2**40):
            with _no_panic(), pytest.raises(ValueError):  # noqa: PT011 - the message is up to the tokenizer
                tokenizer.decode([token])

    def test_without_a_vocabulary_there_are_no_tokens_and_it_says_so(self, tokenizer: Tokenizer) -> None:
        if tokenizer.exact:
            pytest.skip("the tokenizer has a vocabulary")
        for ask in (lambda: tokenizer.encode("a"), lambda: tokenizer.decode([1])):
            with pytest.raises(ConfigError):
                ask()

    # --- cutting ---

    def test_a_cut_is_a_beginning_that_has_no_more_tokens_than_it_may(self, tokenizer: Tokenizer) -> None:
        for text in TEXTS:
            for most in (1, 2, 3, 5, 12, 40):
                beginning = tokenizer.cut(text, most)
                assert text.startswith(beginning), f"{text!r} does not start with {beginning!r}"
                assert tokenizer.count(beginning) <= most, f"{beginning!r} has more than {most} tokens"

    def test_a_cut_is_as_long_as_it_may_be(self, tokenizer: Tokenizer) -> None:
        for text in TEXTS:
            for most in (1, 2, 3, 5, 12, 40):
                end = len(tokenizer.cut(text, most))
                assert end == len(text) or tokenizer.count(text[: end + 1]) > most, (
                    f"{text[: end + 1]!r} also fits into {most} tokens"
                )

    def test_a_text_that_fits_is_not_cut_and_nothing_is_left_of_one_for_which_there_is_no_room(
        self, tokenizer: Tokenizer
    ) -> None:
        for text in TEXTS:
            assert tokenizer.cut(text, tokenizer.count(text)) == text
            assert tokenizer.cut(text, tokenizer.count(text) + 1) == text
            assert (tokenizer.cut(text, 0), tokenizer.cut(text, -1)) == ("", "")

    # --- odd texts ---

    def test_half_a_surrogate_pair_counts_as_the_replacement_character(self, tokenizer: Tokenizer) -> None:
        for half in ("\ud83d", "\ude42", "\udcff"):
            with _no_panic():
                assert tokenizer.count(f"a {half} b") == tokenizer.count("a \ufffd b")
                assert tokenizer.count(half) == tokenizer.count("\ufffd")
                assert f"a {half} b".startswith(tokenizer.cut(f"a {half} b", 2))

    @pytest.mark.parametrize(("text", "length"), LONG_TEXTS, ids=ascii)
    def test_a_text_as_long_as_a_book_is_counted_and_cut(self, tokenizer: Tokenizer, text: str, length: int) -> None:
        long = text * (length // len(text)) + "a"
        with _no_panic():
            count = tokenizer.count(long)
            assert count >= 1
            beginning = tokenizer.cut(long, 100)
            assert long.startswith(beginning)
            assert tokenizer.count(beginning) <= 100
            if tokenizer.exact:
                tokens = tokenizer.encode(long)
                assert len(tokens) == count
                assert tokenizer.decode(tokens) == long

    # --- many at once ---

    def test_the_same_text_always_has_the_same_tokens(self, tokenizer: Tokenizer) -> None:
        again = self.make_tokenizer()
        for text in TEXTS:
            assert tokenizer.count(text) == tokenizer.count(text) == again.count(text)
            if tokenizer.exact:
                assert tokenizer.encode(text) == tokenizer.encode(text) == again.encode(text)

    def test_threads_that_ask_at_the_same_time_get_what_they_get_alone(self, tokenizer: Tokenizer) -> None:
        alone = self.make_tokenizer()
        wanted = [(alone.count(text), alone.cut(text, 5)) for text in TEXTS]
        # The first call of each thread, before any of them has loaded the vocabulary.
        came = at_once(6, lambda _: [(tokenizer.count(text), tokenizer.cut(text, 5)) for text in TEXTS])
        assert came == [wanted] * 6

    # --- parts ---

    def _normalised(self, text: str) -> str:
        return unicodedata.normalize(self.normal_form, text) if self.normal_form else text

    @staticmethod
    def _needs_tokens(tokenizer: Tokenizer) -> None:
        if not tokenizer.exact:
            pytest.skip("the tokenizer only estimates and has no tokens")


def _of_all_planes() -> Iterator[str]:
    """Yield texts with characters from every Unicode plane, and from every script in the first two planes."""
    for start in range(0, 0x110000, 0x1000):
        code_points = range(start, start + 0x1000, 0x61 if start < 0x20000 else 0x3FF)
        text = " ".join(chr(code) for code in code_points if not 0xD800 <= code <= 0xDFFF)
        if text:
            yield text


@contextmanager
def _no_panic() -> Iterator[None]:
    """Turn a Rust library's panic into a failure, because other handlers only catch an `Exception`."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            pytest.fail(f"the encoding library panicked, which terminates the thread: {str(error)[:200]}")
        raise
