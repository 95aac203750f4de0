"""Forty of ONNX's node tests, through both engines: `bench/operators.py` in small."""

from __future__ import annotations

import importlib

import pytest

from pyapp.chromium import BrowserError, BrowserOptions

from .conftest import ROOT

WASM, WEBGPU = "wasm-1", "webgpu-stock"

EXPECTED = {
    "test_abs": ("pass", "pass", "gpu"),
    "test_add_bcast": ("pass", "pass", "gpu"),
    "test_argmax_negative_axis_keepdims_example": ("pass", "pass", "gpu"),
    "test_averagepool_2d_precomputed_pads": ("pass", "pass", "gpu"),
    "test_batchnorm_example": ("pass", "pass", "gpu"),
    "test_clip_default_inbounds": ("pass", "pass", "gpu"),
    "test_concat_2d_axis_1": ("pass", "pass", "gpu"),
    "test_basic_conv_with_padding": ("pass", "pass", "gpu"),
    "test_div_uint32": ("pass", "pass", "gpu"),
    "test_expand_dim_changed": ("pass", "pass", "gpu"),
    "test_gather_negative_indices": ("pass", "pass", "gpu"),
    "test_gelu_tanh_1": ("pass", "pass", "gpu"),
    "test_gemm_all_attributes": ("pass", "pass", "gpu"),
    "test_instancenorm_example": ("pass", "pass", "gpu"),
    "test_layer_normalization_2d_axis0": ("pass", "pass", "gpu"),
    "test_matmul_4d": ("pass", "pass", "gpu"),
    "test_pow_types_float32_int32": ("pass", "pass", "gpu"),
    "test_range_int32_type_negative_delta": ("pass", "pass", "gpu"),
    "test_reduce_mean_keepdims_random": ("pass", "pass", "gpu"),
    "test_reshape_zero_dim": ("pass", "pass", "gpu"),
    "test_resize_upsample_scales_nearest": ("pass", "pass", "gpu"),
    "test_rotary_embedding": ("pass", "pass", "gpu"),
    "test_scatternd_add": ("pass", "pass", "gpu"),
    "test_sigmoid": ("pass", "pass", "gpu"),
    "test_slice_neg_steps": ("pass", "pass", "gpu"),
    "test_softmax_axis_1": ("pass", "pass", "gpu"),
    "test_split_zero_size_splits_opset13": ("pass", "pass", "gpu"),
    "test_tile": ("pass", "pass", "gpu"),
    "test_top_k_smallest": ("pass", "pass", "gpu"),
    "test_where_example": ("pass", "pass", "gpu"),
    "test_add_int8": ("pass", "pass", "cpu"),
    "test_attention_4d_gqa": ("pass", "pass", "cpu"),
    "test_lstm_bidirectional": ("pass", "pass", "cpu"),
    "test_matmulinteger": ("pass", "pass", "cpu"),
    "test_maxpool_with_argmax_2d_precomputed_pads": ("pass", "pass", "cpu"),
    "test_nonzero_example": ("pass", "pass", "cpu"),
    "test_not_2d": ("pass", "pass", "cpu"),
    "test_add_int16": ("pass", "unsupported", ""),
    "test_resize_downsample_scales_linear_antialias": ("pass", "unsupported", ""),
    "test_top_k_uint64": ("unsupported", "unsupported", ""),
}
"""By test: its status on WASM, its status on WebGPU, and where that ran the operator."""


@pytest.fixture(scope="module")
def operators():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        yield importlib.import_module("operators")


@pytest.fixture(scope="module")
def found(operators, dist):
    tests = operators.collect()
    try:
        with operators.Bench(BrowserOptions(gpu="software")) as bench:
            return bench.measure([tests[name] for name in EXPECTED], again=False)
    except BrowserError as error:
        pytest.fail(f"{error}; `make test` installs Chromium where it is missing", pytrace=False)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_operator_is_as_right_as_it_was_and_runs_where_it_did(operators, found, name):
    wasm, webgpu = found[name][WASM], found[name][WEBGPU]
    place = operators.place(operators.collect()[name], webgpu)
    assert (wasm["status"], webgpu["status"], place) == EXPECTED[name], found[name]


def test_no_test_broke_its_worker(found):
    assert [name for name, ones in found.items() for one in ones.values() if "tries" in one] == []
