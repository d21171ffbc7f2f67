"""A report posted to an address as JSON: counts, what failed, and the summary as Markdown."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping

from pytest_perfgate.adapters.delivery.requests_session import sent, shown
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import RunReport


class Webhook:
    """Posts to the target, or to PERFGATE_WEBHOOK, which keeps the address out of logs."""

    name = "webhook"

    def __init__(self, comment: Callable[[RunReport], str], environment: Mapping[str, str] = os.environ) -> None:
        self._comment, self._environment = comment, environment

    def deliver(self, report: RunReport, target: str) -> str:
        url = target or self._environment.get("PERFGATE_WEBHOOK", "")
        if not url:
            raise PerfgateError(
                "delivery-failed", "no address was named", mend="write webhook:URL, or set PERFGATE_WEBHOOK"
            )
        text = self._comment(report)
        body = {
            "text": text,
            "failed": [str(case.key) for case in report.cases if case.effect is Effect.FAIL],
            "outcomes": dict(Counter(case.worst.value for case in report.cases)),
            "commit": report.environment.commit,
            "complete": report.complete,
        }
        sent("POST", url, headers={}, body=body)
        return f"posted to {shown(url)}"
