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

KERNEL_LIBRARIES = ["//kernels/cuda:%s" % kernel for kernel in KERNELS]
