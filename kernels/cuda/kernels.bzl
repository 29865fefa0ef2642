"""The kernels, each a lockstep_cuda_library: what a program links that runs models on GPUs."""

KERNEL_LIBRARIES = [
    "//kernels/cuda:activation",
    "//kernels/cuda:argmax",
    "//kernels/cuda:attention",
    "//kernels/cuda:dense_product",
    "//kernels/cuda:gather",
    "//kernels/cuda:norm",
    "//kernels/cuda:quantized_product",
    "//kernels/cuda:rotary",
    "//kernels/cuda/experts:expert_choice",
    "//kernels/cuda/experts:expert_rows",
    "//kernels/cuda/sampling:adjust",
    "//kernels/cuda/sampling:logprobs",
    "//kernels/cuda/sampling:sample",
]
