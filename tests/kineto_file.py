"""Small traces made by hand, with a truth that can be counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from pytest_perfgate.adapters.readers.kineto import read_kineto
from pytest_perfgate.core.analysis.trace.survey import AnalysisSettings, survey


def kernel(name, start, length, *, correlation=0, stream=7, device=0, cat="kernel", **args):
    fields = {"device": device, "stream": stream, "correlation": correlation, **args}
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": device,
        "tid": stream,
        "ts": start,
        "dur": length,
        "args": fields,
    }


def host(name, start, length, *, cat="cpu_op", pid=1, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args}


def launch(start, correlation, **more):
    return host("cudaLaunchKernel", start, 1, cat="cuda_runtime", correlation=correlation, **more)


def document(events, **header):
    return {"schemaVersion": 1, "traceEvents": list(events), **header}


def written(path: Path, events, *, indent=None, **header) -> Path:
    text = json.dumps(document(events, **header), indent=indent).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def surveyed(path: Path, events, settings=None, **header):
    (trace,) = read_kineto(written(path, events, **header))
    return survey(trace, settings or AnalysisSettings())
