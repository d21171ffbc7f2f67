"""One call of every kind of operator that has a model, as the profiler records it."""

from __future__ import annotations

from tests.kineto_file import host, kernel, launch

B, F, L = "c10::BFloat16", "float", "long int"
SLOT = 100
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
TENSILE = "Cijk_Alik_Bljk_SB_MT64x64x32"
WISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >"
X, W = ((8, 16, 32, 32), B), ((32, 16, 3, 3), B)
CHANNEL, ROWS = ((16,), B), ((64, 256), B)
HEADS = ((2, 8, 128, 64), B)
ONE = "[1, 1]"
MASK = "[True, True, True]"
CONV = ("[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")

CALLS = (
    ("aten::mm", (((128, 64), B), ((64, 256), B)), GEMM),
    ("aten::addmm", (((256,), B), ((128, 64), B), ((64, 256), B), "1", "1"), TENSILE),
    ("aten::bmm", (((4, 32, 16), B), ((4, 16, 8), B)), GEMM),
    ("aten::baddbmm", (((4, 32, 8), B), ((4, 32, 16), B), ((4, 16, 8), B), "1", "1"), GEMM),
    ("aten::linear", (((2, 64, 32), B), ((16, 32), B), ((16,), B)), GEMM),
    ("aten::_scaled_mm", (((64, 32), "c10::Float8_e4m3fn"), ((32, 16), "c10::Float8_e4m3fn")), GEMM),
    ("aten::mv", (((64, 32), F), ((32,), F)), "gemv"),
    ("aten::dot", (((64,), F), ((64,), F)), "dot"),
    ("aten::_grouped_mm", (((64, 32), B), ((4, 32, 16), B)), GEMM),
    ("aten::convolution", (X, W, ((32,), B), *CONV), "cudnn_conv"),
    ("aten::cudnn_convolution", (X, W, ONE, ONE, ONE, "1"), "nchwToNhwcKernel"),
    ("aten::miopen_convolution", (X, W, ((32,), B), ONE, ONE, ONE, "1"), "batched_transpose"),
    ("aten::convolution_backward", (((8, 32, 32, 32), B), X, W, "[32]", *CONV, MASK), "dgrad_conv"),
    ("aten::_scaled_dot_product_flash_attention", (HEADS, HEADS, HEADS, "0.", "True"), "flash_fwd_kernel"),
    ("aten::_scaled_dot_product_efficient_attention", (HEADS, HEADS, HEADS, None, "False", "0.", "True"), "fmha"),
    ("aten::scaled_dot_product_attention", (HEADS, HEADS, HEADS, None, "0.", "False"), "math"),
    ("FlashAttnFunc", (((2, 128, 8, 64), B),) * 3 + ("0.", "0.125", "True"), "flash_fwd_kernel"),
    ("aten::batch_norm", (X, CHANNEL, CHANNEL, CHANNEL, CHANNEL, "True", "0.1", "1e-05", "True"), "bn_fw_tr"),
    ("aten::layer_norm", (ROWS, "[256]", ((256,), B), ((256,), B), "1e-05", "True"), "layer_norm"),
    ("aten::native_layer_norm", (ROWS, "[256]", None, None, "1e-05"), "layer_norm"),
    ("aten::group_norm", (X, "4", CHANNEL, CHANNEL, "1e-05", "True"), "group_norm"),
    ("aten::native_group_norm", (X, CHANNEL, CHANNEL, "8", "16", "1024", "4", "1e-05"), "group_norm"),
    ("aten::instance_norm", (X, None, None, None, None, "True", "0.1", "1e-05", "True"), "instance_norm"),
    ("aten::_fused_rms_norm", (ROWS, "[256]", ((256,), B), "1e-05"), "rms_norm"),
    ("aten::native_batch_norm_backward",
     (X, X, CHANNEL, CHANNEL, CHANNEL, CHANNEL, CHANNEL, "True", "1e-05", MASK), "bn_bw"),
    ("aten::cudnn_batch_norm_backward", (X, X, CHANNEL, CHANNEL, CHANNEL, CHANNEL, CHANNEL, "1e-05"), "bn_bw"),
    ("aten::native_layer_norm_backward",
     (ROWS, ROWS, "[256]", ((64, 1), F), ((64, 1), F), ((256,), B), ((256,), B), MASK), "ln_bw"),
    ("aten::native_group_norm_backward",
     (X, X, ((8, 4), B), ((8, 4), B), CHANNEL, "8", "16", "1024", "4", MASK), "gn_bw"),
    ("aten::_fused_rms_norm_backward", (ROWS, ROWS, "[256]", ((64, 1), F), ((256,), B), "[True, True]"), "rms_bw"),
    ("aten::relu", (ROWS,), WISE),
    ("aten::silu", (ROWS,), WISE),
    ("aten::add", (ROWS, ((1, 256), B), "1"), WISE),
    ("aten::mul", (ROWS, "2"), WISE),
    ("aten::copy_", (((64, 256), B), ((64, 256), F), "False"), WISE),
    ("aten::fill_", (ROWS, "0"), WISE),
    ("aten::sum", (ROWS, "[0]", "False", None), REDUCE),
    ("aten::mean", (ROWS, None), REDUCE),
    ("aten::_softmax", (((4, 32, 32), B), "-1", "False"), "softmax"),
    ("aten::_softmax_backward_data", (((4, 32, 32), B), ((4, 32, 32), B), "-1", "15"), "softmax"),
    ("aten::embedding", (((1000, 64), B), ((8, 16), L), "-1", "False", "False"), "gather"),
    ("aten::cross_entropy_loss", (((64, 1000), F), ((64,), L)), "nll_loss"),
    ("triton_poi_fused__unsafe_view_mul_silu_2", (ROWS, ROWS, "16384"), "triton_poi_fused_mul_silu_2"),
    ("triton_red_fused_add_mean_0", (ROWS, ((64,), B), "64", "256"), "triton_red_fused_add_mean_0"),
    ("mine::own", (ROWS,), "odd"),
)  # fmt: skip


def contiguous(shape):
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return steps[::-1]


def recorded(arguments):
    """The four lists that the profiler writes."""
    tensors = [isinstance(argument, tuple) for argument in arguments]
    return {
        "Input Dims": [list(argument[0]) if t else [] for argument, t in zip(arguments, tensors)],
        "Input Strides": [contiguous(argument[0]) if t else [] for argument, t in zip(arguments, tensors)],
        "Input type": [argument[1] if t else kind(argument) for argument, t in zip(arguments, tensors)],
        "Concrete Inputs": ["" if t or argument is None else argument for argument, t in zip(arguments, tensors)],
    }


def kind(argument):
    return "" if argument is None else "ScalarList" if argument.startswith("[") else "Scalar"


def operation(number, name, arguments, kernel_name, length=8):
    """One operator, its launch, its kernel."""
    at = SLOT * number
    return [
        host(name, at, 40, **recorded(arguments), **{"Sequence number": number, "Ev Idx": number}),
        launch(at + 5, number + 1),
        {"ph": "s", "id": number + 1, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": at + 5},
        kernel(kernel_name, at + 50, length, correlation=number + 1, **{"External id": number}),
        {"ph": "f", "id": number + 1, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": at + 50, "bp": "e"},
    ]


def zoo():
    """Every operator once."""
    return [event for number, call in enumerate(CALLS) for event in operation(number, *call)]
