"""HTTP for deliveries: a time-out, retries while the server is busy, errors without secrets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pytest_perfgate.model.errors import PerfgateError

_TRIES = 3
_TIMEOUT = (5.0, 30.0)
_WAIT = 0.5


def sent(method: str, url: str, *, headers: Mapping[str, str], body: Any = None) -> Any:
    """The server's answer as JSON, ``None`` where it has none."""
    import requests

    last = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_WAIT * 2 ** (attempt - 1))
        try:
            answer = requests.request(method, url, headers=dict(headers), json=body, timeout=_TIMEOUT)
        except requests.RequestException as fault:
            last = type(fault).__name__
            continue
        if answer.status_code < 300:
            return answer.json() if answer.content else None
        last = f"the server answers {answer.status_code} {answer.reason}"
        if answer.status_code < 500 and answer.status_code != 429:
            break
    raise PerfgateError("delivery-failed", last, place=shown(url))


def shown(url: str) -> str:
    """The address without user, password and query, fit for a log."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
