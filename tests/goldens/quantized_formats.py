"""Hugging Face's formats of quantized weights: written, and read back.

A format takes a matrix [out, in] to the tensors of its module. The other way,
`weights`, is written from what the libraries that define the format compute
when they dequantize, and shares nothing with `tensors`.
"""

import dataclasses

import torch

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def rounded(matrix, bits, group, symmetric, scale_dtype):
    """Integers from 0 on, and zeros and scales [out, groups], rounded to nearest."""
    out, cols = matrix.shape
    blocks = matrix.reshape(out, -1, min(group, cols))
    most = 2**bits - 1
    if symmetric:
        scales = blocks.abs().amax(-1) / (most // 2)
        zeros = torch.full_like(scales, 2 ** (bits - 1))
    else:
        low, high = blocks.amin(-1).clamp(max=0), blocks.amax(-1).clamp(min=0)
        scales = (high - low) / most
        zeros = (-low / scales).round()
    scales = scales.to(scale_dtype)
    quants = (blocks / scales.float()[..., None]).round() + zeros[..., None]
    quants = quants.clamp(0, most).reshape(out, cols)
    return quants.long(), zeros.long(), scales


def packed(integers, bits, dim):
    """Neighbours along `dim` as int32, the first one in the low bits."""
    lanes = 32 // bits
    integers = integers.movedim(dim, -1)
    integers = torch.nn.functional.pad(integers, (0, -integers.shape[-1] % lanes))
    words = integers.reshape(*integers.shape[:-1], -1, lanes)
    words = (words << (bits * torch.arange(lanes))).sum(-1)
    words = torch.where(words >= 2**31, words - 2**32, words).int()
    return words.movedim(-1, dim).contiguous()


def unpacked(words, bits, dim):
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    words = words.movedim(dim, -1).unsqueeze(-1)
    integers = torch.bitwise_right_shift(words, shifts) & (2**bits - 1)
    return integers.flatten(-2).movedim(-1, dim)


@dataclasses.dataclass(frozen=True)
class Gptq:
    bits: int = 4
    group: int = 128
    symmetric: bool = True
    act_order: bool = False
    version: int = 1
    lm_head: bool = False
    zero_biases: bool = False

    def config(self):
        return {
            "quant_method": "gptq",
            "bits": self.bits,
            "group_size": self.group,
            "desc_act": self.act_order,
            "sym": self.symmetric,
            "damp_percent": 0.01,
            "true_sequential": True,
            "lm_head": self.lm_head,
        } | ({"checkpoint_format": "gptq_v2"} if self.version == 2 else {})

    def tensors(self, matrix):
        out, cols = matrix.shape
        group = cols if self.group == -1 else min(self.group, cols)
        order = torch.arange(cols)
        if self.act_order:
            order = torch.randperm(cols, generator=torch.Generator().manual_seed(cols))
        # Column order[i] is quantized as the i-th.
        quants, zeros, scales = rounded(matrix[:, order], self.bits, group, self.symmetric, torch.float16)
        place = torch.argsort(order)
        least = 1 if self.version == 1 else 0
        zeros = zeros.clamp(min=least) - least
        tensors = {
            "qweight": packed(quants[:, place].T, self.bits, 0),
            "qzeros": packed(zeros.T, self.bits, 1),
            "scales": scales.T.contiguous(),
            "g_idx": (place // group).int(),
        }
        if self.zero_biases:
            tensors["bias"] = torch.zeros(out, dtype=torch.float16)
        return tensors

    def weights(self, tensors):
        zeros = unpacked(tensors["qzeros"], self.bits, 1)[:, : tensors["scales"].shape[1]]
        if self.version == 1:
            zeros = (zeros + 1) & (2**self.bits - 1)
        groups = tensors["g_idx"].long()
        quants = unpacked(tensors["qweight"], self.bits, 0)
        return (tensors["scales"].float()[groups] * (quants - zeros[groups])).T


@dataclasses.dataclass(frozen=True)
class Awq:
    group: int = 64

    def config(self):
        return {
            "quant_method": "awq",
            "bits": 4,
            "group_size": self.group,
            "zero_point": True,
            "version": "gemm",
            "modules_to_not_convert": None,
        }

    def tensors(self, matrix):
        quants, zeros, scales = rounded(matrix, 4, self.group, False, torch.float16)

        def interleaved(integers):
            return integers.reshape(integers.shape[0], -1, 8)[..., AWQ_ORDER].flatten(1)

        return {
            "qweight": packed(interleaved(quants.T), 4, 1),
            "qzeros": packed(interleaved(zeros.T), 4, 1),
            "scales": scales.T.contiguous(),
        }

    def weights(self, tensors):
        def in_order(words):
            integers = unpacked(words, 4, 1)
            result = torch.empty_like(integers)
            for lane, neighbour in enumerate(AWQ_ORDER):
                result[:, neighbour::8] = integers[:, lane::8]
            return result

        quants, zeros = in_order(tensors["qweight"]), in_order(tensors["qzeros"])
        each = quants.shape[0] // zeros.shape[0]
        zeros = zeros.repeat_interleave(each, 0)
        scales = tensors["scales"].float().repeat_interleave(each, 0)
        return ((quants - zeros) * scales).T


@dataclasses.dataclass(frozen=True)
class Fp8:
    """Scales of blocks, or of a whole matrix, as AutoFP8 had them."""

    block: tuple = (128, 128)
    scale_dtype: torch.dtype = torch.float32

    def config(self):
        config = {"quant_method": "fp8", "activation_scheme": "dynamic"}
        if self.block is None:
            return config | {"activation_scheme": "static", "ignored_layers": ["lm_head"]}
        return config | {"fmt": "e4m3", "weight_block_size": list(self.block)}

    def tensors(self, matrix):
        rows, cols = self.block or matrix.shape
        scales = torch.stack(
            [
                torch.stack([block.abs().max() / 448 for block in band.split(cols, 1)])
                for band in matrix.split(rows, 0)
            ]
        ).to(self.scale_dtype)
        spread = scales.float().repeat_interleave(rows, 0).repeat_interleave(cols, 1)
        spread = spread[: matrix.shape[0], : matrix.shape[1]]
        tensors = {"weight": (matrix / spread).clamp(-448, 448).to(torch.float8_e4m3fn)}
        if self.block is None:
            return tensors | {"weight_scale": scales[0, 0], "input_scale": torch.tensor(0.5)}
        return tensors | {"weight_scale_inv": scales}

    def weights(self, tensors):
        weights = tensors["weight"].float()
        if self.block is None:
            return weights * tensors["weight_scale"]
        scales = tensors["weight_scale_inv"].float()
        rows, cols = torch.meshgrid(*(torch.arange(n) for n in weights.shape), indexing="ij")
        return weights * scales[rows // self.block[0], cols // self.block[1]]


@dataclasses.dataclass(frozen=True)
class CompressedTensors:
    """`kind`: "int4" packed, "int8" or "float8"."""

    kind: str = "int4"
    group: int = 0  # 0: channels
    symmetric: bool = True
    scale_dtype: torch.dtype = torch.bfloat16

    FORMATS = {"int4": "pack-quantized", "int8": "int-quantized", "float8": "float-quantized"}

    def config(self):
        weights = {
            "num_bits": 4 if self.kind == "int4" else 8,
            "type": "float" if self.kind == "float8" else "int",
            "symmetric": self.symmetric,
            "strategy": "group" if self.group else "channel",
            "group_size": self.group or None,
            "block_structure": None,
            "dynamic": False,
            "actorder": None,
            "observer": "minmax",
            "observer_kwargs": {},
        }
        activations = None
        if self.kind != "int4":
            activations = {"num_bits": 8, "type": weights["type"], "strategy": "token", "dynamic": True}
        group = {
            "targets": ["Linear"],
            "weights": weights,
            "input_activations": activations,
            "output_activations": None,
        }
        return {
            "quant_method": "compressed-tensors",
            "format": self.FORMATS[self.kind],
            "quantization_status": "compressed",
            "config_groups": {"group_0": group},
            "ignore": ["lm_head", "re:.*mlp.gate$"],
            "kv_cache_scheme": None,
            "global_compression_ratio": None,
        }

    def tensors(self, matrix):
        if self.kind == "float8":
            scales = (matrix.abs().amax(1, keepdim=True) / 448).to(self.scale_dtype)
            quants = (matrix / scales.float()).clamp(-448, 448)
            return {"weight": quants.to(torch.float8_e4m3fn), "weight_scale": scales}
        bits = 4 if self.kind == "int4" else 8
        group = self.group or matrix.shape[1]
        quants, zeros, scales = rounded(matrix, bits, group, self.symmetric, self.scale_dtype)
        if self.kind == "int8":
            return {"weight": (quants - 128).to(torch.int8), "weight_scale": scales}
        tensors = {
            "weight_packed": packed(quants, bits, 1),
            "weight_scale": scales,
            "weight_shape": torch.tensor(matrix.shape),
        }
        if not self.symmetric:
            tensors["weight_zero_point"] = packed(zeros, bits, 0)
        return tensors

    def weights(self, tensors):
        scales = tensors["weight_scale"].float()
        if self.kind != "int4":
            return tensors["weight"].float() * scales
        out, cols = tensors["weight_shape"].tolist()
        quants = unpacked(tensors["weight_packed"], 4, 1)[:, :cols] - 8
        each = cols // scales.shape[1]
        if not self.symmetric:
            zeros = unpacked(tensors["weight_zero_point"], 4, 0)[:out] - 8
            quants = quants - zeros.repeat_interleave(each, 1)
        return quants * scales.repeat_interleave(each, 1)
