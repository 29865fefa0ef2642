"""Kernels for GPUs: a toolkit from pinned wheels, and nvcc as a rule."""

load("//bazel:defs.bzl", "lockstep_cc_library", "lockstep_cc_test")

# --- The toolkit ------------------------------------------------------------

def _cuda_toolkit_impl(repository_ctx):
    home = repository_ctx.os.environ.get("CUDA_HOME")
    if home:
        for folder in ["bin", "include", "nvvm"]:
            repository_ctx.symlink(home + "/" + folder, folder)
        lib = repository_ctx.path(home + "/lib64")
        repository_ctx.symlink(lib if lib.exists else home + "/lib", "lib")
    else:
        result = repository_ctx.execute([
            repository_ctx.path(repository_ctx.attr.script),
            repository_ctx.path(repository_ctx.attr.requirements),
            repository_ctx.path(""),
        ], timeout = 1800)
        if result.return_code != 0:
            fail("the CUDA toolkit:\n" + result.stderr)
    repository_ctx.symlink(repository_ctx.attr.build_file, "BUILD.bazel")

cuda_toolkit = repository_rule(
    doc = "nvcc and CUDA's headers. Fetched when a target of it is asked for: with --config=cuda.",
    implementation = _cuda_toolkit_impl,
    attrs = {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "requirements": attr.label(mandatory = True, allow_single_file = True),
        "script": attr.label(mandatory = True, allow_single_file = True),
    },
    environ = [
        "CUDA_HOME",
        "CUDA_WHEELS",
        "HOME",
        "PATH",
    ],
)

# --- Objects ----------------------------------------------------------------

# Ampere, Ada, Hopper with its own instructions.
_ARCHITECTURES = ["80", "89", "90a"]

def _nvcc_object_impl(ctx):
    toolchain = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo]
    headers = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    arguments = ctx.actions.args()
    arguments.add_all(["-x", "cu", "-std=c++20", "-O3"])
    arguments.add_all(["-ccbin", toolchain.compiler_executable])
    arguments.add_all(["-Xcompiler", "-fPIC", "-Xcompiler", "-Wall"])
    arguments.add_all(["-Werror", "all-warnings"])

    # Else the names of temporary files, with a process id, are in the object.
    arguments.add("--objdir-as-tempdir")
    for architecture in _ARCHITECTURES:
        arguments.add("-gencode")
        arguments.add("arch=compute_{0},code=sm_{0}".format(architecture))
    arguments.add_all(depset(["."], transitive = [headers.quote_includes]), before_each = "-I")
    arguments.add_all(headers.defines, before_each = "-D")
    arguments.add_all(["-c", ctx.file.src, "-o", ctx.outputs.object])
    ctx.actions.run(
        executable = ctx.executable._nvcc,
        arguments = [arguments],
        inputs = depset(
            [ctx.file.src] + ctx.files.hdrs,
            transitive = [headers.headers, ctx.attr._toolkit.files, toolchain.all_files],
        ),
        outputs = [ctx.outputs.object],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s with nvcc" % ctx.file.src.short_path,
        use_default_shell_env = True,  # PATH, for the host compiler's own programs
    )

_nvcc_object = rule(
    implementation = _nvcc_object_impl,
    attrs = {
        "src": attr.label(mandatory = True, allow_single_file = [".cu.cc"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "object": attr.output(mandatory = True),
        "_nvcc": attr.label(
            default = "@cuda//:bin/nvcc",
            allow_single_file = True,
            cfg = "host",
            executable = True,
        ),
        "_toolkit": attr.label(default = "@cuda//:toolkit"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def lockstep_cuda_library(name, hdrs, private_hdrs = [], deps = [], private_deps = [], **kwargs):
    """A kernel, NAME.cu.cc, built twice.

    NAME runs it on the emulation, for tests. NAME_cuda is nvcc's object of it
    with the launch on GPUs; tagged manual, as it asks for the toolkit. Link one
    of them into a program, never both. NAME_launch is the header alone, for
    libraries that launch it and leave to the program where it runs.

    Args:
      name: of the source, and of the targets.
      hdrs: for callers; they name no CUDA.
      private_hdrs: for the kernel alone.
      deps: of the header.
      private_deps: of the kernel alone.
      **kwargs: passed on to all.
    """
    lockstep_cc_library(
        name = name + "_launch",
        hdrs = hdrs,
        deps = deps,
        **kwargs
    )
    lockstep_cc_library(
        name = name,
        srcs = [name + ".cu.cc"] + private_hdrs,
        hdrs = hdrs,
        copts = ["-Wno-unknown-pragmas"],  # unroll, which gcc spells otherwise
        deps = deps + private_deps,
        alwayslink = True,  # whoever launches it, and names only its header
        **kwargs
    )
    _nvcc_object(
        name = name + "_nvcc",
        src = name + ".cu.cc",
        hdrs = hdrs + private_hdrs,
        object = name + ".cuda.o",
        tags = ["manual"],
        deps = deps + private_deps,
    )
    lockstep_cc_library(
        name = name + "_cuda",
        srcs = [name + ".cuda.o"],
        hdrs = hdrs,
        linkstatic = True,  # as the runtime is
        tags = ["manual"],
        deps = deps + ["@cuda//:cudart"],
        alwayslink = True,
        **kwargs
    )

def lockstep_cuda_test(name, kernels, deps, emulated_deps = [], gpu_deps = [], **kwargs):
    """A test of kernels, NAME.cc, built twice as they are.

    NAME runs them on the emulation. NAME_gpu, tagged manual, runs them on a GPU,
    and fails where there is none.

    Args:
      name: of the source, and of the targets.
      kernels: lockstep_cuda_library targets.
      deps: of either.
      emulated_deps: of NAME.
      gpu_deps: of NAME_gpu.
      **kwargs: passed on to both.
    """
    lockstep_cc_test(
        name = name,
        srcs = [name + ".cc"],
        deps = deps + kernels + emulated_deps + [
            "//kernels/cuda:kernel_run",
            "//kernels/cuda:test_device_emulated",
        ],
        **kwargs
    )
    lockstep_cc_test(
        name = name + "_gpu",
        srcs = [name + ".cc"],
        linkstatic = True,
        tags = ["manual"],
        deps = deps + [kernel + "_cuda" for kernel in kernels] + gpu_deps + [
            "//kernels/cuda:kernel_run",
            "//kernels/cuda:test_device_gpu",
        ],
        **kwargs
    )
