"""Processor that reserves money before a call, then reports and records the actual cost."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from jackfield import sync
from jackfield.errors import ConfigError, JackfieldError, LimitReachedError
from jackfield.events import (
    FunctionCallDelta,
    ModelEvent,
    PluginEvent,
    ReasoningDelta,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import Usage
from jackfield.models import ONLY_BEFORE_OUTPUT
from jackfield.prices import PriceRow, add_cost, find_price
from jackfield.processors import CallNext, Phase, Processor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield_budget.account import Account, Refusal, Reservation, period_of
from jackfield_budget.config import BudgetConfig
from jackfield_budget.prices import PriceTable, rows_of
from jackfield_budget.shared import ledgers
from jackfield_counting.estimating import estimate_tokens
from jackfield_counting.requests import Counts, RequestCounter
from jackfield_local_state.ledger import Ledger

UNKNOWN_EVENT = "jackfield-budget.unknown_price"

_EXPECTED_ANSWER_TOKENS = 500  # if nothing limits the length of the answer
_SURE_PART = Decimal("0.75")  # fraction of the estimated prompt tokens; real counts are rarely lower
_CHARACTERS_A_TOKEN = 3
_MOST_ROWS = 256

_log = logging.getLogger(__name__)


class Budget(Processor):
    """Adds the cost to each answer's usage, and refuses calls once the limit is reached.

    Prices are those in effect on the day of the answer. If a model has no known price, its cost stays unknown and an
    event reports this. With `unknown="refuse"`, the call is refused instead.

    With a limit, the expected cost of a call is reserved up front and replaced by the actual cost afterwards. If the
    remaining budget does not cover a call, the call is refused.

    Args:
        cfg, settings: The keys of `BudgetConfig`.
        clock: Returns the current time in seconds since 1970, UTC.

    Raises:
        ConfigError: A setting or a price is invalid.
    """

    name: ClassVar[str] = "budget"
    config_class = BudgetConfig
    config: BudgetConfig
    phase: ClassVar[Phase] = "transport"
    # Inside retries, because each attempt costs; outside rate limits, so that no call waits only to be refused.
    after: ClassVar[tuple[str, ...]] = ("retry",)
    before: ClassVar[tuple[str, ...]] = ("rate_limits",)

    def __init__(
        self,
        cfg: BudgetConfig | Mapping[str, object] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        if self.config.path is not None and self.config.per == "process":
            raise ConfigError("budget: with `path`, set the period of the limit: per = 'day', 'month' or 'total'")
        self._path = None if self.config.path is None else Path(self.config.path).expanduser().absolute()
        self._table = PriceTable(rows_of(self.config.prices))
        self._refuses_unknown = (self.config.unknown or ("refuse" if self.config.limit else "say")) == "refuse"
        self._clock = clock
        self._counter = RequestCounter(Counts(estimate_tokens), media_tokens=0)  # the cost of media varies too much
        self._announced: set[tuple[str, str]] = set()
        self._rows: dict[tuple[str, str, date], PriceRow | None] = {}  # the rows of `prices`

    def __repr__(self) -> str:
        limit = "no limit" if self.config.limit is None else f"{self.config.limit} {self.config.currency}"
        return f"<Budget {limit} per {self.config.per}>"

    async def aclose(self) -> None:
        """Close the file. The next call reopens it."""
        if self._path is not None:
            await sync.in_worker(self._ledger.close)

    def spent(self) -> Decimal:
        """Return the amount spent in the current period, in the limit's currency.

        With a file, this method blocks on disk I/O.

        Raises:
            ConfigError: The file cannot be used.
            BusyError: The file stayed locked until the timeout.
        """
        period = period_of(self.config.per, self._clock())
        return self._ledger.change(self._account, lambda account: account.spent.get(period, Decimal(0)))

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Check the budget, make the call, and report its cost."""
        return self._paid(request, call_next)

    async def _paid(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        row = self._row(request)
        if row is None and (note := self._unknown(request)) is not None:
            yield note
        reservation = await self._reserve(request, row)
        bill = _Bill()
        # The costs are computed here, because configured prices win over those that the model knows.
        unpriced = replace(request, facts=replace(request.facts, prices=())) if request.facts.prices else request
        try:
            async with closing(call_next(unpriced)) as events:
                async for event in events:
                    if isinstance(event, UsageReported):
                        row_now = self._row(request)
                        rows = () if row_now is None else (row_now,)
                        event = UsageReported(add_cost(event.usage, rows, self._today()))  # noqa: PLW2901 - with its cost
                    bill.see(event)
                    yield event
        finally:
            if reservation is not None:
                await self._settle(reservation, bill, row, request)

    # --- prices ---

    def _row(self, request: ChatRequest) -> PriceRow | None:
        """Return today's price for a request, preferring configured prices to those that the model knows."""
        key = (request.model, request.server, self._today())
        rows = self._rows  # another thread may replace the dict
        if key not in rows:
            if len(rows) >= _MOST_ROWS:
                rows = self._rows = {}
            rows[key] = self._table.find(*key)
        return rows[key] or find_price(request.facts.prices, key[-1])

    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock(), UTC).date()

    def _unknown(self, request: ChatRequest) -> PluginEvent | None:
        """Return an event about a model without a price, or None if the model was already reported.

        Raises:
            ConfigError: The settings refuse models without a price.
        """
        who = (request.server, request.model)
        message = (
            f"no known price for {request.model} at {request.server or 'its server'} on {self._today()}: "
            f"add a price to `prices`"
        )
        if self._refuses_unknown:
            raise ConfigError(f"{message}, or set unknown='say'")
        if who in self._announced or request.metadata.get(ONLY_BEFORE_OUTPUT):
            return None
        self._announced.add(who)
        data = {"model": request.model, "server": request.server}
        note = f"不知道 {request.model} 的价格，费用无法计算" if request.lang == "zh" else message
        return PluginEvent(UNKNOWN_EVENT, {**data, "note": note})

    # --- the limit ---

    @property
    def _ledger(self) -> Ledger[Account]:
        return ledgers().ledger(self._path)

    @property
    def _account(self) -> str:
        return f"{self.config.scope}|{self.config.per}|{self.config.currency}"

    async def _reserve(self, request: ChatRequest, row: PriceRow | None) -> Reservation | None:
        """Reserve money for a call, or return None if there is neither a limit nor a file.

        Raises:
            LimitReachedError: The remaining budget is too small.
            ConfigError: The model is priced in a different currency from the limit.
        """
        if self.config.limit is None and self._path is None:
            return None
        if row is not None and row.currency != self.config.currency and self._refuses_unknown:
            raise ConfigError(
                f"{request.model} is priced in {row.currency}, but the budget is in {self.config.currency}: set "
                f"currency={row.currency!r}, or add a price in {self.config.currency} to `prices`"
            )
        least, expected = self._expected(request, row)
        wanted = Reservation(uuid.uuid4().hex, expected)
        outcome = await self._begin(wanted, least)
        if isinstance(outcome, Refusal):
            raise self._refused(outcome, least)
        return outcome

    def _refused(self, refusal: Refusal, least: Decimal) -> LimitReachedError:
        running = f", {refusal.reserved} is reserved for running calls" if refusal.reserved else ""
        return LimitReachedError(
            f"the budget{f' {self.config.scope!r}' if self.config.scope else ''} of {self.config.limit} "
            f"{self.config.currency} per {self.config.per} is used up: {refusal.spent} is spent{running}, and "
            f"this call costs at least {least.normalize():f}; raise `limit`, or wait for the next period",
            limit="budget",
        )

    async def _begin(self, wanted: Reservation, least: Decimal) -> Reservation | Refusal:
        def begin(account: Account) -> Reservation | Refusal:
            now = self._clock()
            period = period_of(self.config.per, now)
            return account.begin(
                wanted, least=least, limit=self.config.limit, period=period, now=now, lease_s=self.config.lease_s
            )

        def take_back(account: Account, outcome: Reservation | Refusal) -> None:
            if isinstance(outcome, Reservation):
                account.settle(outcome, Decimal(0), period=period_of(self.config.per, self._clock()))

        return await self._ledger.achange(self._account, begin, undo=take_back)

    def _expected(self, request: ChatRequest, row: PriceRow | None) -> tuple[Decimal, Decimal]:
        """Return the minimum and the expected cost of a call."""
        if row is None or row.currency != self.config.currency:
            return Decimal(0), Decimal(0)
        question = self._counter.request(request)
        rates = row.rates(question) or row.tiers[-1]
        usage = Usage(prompt_tokens=question, completion_tokens=request.config.max_tokens or _EXPECTED_ANSWER_TOKENS)
        return question * _SURE_PART * rates.least_input / 1_000_000, rates.cost(usage)

    async def _settle(self, reservation: Reservation, bill: _Bill, row: PriceRow | None, request: ChatRequest) -> None:
        cost = bill.cost(self.config.currency)
        if cost is None:
            cost = self._guessed(bill, row, request)
        period = period_of(self.config.per, self._clock())
        try:
            await self._ledger.anote(self._account, lambda account: account.settle(reservation, cost, period=period))
        except JackfieldError as error:
            # The answer has already arrived; if the file still fails, the next call reports the error.
            _log.warning("%s %s was spent, but could not be recorded: %s", cost, self.config.currency, error)

    def _guessed(self, bill: _Bill, row: PriceRow | None, request: ChatRequest) -> Decimal:
        """Estimate the cost, for the limit only, of a call that started to answer but reported no usage."""
        if row is None or row.currency != self.config.currency or not bill.characters:
            return Decimal(0)
        question = self._counter.request(request)
        rates = row.rates(question) or row.tiers[-1]
        return rates.cost(Usage(prompt_tokens=question, completion_tokens=1 + bill.characters // _CHARACTERS_A_TOKEN))


@dataclass(slots=True)
class _Bill:
    """The cost of one call.

    Attributes:
        characters: The number of characters in the answer.
        usage: The usage last reported.
        before: The usage reported for answers that were discarded.
    """

    characters: int = 0
    usage: Usage | None = None
    before: Usage | None = None

    def see(self, event: ModelEvent) -> None:
        """Update the bill from an event."""
        match event:
            case TextDelta(text) | ReasoningDelta(text):
                self.characters += len(text)
            case FunctionCallDelta():
                self.characters += len(event.name) + len(event.arguments)
            case UsageReported(usage):
                self.usage = usage
            case StreamReset():
                if self.usage is not None:
                    self.before = self.usage if self.before is None else self.before + self.usage
                self.usage = None

    def cost(self, currency: str) -> Decimal | None:
        """Return the total in a currency, or None if no cost was reported in that currency."""
        reported = filter(None, (self.before, self.usage))
        costs = [one.cost for one in reported if one.cost is not None and one.currency == currency]
        return sum(costs, Decimal(0)) if costs else None
