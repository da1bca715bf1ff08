"""Arguments of the wrong type are refused with the sentence that other bad input gets. Ranges and
names are C++'s to refuse."""
from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from dynamix import _core


def whole(field: str, value: Any, low: int, high: int) -> int:
    """A whole number of any kind (Python's, numpy's, a tensor's) within the range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise refused(field, value, f"a whole number from {low} to {high}") from None
    _core.require_in_range(field, number, low, high)
    return number


def number(field: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # the last of a tensor with many elements
        raise refused(field, value, "a number") from None


def of_type(field: str, value: Any, types: tuple, expected: str) -> Any:
    if not isinstance(value, types):
        raise refused(field, value, expected)
    return value


def text(field: str, value: Any) -> str:
    return of_type(field, value, (str,), "a text")


def advisor_options(advisor: str | Mapping[str, Any], **place: Any) -> _core.AdvisorOptions:
    """`advisor` is HOST:PORT[,HOST:PORT...], or a dictionary of AdvisorOptions."""
    of_type("advisor", advisor, (str, Mapping), "HOST:PORT[,HOST:PORT...] or a dictionary")
    options = {"addresses": advisor} if isinstance(advisor, str) else dict(advisor)
    try:
        return _core.AdvisorOptions(**place, **options)
    except TypeError:
        raise refused("advisor", sorted(map(str, options)), "addresses, token, tls_authority, tls_certificate, "
                      "tls_key, tls_name, timeout_s, opening_s and max_factor") from None


def refused(field: str, value: Any, expected: str) -> _core.InputError:
    shown = value if isinstance(value, str) else repr(value)
    return _core.InputError(f"{field} = {shown} is not allowed: expected {expected}")
