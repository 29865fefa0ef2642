"""Every C++ target of Lockstep goes through these macros, so policy lives once."""

load("//bazel:grpc.bzl", "cc_grpc_library")

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-sign-compare",
    # gcc 12 warns inside its own AVX-512 headers and libstdc++ when it inlines.
    "-Wno-maybe-uninitialized",
    "-Wno-unknown-warning-option",
]

# A fused multiply-add changes bits; the determinism contract allows it only
# where the source says std::fma or names the instruction.
_CONTRACT = ["-ffp-contract=off"]

_COPTS = _WARNINGS + _CONTRACT

def lockstep_cc_library(name, copts = [], features = [], **kwargs):
    """A library: one .h/.cc pair, private unless it says otherwise."""
    native.cc_library(
        name = name,
        copts = _COPTS + copts,
        features = ["layering_check"] + features,
        **kwargs
    )

def lockstep_cc_binary(name, copts = [], features = [], **kwargs):
    native.cc_binary(
        name = name,
        copts = _COPTS + copts,
        features = ["layering_check"] + features,
        **kwargs
    )

def lockstep_cc_test(name, size = "small", copts = [], features = [], deps = [], **kwargs):
    """A GoogleTest; its main comes along. Tests take at most two cores."""
    native.cc_test(
        name = name,
        size = size,
        copts = _COPTS + copts,
        features = ["layering_check"] + features,
        deps = deps + ["//third_party/system:gtest_main"],
        **kwargs
    )

def lockstep_cc_fuzz_test(name, corpus, copts = [], deps = [], **kwargs):
    """A LLVMFuzzerTestOneInput: libFuzzer with --config=fuzz, else a short test.

    The test replays the corpus and then runs seeded mutations of it for a few
    seconds; it prints the seed.

    Args:
      name: ends in _fuzz_test.
      corpus: labels of the checked-in inputs.
      copts: passed on.
      deps: passed on.
      **kwargs: passed on.
    """
    native.cc_test(
        name = name,
        size = "small",
        args = ["$(locations %s)" % label for label in corpus],
        copts = _COPTS + copts,
        data = corpus,
        linkopts = select({
            "//bazel/config:libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = deps + select({
            "//bazel/config:libfuzzer": [],
            "//conditions:default": ["//tests/testing:fuzz_main"],
        }),
        **kwargs
    )

def lockstep_grpc_library(name, srcs, deps = [], services = True, **kwargs):
    """The C++ messages, and services, of .proto files."""
    cc_grpc_library(
        name = name,
        srcs = srcs,
        deps = deps,
        services = services,
        **kwargs
    )

def lockstep_sh_test(name, srcs, size = "small", **kwargs):
    native.sh_test(name = name, srcs = srcs, size = size, **kwargs)
