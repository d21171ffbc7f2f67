"""Files fetched over HTTP, with a time-out, retries and errors that name the address."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from threading import Thread
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pytest_perfgate.model.errors import PerfgateError

_TRIES = 3
_CONNECT, _ANSWER = 5.0, 30.0
_WAIT = 0.5
_LARGEST = 512 * 2**20
_CHUNK = 2**14
_LOOK = 30.0
_SLOWEST = 4096
"""Bytes a second: a server that sends less is never done, and no time-out of one reading sees it."""


class _Refused(Exception):
    """What went wrong, in words, and whether asking again may help."""

    def __init__(self, said: str, *, again: bool = False) -> None:
        super().__init__(said)
        self.again = again


def fetched(url: str, *, wait: float = _WAIT) -> bytes:
    """The content behind an address; a server that is busy is asked again."""
    last = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        asked = _Asking(url)
        try:
            return asked.content()
        except _Refused as fault:
            last = str(fault)
            if not fault.again:
                break
    raise PerfgateError("record-fetch", last, place=without_secrets(url))


class _Asking(Thread):
    """One request, in a thread: whatever it hangs in, somebody looks whether it gets on."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True, name="perfgate-fetch")
        self._url = url
        self._data = bytearray()
        self._fault: BaseException | None = None

    def content(self) -> bytes:
        self.start()
        seen = 0
        while self._waits():
            if len(self._data) - seen < _SLOWEST * _LOOK:
                raise _Refused(f"the server sent {len(self._data) - seen} bytes in {_LOOK:g} s and was not done")
            seen = len(self._data)
        if self._fault is not None:
            raise self._fault
        return bytes(self._data)

    def _waits(self) -> bool:
        self.join(_LOOK)
        return self.is_alive()

    def run(self) -> None:
        try:
            self._ask()
        except BaseException as fault:  # noqa: BLE001 - raised again by the thread that waits
            self._fault = fault

    def _ask(self) -> None:
        import requests
        from urllib3.exceptions import HTTPError

        try:
            with requests.get(self._url, timeout=(_CONNECT, _ANSWER), stream=True) as answer:
                if answer.status_code >= 300:
                    again = answer.status_code >= 500 or answer.status_code == 429
                    raise _Refused(f"the server answers {answer.status_code} {answer.reason}", again=again)
                for chunk in answer.iter_content(_CHUNK):
                    self._data += chunk
                    if len(self._data) > _LARGEST:
                        raise _Refused(f"it is larger than {_LARGEST >> 20} MiB")
        except (requests.RequestException, HTTPError, OSError, ValueError) as fault:
            raise _worded(fault) from fault


_WORDS: tuple[tuple[frozenset[str], str, bool], ...] = (
    (frozenset({"NameResolutionError", "gaierror"}), "nobody knows a host of this name", True),
    (frozenset({"ConnectionRefusedError"}), "the host refuses the connection: no server listens at this port", True),
    (frozenset({"ConnectTimeout", "ConnectTimeoutError"}), f"no connection in {_CONNECT:g} s", True),
    (frozenset({"ReadTimeout", "ReadTimeoutError", "TimeoutError"}), f"no answer in {_ANSWER:g} s", True),
    (frozenset({"ProxyError"}), "the proxy does not let it through", True),
    (frozenset({"SSLCertVerificationError"}), "the server's certificate is not trusted here", False),
    (frozenset({"SSLError"}), "the server does not speak TLS as https:// asks for", False),
    (frozenset({"RemoteDisconnected", "ConnectionResetError"}), "the server closed without an answer", True),
    (frozenset({"IncompleteRead"}), "the server closed in the middle of its answer", True),
    (frozenset({"BadStatusLine", "InvalidChunkLength"}), "what answers does not speak HTTP", False),
    (frozenset({"ContentDecodingError"}), "the answer is not compressed as it says", False),
    (frozenset({"TooManyRedirects"}), "the server sends from one address to the next without end", False),
    (frozenset({"InvalidSchema"}), "the server sends to an address that is not http:// or https://", False),
    (frozenset({"InvalidURL", "LocationParseError", "UnicodeError", "ValueError"}), "this is no address", False),
)
"""Types of what went wrong, the outermost of a chain or what it came of, and what that is to a person."""


def _worded(fault: BaseException) -> _Refused:
    names = {type(one).__name__ for one in _chain(fault)}
    for types, said, again in _WORDS:
        if names & types:
            return _Refused(said, again=again)
    return _Refused(f"the connection failed: {type(fault).__name__}", again=True)


def _chain(fault: Any) -> Iterator[BaseException]:
    """What came of what: urllib3 keeps it as a reason or an argument."""
    seen: set[int] = set()
    while isinstance(fault, BaseException) and id(fault) not in seen:
        seen.add(id(fault))
        yield fault
        inner = (getattr(fault, "reason", None), *fault.args, fault.__cause__, fault.__context__)
        fault = next((one for one in inner if isinstance(one, BaseException)), None)


def without_secrets(url: str) -> str:
    """The address without user, password and query, fit for a log."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return re.sub(r"//[^/]*@", "//", re.split("[?#]", url)[0])
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
