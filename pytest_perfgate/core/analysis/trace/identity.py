"""What a kernel's name tells: its library and its tile."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.model.document import Column, Table
from pytest_perfgate.model.quantity import Dimension

_LIBRARIES = (
    ("flash attention", r"flash_(?:fwd|bwd|attn)|pytorch_flash|fmha_"),
    ("cuDNN", r"cudnn"),
    ("cuBLAS", r"cublas|_xmma_gemm_|s\d+gemm_(?:bf|f)16|sgemm_|dgemm_|gemv2|gemmk1"),
    ("CUTLASS", r"cutlass"),
    ("Tensile (hipBLASLt, rocBLAS)", r"^Cijk_"),
    ("MIOpen", r"MIOpen|^miopen|igemm_|batched_transpose"),
    ("Composable Kernel", r"\bck::|ck_tile"),
    ("Triton", r"^triton_|_kernel_\d+d\d+"),
    ("NCCL", r"(?i:nccl|rccl)"),
    ("PyTorch", r"at::native|at_cuda_detail|cub::"),
)
_SHORT = 72
_AROUND = re.compile(r"^void |\(anonymous namespace\)::|at::native::|\([^()]*\)$")
_TILES = (
    re.compile(r"tilesize(\d+x\d+x\d+)"),
    re.compile(r"_MT(\d+x\d+x\d+)"),
    re.compile(r"_(\d{2,3}x\d{2,3}_\d{2,3}x\d+)_"),
    re.compile(r"_(\d{2,3}x\d{2,3}(?:x\d+)?)_"),
)


def library(name: str) -> str:
    """Whose kernel it is; empty where the name does not say."""
    return next((word for word, pattern in _LIBRARIES if re.search(pattern, name)), "")


def tile(name: str) -> str:
    """The tile a product kernel works in; empty where the name does not say."""
    for pattern in _TILES:
        if found := pattern.search(name):
            return found.group(1)
    return ""


def short_name(name: str) -> str:
    """A kernel's name without what every such name has; its parameters and its far end left out."""
    plain = _AROUND.sub("", name)
    return plain if len(plain) <= _SHORT else f"{plain[: _SHORT - 1]}\N{HORIZONTAL ELLIPSIS}"


def selection_table(rows: Sequence[OperatorRow]) -> Table:
    """Operators that run on different kernels for different shapes."""
    by_name: dict[str, list[OperatorRow]] = defaultdict(list)
    for row in rows:
        by_name[row.name].append(row)
    listed = []
    for name, group in by_name.items():
        if len({row.kernel for row in group}) < 2:
            continue
        listed += [
            (name, _shapes(row), library(row.kernel), tile(row.kernel), row.kernel, row.count, row.total)
            for row in group
        ]
    return Table(
        columns=(
            Column(name="operator"),
            Column(name="shapes"),
            Column(name="library"),
            Column(name="tile"),
            Column(name="longest kernel"),
            Column(name="calls", dimension=Dimension.COUNT),
            Column(name="GPU time", dimension=Dimension.TIME),
        ),
        rows=tuple(listed),
        note="Library and tile are read from the kernel's name; empty where it does not tell.",
    )


def _shapes(row: OperatorRow) -> str:
    return " ".join("×".join(map(str, row.call.dims[at])) or "scalar" for at in row.call.tensors())
