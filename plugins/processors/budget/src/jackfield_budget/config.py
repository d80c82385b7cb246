"""Settings for the budget."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from jackfield.config import Config, PathText

Per = Literal["process", "day", "month", "total"]
Unknown = Literal["say", "refuse"]


class BudgetConfig(Config):
    """Spending limit, its period and scope, and prices."""

    limit: Decimal | None = Field(default=None, gt=0, description="Maximum spending; if unset, costs are only reported")
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$", description="Currency of the limit (ISO 4217)")
    per: Per = Field(default="process", description="The period of the limit; days and months are in UTC")
    scope: str = Field(default="", description="The name of the budget: processors with the same scope share it")
    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="SQLite file that records spending, shared by all processes that use it",
    )
    prices: PathText | dict[str, Any] | tuple[dict[str, Any], ...] | None = Field(
        default=None, description="Your own prices, which override the built-in ones: a TOML file, or its content"
    )
    unknown: Unknown | None = Field(
        default=None,
        description="What to do if a model's price is unknown: report it, or refuse (the default with a limit)",
    )
    lease_s: float = Field(
        default=3600.0,
        gt=0,
        description="Seconds without a response after which a call is charged at its estimated cost",
    )
