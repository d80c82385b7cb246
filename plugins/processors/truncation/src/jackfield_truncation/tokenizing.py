"""The counter of a request: a tokenizer by name, the model's own, or an estimate that learns."""

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

_STEP = 0.05  # step of factors, because following each change would resize old texts and invalidate prompt caches
_LEAST, _MOST = 0.5, 3.0  # range relative to the estimate; any other number counts something else
_MOST_MODELS = 64

_log = logging.getLogger(__name__)


class Counting:
    """Counts requests in one way.

    Args:
        counts: Counts texts, and remembers.
        media_tokens: The number of tokens that an image, a sound or a frame of video counts as.
        exact: True if the counts are those of the model's vocabulary.
        estimate: The object that learns, if the counts are the core's estimates.
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
        """Return a counter for one request. Later learning does not change it."""
        if self._estimate and abs(self._estimate.factor - self._factor) >= _STEP:
            self._factor = self._estimate.factor
        return RequestCounter(self._counts, self._media_tokens, factor=self._factor)

    def learn(self, request: ChatRequest, tokens: int, reported: int) -> None:
        """Learn from a server's number of tokens of a request that was counted as `tokens` here.

        Nothing is learned from media, whose size is a guess, nor from numbers with another meaning: a server that
        reports only the uncached tokens would teach that texts are short.
        """
        if self._estimate is None or not _LEAST * tokens <= reported <= _MOST * tokens:
            return
        if all(isinstance(message.content, str) for message in request.messages):
            self._estimate.learn(round(tokens * self._estimate.factor / self._factor), reported)


class Countings:
    """Finds the counting for a request.

    Args:
        tokenizer: The name of a tokenizer, which must be installed, or a dict of `name` and its settings, or
            `estimate`; None for the model's own.
        count: A function that counts, over all of these.
        media_tokens: The number of tokens that an image, a sound or a frame of video counts as.
        host: The host in which tokenizers are looked up; the installed ones if None.

    Raises:
        PluginError: The wanted tokenizer is not installed.
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
        """Return a counter that shows if a request surely fits; it does not count exactly."""
        return (self._given or self._estimating(request)).counter()

    def at_hand(self, request: ChatRequest) -> Counting | None:
        """Return the counting of a request if it is ready and fast; None if `of` should run in a thread."""
        if self._given:
            return self._given
        name = self._name(request)
        if not name or (name in self._vocabularies and self._vocabularies[name] is None):
            return self._estimating(request)
        return None

    def of(self, request: ChatRequest) -> Counting:
        """Return the counting of a request, and load a vocabulary if it needs one.

        Raises:
            PluginError, ConfigError: The tokenizer that the settings name cannot be used. The model's own tokenizer is
                only an improvement: if it cannot be used, the estimate is taken, and a warning is logged.
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
        """Return the name of the tokenizer; '' for the estimate."""
        name = self._wanted or request.facts.tokenizer
        return "" if name == ESTIMATE else name

    def _estimating(self, request: ChatRequest) -> Counting:
        """Return the estimate, which learns for each model separately."""
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
            _log.warning("the tokenizer %s cannot be used, so tokens are estimated: %s", name, error)
            return None

    def _load(self, name: str) -> Counting:
        host = self._host or default_host()
        tokenizer = host.make(self._find(name), self._settings, Tokenizer)
        tokenizer.count("a")  # reads the vocabulary; if that fails, it fails here
        return Counting(Counts(tokenizer.count), self._media_tokens, exact=tokenizer.exact)

    def _find(self, name: str) -> Row:
        return (self._host or default_host()).find("tokenizer", name)
