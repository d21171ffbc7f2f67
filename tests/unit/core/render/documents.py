"""A document with every kind of block."""

from __future__ import annotations

from pytest_perfgate.model.metric import Bullets, Code, Column, Document, Paragraph, Picture, Section, Table
from pytest_perfgate.model.values import Dimension

TABLE = Table(
    columns=(
        Column(name="kernel"),
        Column(name="time", dimension=Dimension.TIME),
        Column(name="exposed", dimension=Dimension.TIME, unit="ns"),
        Column(name="overlap", dimension=Dimension.FRACTION),
    ),
    rows=(("gemm|<b>", 412_310.0, 412_310.0, 0.66), ("複製", 980.0, 0.0, None), ("third", 1.0, 1.0, 1.0)),
    limit=2,
)
DOCUMENT = Document(
    title="Report",
    subtitle="one kernel",
    blocks=(
        Paragraph(text="It says something."),
        Section(
            title="Numbers",
            blocks=(TABLE, Bullets(items=("a", "b"), ordered=True), Code(text="x = `1`", language="python")),
        ),
        Picture(svg="<svg/>", alt="A roofline"),
    ),
)
