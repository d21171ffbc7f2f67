"""Two steps of a job of several ranks, as the profiler records them."""

from __future__ import annotations

from tests.kineto_file import host, kernel, launch, written

PEAKS = {"peak": "fp32=10TFLOPS", "bandwidth": "1TB/s"}


def shaped(*shapes):
    strides = [[shape[-1], 1] for shape in shapes]
    return {
        "Input Dims": list(shapes),
        "Input type": ["float"] * len(shapes),
        "Input Strides": strides,
        "Concrete Inputs": [""] * len(shapes),
    }


def step_events(number, at, late=0):
    """One step of 100 µs: a product, a recomputed one, a copy, a fill, and an all-reduce that half overlaps."""
    c = 10 * number
    message = {
        "Collective name": "allreduce",
        "Process Group Name": "0",
        "Group size": 2,
        "In msg nelems": 1000,
        "Out msg nelems": 1000,
        "dtype": "Float",
    }
    return [
        host(f"ProfilerStep#{number}", at, 100, cat="user_annotation"),
        host("aten::mm", at + 1, 9, **shaped([64, 64], [64, 64])),
        launch(at + 2, c + 1),
        kernel("sgemm", at + 10, 20, correlation=c + 1),
        host("<checkpoint>: recompute_fn", at + 12, 10, cat="python_function"),
        host("aten::mm", at + 13, 5, **shaped([64, 64], [64, 64])),
        launch(at + 14, c + 2),
        kernel("sgemm", at + 30, 5, correlation=c + 2),
        host("record_param_comms", at + 23, 4, **message),
        launch(at + 24, c + 3),
        kernel("ncclDevKernel_AllReduce_Sum", at + 32 + late, 18 - late, correlation=c + 3, stream=9, **message),
        launch(at + 28, c + 4),
        kernel("Memcpy HtoD", at + 60, 4, correlation=c + 4, cat="gpu_memcpy", bytes=4096),
        launch(at + 30, c + 5),
        kernel("Memset", at + 70, 4, correlation=c + 5, cat="gpu_memset"),
        host("mine::own", at + 32, 3),
        launch(at + 33, c + 6),
        kernel("odd", at + 80, 10, correlation=c + 6),
    ]


def job(folder, ranks=2):
    paths = []
    for rank in range(ranks):
        events = [event for n in (1, 2) for event in step_events(n, 200 * n, late=3 * rank)]
        info = {"rank": rank, "world_size": ranks, "backend": "nccl"}
        paths.append(written(folder / f"rank{rank}.json", events, distributedInfo=info))
    return paths
