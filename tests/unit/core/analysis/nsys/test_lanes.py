from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis import intervals as communication
from pytest_perfgate.core.analysis.nsys.lanes import by_namespace, qualified
from pytest_perfgate.core.analysis.nsys.setup import reading

NAMES = {
    1: "void deep_ep::internode::dispatch<(int)8, nullptr>(int4 *, float *)",
    2: "void deep_ep::intranode::cached_notify_combine(void **)",
    3: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    4: "void at::native::<unnamed>::elementwise_kernel<c10d::nccl::Reduce>(int)",
    5: "void mine::exchange::kernel<int>(nccl::Thing *)",
    6: "void cub::DispatchReduceByKey<int>::dispatch(int)",
}


def test_what_a_namespace_says_counts_and_arguments_do_not() -> None:
    assert by_namespace(NAMES, reading({})) == (1, 2)
    assert by_namespace(NAMES, reading({"communication": "exchange::"})) == (1, 2, 5)
    assert by_namespace(NAMES, reading({"compat": "pithtrain"})) == ()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (NAMES[1], "void deep_ep::internode::dispatch"),
        ("a::(anonymous namespace)::f<b<(int)3>, c(*)(d)>(e<f>)", "a::::f"),
        ("odd < name", "odd < name"),
        ("", ""),
    ],
)
def test_a_name_without_what_it_is_made_with(name: str, wanted: str) -> None:
    assert qualified(name) == wanted


@pytest.mark.parametrize(
    "name",
    ["ncclKernel", "RCCL_x", "cross_device_reduce_1stage", "deep_ep::x::combine", "dpsk::ep::notify", "nvshmemi_put",
     "multimem_all_gather"],
)  # fmt: skip
def test_every_known_pattern_has_its_mark(name: str) -> None:
    assert communication.communication().search(name)
    assert any(mark in name.lower() for mark in communication.MARKS)
