"""Choose how to count a request's tokens: a named tokenizer, the model's own, or an adaptive estimate."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from jackfield.errors import ConfigError, PluginBlockedError, PluginError, PluginNotFoundError
from jackfield.plugins import Plugins, Row, default_host
from jackfield.request import ChatRequest
from jackfield.tokenizers import TokenCounter, Tokenizer
from jackfield_counting.estimating import EstimatingTokenizer, estimate_tokens
from jackfield_counting.requests import Counts, RequestCounter

ESTIMATE = "estimate"

_STEP = 0.05  # minimum change of the factor; following every change would resize old texts and invalidate prompt caches
_LEAST, _MOST = 0.5, 3.0  # plausible range relative to the estimate; any other number counts something else
_MOST_MODELS = 64

_log = logging.getLogger(__name__)


class Counting:
    """One way of counting a request's tokens.

    Args:
        counts: Counts the tokens of texts, with a cache.
        media_tokens: The number of tokens to assume for an image, a sound or a video frame.
        exact: True if counts are based on the model's vocabulary.
        estimate: The adaptive estimator, if counts are the core's estimates.
    """

    def __init__(
        self, counts: Counts, media_tokens: int, *, exact: bool = False, estimate: EstimatingTokenizer | None = None
    ) -> None:
        self.exact = exact
        self._counts = counts
        self._media_tokens = media_tokens
        self._estimate = estimate
        self._factor = 1.0

    def counter(self) -> RequestCounter:
        """Return a counter for one request. Later calls of `learn` do not affect it."""
        if self._estimate and abs(self._estimate.factor - self._factor) >= _STEP:
            self._factor = self._estimate.factor
        return RequestCounter(self._counts, self._media_tokens, factor=self._factor)

    def learn(self, request: ChatRequest, tokens: int, reported: int) -> None:
        """Learn from the token count that a server reported for a request estimated at `tokens`.

        Requests with media are ignored because their size is a guess. So are counts that mean something else: a server
        that reports only uncached tokens would make texts appear too short.
        """
        if self._estimate is None or not _LEAST * tokens <= reported <= _MOST * tokens:
            return
        if all(isinstance(message.content, str) for message in request.messages):
            self._estimate.learn(round(tokens * self._estimate.factor / self._factor), reported)


class Countings:
    """Chooses how to count each request.

    Args:
        tokenizer: The name of an installed tokenizer, a dict with its `name` and settings, or `estimate`. If None, the
            model's own tokenizer is used.
        count: A function that counts tokens, overriding `tokenizer`.
        media_tokens: The number of tokens to assume for an image, a sound or a video frame.
        host: The host used to look up tokenizers. If None, the installed ones are used.

    Raises:
        PluginError: The requested tokenizer is not installed.
    """

    def __init__(
        self,
        *,
        tokenizer: str | Mapping[str, Any] | None,
        count: TokenCounter | None,
        media_tokens: int,
        host: Plugins | None,
    ) -> None:
        self._media_tokens = media_tokens
        self._host = host
        self._given = None if count is None else Counting(Counts(count), media_tokens)
        named = {"name": tokenizer} if tokenizer is None or isinstance(tokenizer, str) else dict(tokenizer)
        self._wanted: str | None = named.pop("name")
        self._settings = named
        if count is None and self._wanted and self._wanted != ESTIMATE:
            self._find(self._wanted)
        self._estimates = Counts(estimate_tokens)
        self._learning: dict[tuple[str, str], Counting] = {}
        self._vocabularies: dict[str, Counting | None] = {}  # None: unusable

    def roughly(self, request: ChatRequest) -> RequestCounter:
        """Return a counter that is good enough to tell if a request certainly fits."""
        return (self._given or self._estimating(request)).counter()

    def at_hand(self, request: ChatRequest) -> Counting | None:
        """Return a request's counting if it is ready and fast, or None if `of` should run in a thread."""
        if self._given:
            return self._given
        name = self._name(request)
        if not name or (name in self._vocabularies and self._vocabularies[name] is None):
            return self._estimating(request)
        return None

    def of(self, request: ChatRequest) -> Counting:
        """Return a request's counting, loading a vocabulary if needed.

        If the model's own tokenizer cannot be used, tokens are estimated and a warning is logged.

        Raises:
            PluginError, ConfigError: The tokenizer named in the settings cannot be used.
        """
        if self._given:
            return self._given
        name = self._name(request)
        if not name:
            return self._estimating(request)
        if name not in self._vocabularies:
            self._vocabularies[name] = self._load(name) if self._wanted else self._load_if_there(name)
        return self._vocabularies[name] or self._estimating(request)

    def _name(self, request: ChatRequest) -> str:
        """Return the name of the tokenizer, or '' for the estimate."""
        name = self._wanted or request.facts.tokenizer
        return "" if name == ESTIMATE else name

    def _estimating(self, request: ChatRequest) -> Counting:
        """Return the estimate, which adapts to each model separately."""
        key = (request.server, request.model)
        estimate = self._learning.get(key)
        if estimate is not None:
            return estimate
        if len(self._learning) >= _MOST_MODELS:
            self._learning = {}
        new = Counting(self._estimates, self._media_tokens, estimate=EstimatingTokenizer())
        return self._learning.setdefault(key, new)

    def _load_if_there(self, name: str) -> Counting | None:
        try:
            return self._load(name)
        except (PluginNotFoundError, PluginBlockedError):
            return None
        except (PluginError, ConfigError) as error:
            _log.warning("cannot use the tokenizer %s, so tokens are estimated: %s", name, error)
            return None

    def _load(self, name: str) -> Counting:
        host = self._host or default_host()
        tokenizer = host.make(self._find(name), self._settings, Tokenizer)
        tokenizer.count("a")  # loads the vocabulary, so that any failure happens here
        return Counting(Counts(tokenizer.count), self._media_tokens, exact=tokenizer.exact)

    def _find(self, name: str) -> Row:
        return (self._host or default_host()).find("tokenizer", name)
