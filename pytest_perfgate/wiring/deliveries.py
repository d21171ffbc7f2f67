"""Places that a report can be taken to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_perfgate.wiring import joined, own_host


def deliveries(root: Path) -> Sequence[Any]:
    """Places a report can be taken to, by plugins and by us."""
    return joined(own_host(root).hook.pytest_perfgate_deliveries())


def json_file() -> Any:
    from pytest_perfgate.adapters.delivery.files import File
    from pytest_perfgate.adapters.stores.records import render_record

    return File("json", render_record)


def html_file() -> Any:
    from pytest_perfgate.adapters.delivery.files import File
    from pytest_perfgate.core.render.html import render_html
    from pytest_perfgate.core.render.report import run_document

    return File("html", lambda report: render_html(run_document(report)).encode("utf-8"))


def markdown_file() -> Any:
    from pytest_perfgate.adapters.delivery.files import File
    from pytest_perfgate.core.render.comment import render_comment

    return File("markdown", lambda report: render_comment(report).encode("utf-8"))
