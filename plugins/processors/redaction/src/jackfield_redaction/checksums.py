"""Checksums that distinguish account, card and identity numbers from other numbers."""

from __future__ import annotations

from datetime import date

# ISO 13616 registry: the length of an IBAN, by country.
_IBAN_LENGTHS = {
    country: length
    for length, countries in (
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FK FO GL NL SD"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU MN XK"),
        (21, "CH HR LI LV"),
        (22, "BG BH CR DE GB GE IE ME RS VA"),
        (23, "AE GI IL IQ OM SO TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
        (25, "LY PT ST"),
        (26, "IS TR"),
        (27, "BI DJ FR GR IT MC SM"),
        (28, "AL AZ BY CY DO GT HU LB NI PL SV"),
        (29, "BR EG PS QA UA"),
        (30, "JO KW MU YE"),
        (31, "MT SC"),
        (32, "LC"),
        (33, "RU"),
    )
    for country in countries.split()
}

# Card schemes, as ranges of the first four digits, with the lengths of their numbers.
_CARDS = (
    (2200, 2204, (16,)),
    (2221, 2720, (16,)),
    (3000, 3059, (14,)),
    (3400, 3499, (15,)),
    (3528, 3589, (16,)),
    (3600, 3699, (14,)),
    (3700, 3799, (15,)),
    (3800, 3999, (14,)),
    (4000, 4999, (16, 19)),
    (5018, 5018, (16,)),
    (5020, 5020, (16,)),
    (5038, 5038, (16,)),
    (5100, 5599, (16,)),
    (6011, 6011, (16, 19)),
    (6200, 6299, (16, 17, 18, 19)),
    (6304, 6304, (16,)),
    (6440, 6599, (16, 19)),
    (6759, 6763, (16,)),
)

_CN_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def iban_length(country: str) -> int:
    """Return the length of a country's IBANs, or 0 if the country has none."""
    return _IBAN_LENGTHS.get(country, 0)


def is_iban(compact: str) -> bool:
    """Return True if an IBAN without spaces has its country's length and valid check digits (ISO 7064, mod 97-10)."""
    if len(compact) != iban_length(compact[:2]):
        return False
    return int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 == 1


def is_card(digits: str) -> bool:
    """Return True if a number has a known card scheme's prefix and length and a valid check digit (ISO 7812, Luhn)."""
    scheme = int(digits[:4])
    if not any(first <= scheme <= last and len(digits) in lengths for first, last, lengths in _CARDS):
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_cn_id(number: str) -> bool:
    """Return True if 18 characters form a Chinese identity number (GB 11643): region, birthday, check character."""
    if number[0] not in "12345689":
        return False
    try:
        born = date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    if not 1900 <= born.year <= 2099:
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number, _CN_ID_WEIGHTS, strict=False))
    return "10X98765432"[total % 11] == number[17].upper()
