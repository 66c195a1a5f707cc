"""What a date and an address of the web look like, wherever a document states them."""

from __future__ import annotations

import re
from datetime import date
from urllib.parse import urlsplit

DATES = "YYYY, YYYY-MM or YYYY-MM-DD"
ADDRESSES = "http(s)://host, and what follows"
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?", re.ASCII)


def is_date(text: str) -> bool:
    """Whether ``text`` is a year, month or day of the calendar as ISO 8601 writes it, with hyphens.

    Any of the three, since many sources tell no more than the year.
    """
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text + "-01" * (2 - text.count("-")))
    except ValueError:
        return False
    return True


def is_web_address(text: str) -> bool:
    """Whether ``text`` is an http or https URL with a host; a port, if any, is a port's number."""
    if not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and any(c.isalnum() for c in host)
