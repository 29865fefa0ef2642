"""The kernels, each a lockstep_cuda_library: what a program links that runs models on GPUs."""

KERNELS = [
    "activation",
    "argmax",
    "attention",
    "dense_product",
    "gather",
    "norm",
    "quantized_product",
    "rotary",
]

SAMPLING_KERNELS = [
    "adjust",
    "logprobs",
    "sample",
]

SAMPLING_LIBRARIES = ["//kernels/cuda/sampling:%s" % kernel for kernel in SAMPLING_KERNELS]

KERNEL_LIBRARIES = ["//kernels/cuda:%s" % kernel for kernel in KERNELS] + SAMPLING_LIBRARIES
