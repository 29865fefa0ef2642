"""Writes GGUF files (ggml's docs/gguf.md). Used by convert_to_gguf.py."""

import struct

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


class Writer:
    """GGUF 3: metadata, tensor infos, then the data, tensor by tensor."""

    def __init__(self):
        self.metadata, self.tensors = [], []

    @staticmethod
    def text(value):
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    def add(self, key, value):
        if isinstance(value, bool):
            kind, data = BOOL, struct.pack("<?", value)
        elif isinstance(value, int):
            kind, data = UINT32, struct.pack("<I", value)
        elif isinstance(value, float):
            kind, data = FLOAT32, struct.pack("<f", value)
        elif isinstance(value, str):
            kind, data = STRING, self.text(value)
        else:
            kind, of = ARRAY, {str: STRING, float: FLOAT32}.get(type(value[0]), INT32)
            form = "<f" if of == FLOAT32 else "<i"
            items = (self.text(v) if of == STRING else struct.pack(form, v) for v in value)
            data = struct.pack("<IQ", of, len(value)) + b"".join(items)
        self.metadata.append(self.text(key) + struct.pack("<I", kind) + data)

    def add_tensor(self, name, shape, kind, size, read):
        """`read` gives the `size` bytes when it is their turn."""
        self.tensors.append((name, shape, kind, size, read))

    def write(self, path):
        with open(path, "wb") as file:
            file.write(struct.pack("<IIQQ", 0x46554747, 3, len(self.tensors), len(self.metadata)))
            file.write(b"".join(self.metadata))
            offset = 0
            for name, shape, kind, size, _ in self.tensors:
                file.write(self.text(name) + struct.pack("<I", len(shape)))
                file.write(struct.pack(f"<{len(shape)}Q", *reversed(shape)))
                file.write(struct.pack("<IQ", kind, offset))
                offset += -(-size // ALIGNMENT) * ALIGNMENT
            for _, _, _, size, read in self.tensors:
                file.write(bytes(-file.tell() % ALIGNMENT))
                data = read()
                assert len(data) == size
                file.write(data)
