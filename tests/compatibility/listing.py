"""Descriptors as text that a person can read and compare, and back.

A listing has what peers of another version depend on: names, numbers and types
of fields, values of enums, calls of services, and what is reserved.

    message Accepted
      1 one string request_id
      reserved 4-10
    service Worker
      Drain DrainRequest -> DrainResponse
"""

import dataclasses

from google.protobuf import descriptor_pb2

PACKAGE = "lockstep.v1"
LABELS = {"one": 1, "optional": 1, "repeated": 3}
FIELD = descriptor_pb2.FieldDescriptorProto


@dataclasses.dataclass
class Entry:
    """A message, an enum or a service."""

    kind: str
    lines: dict = dataclasses.field(default_factory=dict)  # by number, or a call by its name: the rest of the line
    reserved_numbers: list = dataclasses.field(default_factory=list)  # (first, last)
    reserved_names: set = dataclasses.field(default_factory=set)

    def is_reserved(self, number, name):
        return name in self.reserved_names and any(first <= number <= last for first, last in self.reserved_numbers)


def short(full_name):
    return full_name.removeprefix(f".{PACKAGE}.")


def label_of(field):
    if field.label == FIELD.LABEL_REPEATED:
        return "repeated"
    return "optional" if field.proto3_optional else "one"


def type_of(field):
    if field.type_name:
        return short(field.type_name)
    return FIELD.Type.Name(field.type).removeprefix("TYPE_").lower()


def take_message(entries, prefix, message):
    entry = entries[prefix + message.name] = Entry("map" if message.options.map_entry else "message")
    for field in message.field:
        place = ""
        if field.HasField("oneof_index") and not field.proto3_optional:
            place = f" in {message.oneof_decl[field.oneof_index].name}"
        entry.lines[field.number] = f"{label_of(field)} {type_of(field)} {field.name}{place}"
    # Their end is the first number that is not reserved; an enum's is the last that is.
    entry.reserved_numbers = [(each.start, each.end - 1) for each in message.reserved_range]
    entry.reserved_names = set(message.reserved_name)
    for nested in message.nested_type:
        take_message(entries, f"{prefix}{message.name}.", nested)
    for nested in message.enum_type:
        take_enum(entries, f"{prefix}{message.name}.", nested)


def take_enum(entries, prefix, enum):
    entry = entries[prefix + enum.name] = Entry("enum")
    entry.lines = {value.number: value.name for value in enum.value}
    entry.reserved_numbers = [(each.start, each.end) for each in enum.reserved_range]
    entry.reserved_names = set(enum.reserved_name)


def take_service(entries, service):
    entry = entries[service.name] = Entry("service")
    for call in service.method:
        takes = ("stream " if call.client_streaming else "") + short(call.input_type)
        gives = ("stream " if call.server_streaming else "") + short(call.output_type)
        entry.lines[call.name] = f"{takes} -> {gives}"


def of(files):
    """Name -> entry, of the files of a FileDescriptorSet."""
    entries = {}
    for file in files:
        if file.package != PACKAGE or file.syntax != "proto3":
            raise ValueError(f"{file.name} is not of {PACKAGE} in proto3")
        for message in file.message_type:
            take_message(entries, "", message)
        for enum in file.enum_type:
            take_enum(entries, "", enum)
        for service in file.service:
            take_service(entries, service)
    return entries


def to_text(entries):
    lines = []
    for name in sorted(entries):
        entry = entries[name]
        lines.append(f"{entry.kind} {name}")
        lines += [f"  {key} {entry.lines[key]}" for key in sorted(entry.lines)]
        lines += [f"  reserved {first}-{last}" for first, last in entry.reserved_numbers]
        lines += [f"  reserved {each}" for each in sorted(entry.reserved_names)]
    return "\n".join(lines) + "\n"


def from_text(text):
    entries, entry = {}, None
    for line in text.splitlines():
        key, _, rest = line.strip().partition(" ")
        if not line or line.startswith("#"):
            continue
        if not line.startswith("  "):
            entry = entries[rest] = Entry(key)
        elif key != "reserved":
            entry.lines[key if entry.kind == "service" else int(key)] = rest
        elif rest[0].isdigit() or rest[0] == "-":
            first, _, last = rest.rpartition("-")
            entry.reserved_numbers.append((int(first), int(last)))
        else:
            entry.reserved_names.add(rest)
    return entries


def to_file(entries):
    """A FileDescriptorProto of it all: what a peer of that version knows."""
    file = descriptor_pb2.FileDescriptorProto(name="listed.proto", package=PACKAGE, syntax="proto3")
    made = {}
    # A message before those that are in it.
    for name in sorted(entries, key=lambda each: (each.count("."), each)):
        entry, (outer, _, last) = entries[name], name.rpartition(".")
        if entry.kind == "service":
            give_service(file.service.add(name=name), entry)
        elif entry.kind == "enum":
            enum = (made[outer] if outer else file).enum_type.add(name=last)
            for number in sorted(entry.lines, key=lambda each: (each != 0, each)):
                enum.value.add(name=entry.lines[number], number=number)
        else:
            made[name] = made[outer].nested_type.add(name=last) if outer else file.message_type.add(name=last)
            give_message(made[name], entry, entries)
    return file


def give_service(service, entry):
    for name, line in entry.lines.items():
        takes, gives = line.split(" -> ")
        service.method.add(
            name=name,
            input_type=f".{PACKAGE}.{takes.removeprefix('stream ')}",
            output_type=f".{PACKAGE}.{gives.removeprefix('stream ')}",
            client_streaming=takes.startswith("stream "),
            server_streaming=gives.startswith("stream "),
        )


def give_message(message, entry, entries):
    message.options.map_entry = entry.kind == "map"
    optional = []
    for number, line in entry.lines.items():
        label, kind, name, *place = line.split()
        field = message.field.add(name=name, number=number, label=LABELS[label])
        if kind in entries:
            field.type_name = f".{PACKAGE}.{kind}"
            field.type = FIELD.TYPE_ENUM if entries[kind].kind == "enum" else FIELD.TYPE_MESSAGE
        else:
            field.type = FIELD.Type.Value(f"TYPE_{kind.upper()}")
        if place:
            field.oneof_index = oneof_named(message, place[1])
        elif label == "optional":
            optional.append(field)
    # Each has a oneof of its own, behind those that are written.
    for field in optional:
        field.proto3_optional = True
        field.oneof_index = oneof_named(message, f"_{field.name}")


def oneof_named(message, name):
    names = [each.name for each in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        names.append(name)
    return names.index(name)
