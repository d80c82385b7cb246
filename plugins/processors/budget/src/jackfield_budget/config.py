"""The settings of the budget."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from jackfield.config import Config
from jackfield.configured import PathText

Per = Literal["process", "day", "month", "total"]
Unknown = Literal["say", "refuse"]


class BudgetConfig(Config):
    """What may be spent, on what, and by which prices."""

    limit: Decimal | None = Field(default=None, gt=0, description="The most money; without it, costs are only said")
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$", description="Of the limit, ISO 4217")
    per: Per = Field(default="process", description="What the limit is for; a day and a month are those of UTC")
    scope: str = Field(default="", description="Whose budget it is: processors that name the same share it")
    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="An SQLite file that keeps what was spent, for all processes that name it",
    )
    prices: PathText | dict[str, Any] | tuple[dict[str, Any], ...] | None = Field(
        default=None, description="Your prices, over those that come along: a TOML file, or its content"
    )
    unknown: Unknown | None = Field(
        default=None,
        description="What to do with a model whose price is not known: say so, or refuse (where there is a limit)",
    )
    lease_s: float = Field(
        default=3600.0,
        gt=0,
        description="Seconds after which a call of which nothing was heard counts as paid, by its estimate",
    )
