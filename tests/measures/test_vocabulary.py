"""Names of several vendors, years and habits mean what they should."""

from __future__ import annotations

import pytest

from stallwise.doctor.measures._vocabulary import (
    Host,
    Work,
    few_rows,
    matrix_precision,
    names_a_step,
    names_an_iteration,
    narrow_loads,
    range_meaning,
    runtime_meaning,
    work_of_kernel,
    work_of_operator,
)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Host.LOADER),
        ("stage::data_wait", Host.LOADER),
        ("## data ##", Host.LOADER),
        ("torch/utils/data/dataloader.py(633): __next__", Host.LOADER),
        ("## all2all_data:lengths ##", Host.NONE),
        ("my/project.py(12): load_data", Host.NONE),
        ("save_checkpoint", Host.CHECKPOINT),
        ("stage::checkpoint", Host.CHECKPOINT),
        ("activation_checkpoint", Host.NONE),
        ("torch/utils/checkpoint.py(451): forward", Host.NONE),
        ("torch/serialization.py(800): save", Host.CHECKPOINT),
        ("autograd::engine::evaluate_function: MmBackward0", Host.BACKWARD),
        ("stage::backward", Host.BACKWARD),
        ("Optimizer.step#AdamW.step", Host.OPTIMIZER),
        ("stage::optimizer", Host.OPTIMIZER),
        ("Optimizer.zero_grad#AdamW.zero_grad", Host.NONE),
        ("validation", Host.EVALUATION),
        ("stage::h2d", Host.TRANSFER),
        ("<built-in method collect of module gc>", Host.GC),
        ("Torch-Compiled Region: 0/1", Host.NONE),
        ("aten::mm", Host.NONE),
    ],
)
def test_ranges_and_frames(name: str, meaning: Host) -> None:
    assert range_meaning(name) is meaning


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("cudaLaunchKernel", Host.LAUNCH),
        ("cuLaunchKernelEx", Host.LAUNCH),
        ("hipExtModuleLaunchKernel", Host.LAUNCH),
        ("cudaGraphLaunch", Host.LAUNCH),
        ("cudaStreamSynchronize", Host.SYNC),
        ("hipDeviceSynchronize", Host.SYNC),
        ("hipMemcpyWithStream", Host.SYNC),
        ("cudaMemcpyAsync", Host.COPY_CALL),
        ("hipFree", Host.ALLOC),
        ("cudaMalloc", Host.ALLOC),
        ("cudaStreamWaitEvent", Host.NONE),
        ("cudaEventRecord", Host.NONE),
    ],
)
def test_driver_calls(name: str, meaning: Host) -> None:
    assert runtime_meaning(name) is meaning


@pytest.mark.parametrize(
    ("kernel", "work", "precision"),
    [
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", Work.GEMM, "bf16"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256", Work.GEMM, "bf16"),
        ("ampere_sgemm_128x64_tn", Work.GEMM, "fp32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", Work.GEMM, "tf32"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_ffma", Work.GEMM, "fp32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>", Work.GEMM, "fp64"),
        ("volta_h884gemm_256x64_ldg8_nn", Work.GEMM, "fp16"),
        ("igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x32", Work.CONV, "bf16"),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", Work.CONV, "fp32"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", Work.ATTENTION, "fp16"),
        ("fmha_cutlassF_f32_aligned_64x128_rf_sm80", Work.ATTENTION, "fp32"),
    ],
)
def test_matrix_kernels(kernel: str, work: Work, precision: str) -> None:
    assert work_of_kernel(kernel) is work
    assert matrix_precision(kernel) == precision


@pytest.mark.parametrize(
    ("kernel", "work"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", Work.COMMUNICATION),
        ("vllm::cross_device_reduce_1stage", Work.COMMUNICATION),
        ("triton_poi_fused_add_mul_silu_1", Work.FUSED),
        ("loop_add_fusion_2", Work.FUSED),
        ("input_reduce_fusion", Work.FUSED),
        ("gemm_fusion_dot_general_1", Work.GEMM),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", Work.NORM),
        ("vllm::fused_add_rms_norm_kernel<_typeConvert>", Work.NORM),
        ("batched_transpose_32x32_half", Work.LAYOUT),
        ("vllm::rotary_embedding_kernel", Work.ELEMENTWISE),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", Work.ELEMENTWISE),
    ],
)
def test_other_kernels(kernel: str, work: Work) -> None:
    assert work_of_kernel(kernel) is work


@pytest.mark.parametrize(
    ("operator", "work"),
    [
        ("aten::addmm", Work.GEMM),
        ("aten::convolution_backward", Work.CONV),
        ("aten::_scaled_dot_product_flash_attention", Work.ATTENTION),
        ("aten::_log_softmax", Work.LOSS),
        ("aten::_softmax", Work.SOFTMAX),
        ("aten::sin", Work.ELEMENTWISE),
        ("aten::_fused_adamw_", Work.OPTIMIZER),
        ("aten::copy_", Work.COPY_OP),
        ("Torch-Compiled Region: 0/0", None),
    ],
)
def test_operators(operator: str, work: Work | None) -> None:
    assert work_of_operator(operator) is work


def test_steps_and_iterations() -> None:
    assert (
        names_a_step("ProfilerStep#12") and names_a_step("train_step") and not names_a_step("Optimizer.step#SGD.step")
    )
    assert names_an_iteration("execute_32_context_0(sq0sk0)_generation_32(sq32)") and names_an_iteration(
        "step[DECODE bs=32]"
    )


def test_narrow_loads_are_those_of_tensor_kernels() -> None:
    assert narrow_loads("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nt_align2")
    assert not narrow_loads("cutlass_80_simt_sgemm_256x128_8x4_nt_align1")
    assert not narrow_loads("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nt_align8")


def test_kernels_for_few_rows() -> None:
    assert few_rows("void gemv2T_kernel_val<int, int, __nv_bfloat16>") and few_rows(
        "nvjet_sm103_tst_512x8_64x3_2x1_v_bz_NNT"
    )
    assert not few_rows("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT")
