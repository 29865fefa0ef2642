"""JSON schemas of the objects that the chart makes, a file each, as kubeconform reads them.

Those of Kubernetes' own kinds are cut out of a package's; those of other kinds
are made of their definitions. Both are strict: a field that they do not know is
refused, as a server does with fieldValidation=Strict.

    python3 -m control_plane.schemas PACKAGE FOLDER
"""

import json
import pathlib
import sys

from control_plane import fetched


def _references(schema):
    """The names of definitions that a schema leads to."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rpartition("/")[2]
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _leading_here(schema):
    """The same schema, with all that it refers to in its own file."""
    if isinstance(schema, dict):
        return {
            key: f"#/definitions/{value.rpartition('/')[2]}" if key == "$ref" and isinstance(value, str) else _leading_here(value)
            for key, value in schema.items()
        }
    return [_leading_here(each) for each in schema] if isinstance(schema, list) else schema


def of_own_kind(schema, definitions):
    """`schema` is one kind's of the package, `definitions` all that it has."""
    needed, waiting = {}, list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = definitions[name]
            waiting += _references(definitions[name])
    without_place = {key: value for key, value in schema.items() if key not in ("$id", "$schema")}
    return _leading_here({**without_place, "definitions": needed})


def _strict(schema):
    """Of a definition's schema: what Kubernetes says in words of its own, in those of JSON schemas."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value for key, value in schema.items() if key not in ("properties", "patternProperties", "default", "enum")}
    made = {key: _strict(value) for key, value in made.items()}
    if "enum" in schema:
        made["enum"] = schema["enum"]
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    if "properties" in schema:
        made["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
        if "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    return made


def of_definition(definition):
    """(kind, version, schema) of each version of a CustomResourceDefinition."""
    group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
    for version in definition["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        properties = {
            **schema["properties"],
            "apiVersion": {"type": "string", "enum": [f"{group}/{version['name']}"]},
            "kind": {"type": "string", "enum": [kind]},
            "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        }
        yield kind, group, version["name"], _strict({**schema, "properties": properties})


def write(folder, package, definitions):
    """`package`: a folder of schemas that say which definitions they are of, with _definitions.json; `definitions`: CustomResourceDefinitions."""
    known = json.loads((package / "_definitions.json").read_text(encoding="utf-8"))["$defs"]
    for path in package.glob("*.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        # Objects alone, and no lists of them nor parts.
        if "kind" in schema.get("properties", {}) and schema["properties"]["kind"].get("enum"):
            (folder / path.name).write_text(json.dumps(of_own_kind(schema, known)), encoding="utf-8")
    for definition in definitions:
        for kind, group, version, schema in of_definition(definition):
            name = f"{kind.lower()}-{group.partition('.')[0]}-{version}.json"
            (folder / name).write_text(json.dumps(schema), encoding="utf-8")


def main():
    package, folder = map(pathlib.Path, sys.argv[1:])
    write(folder, package, fetched.definitions(folder))
    (folder / fetched.DEFINITIONS_FILE).unlink()


if __name__ == "__main__":
    main()
