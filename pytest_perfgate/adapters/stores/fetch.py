"""Files fetched over HTTP, with a time-out, retries and errors that name the address."""

from __future__ import annotations

import time
from urllib.parse import urlsplit, urlunsplit

from pytest_perfgate.model.errors import PerfgateError

_TRIES = 3
_TIMEOUT = (5.0, 30.0)
_WAIT = 0.5
_LARGEST = 512 * 2**20


def fetched(url: str, *, wait: float = _WAIT) -> bytes:
    """The content behind an address; a server that is busy is asked again."""
    import requests

    last = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            with requests.get(url, timeout=_TIMEOUT, stream=True) as answer:
                if answer.status_code < 300:
                    return _body(answer, url)
                last = f"the server answers {answer.status_code} {answer.reason}"
                if answer.status_code < 500 and answer.status_code != 429:
                    break
        except requests.RequestException as fault:
            last = f"{type(fault).__name__}"
    raise PerfgateError("record-fetch", last, place=without_secrets(url))


def _body(answer: object, url: str) -> bytes:
    data = bytearray()
    for chunk in answer.iter_content(2**20):  # type: ignore[attr-defined]
        data += chunk
        if len(data) > _LARGEST:
            raise PerfgateError("record-fetch", f"it is larger than {_LARGEST >> 20} MiB", place=without_secrets(url))
    return bytes(data)


def without_secrets(url: str) -> str:
    """The address without user, password and query, fit for a log."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
