#!/usr/bin/python3
"""Checks the chart's values: each has a comment `# --`, and values.schema.json describes the same values."""

import json
import pathlib
import re
import sys

import yaml

CHART = pathlib.Path(__file__).resolve().parents[3] / "charts" / "dynamic-scoring-framework"
CHECKS = (CHART / "templates" / "checks.yaml").read_text()
KEY = re.compile(r"^( *)([A-Za-z0-9]+):")


def documented(text):
    """{path: comment} of the values with a comment, in their order."""
    found, path, comment = {}, [], []
    for line in text.split("\n"):
        stripped = line.strip()
        key = KEY.match(line)
        if stripped.startswith("# -- "):
            comment = [stripped[5:]]
        elif stripped.startswith("# ") and comment:
            comment.append(stripped[2:])
        elif key:
            path = path[: len(key[1]) // 2] + [key[2]]
            if comment:
                found[".".join(path)] = " ".join(comment)
            comment = []
    return found


def undocumented(values, known, path=""):
    """Paths of values that neither have a comment nor contain values that do."""
    for name, value in values.items():
        here = f"{path}.{name}".lstrip(".")
        if here in known:
            continue
        if isinstance(value, dict) and any(k.startswith(f"{here}.") for k in known):
            yield from undocumented(value, known, here)
        else:
            yield here


def schema_differences(values, schema, definitions, path=""):
    """Values without a schema, and properties that are no values. Only where the schema lists properties; those of items of
    lists have no default. An empty schema is that of a value of former versions, which templates/checks.yaml refuses."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
    if "properties" not in schema or not isinstance(values, dict):
        return
    former = {name for name, one in schema["properties"].items() if one == {}}
    yield from (f"{path}.{name}".lstrip(".") + " is not refused" for name in former if f"{path}.{name}"[1:] not in CHECKS)
    for name in sorted((set(values) ^ set(schema["properties"])) - former):
        if values:  # an empty default, such as that of limits, stands for all that the schema allows
            yield f"{path}.{name}".lstrip(".") + (" has no schema" if name in values else " is only in the schema")
    for name in set(values) & set(schema["properties"]):
        yield from schema_differences(values[name], schema["properties"][name], definitions, f"{path}.{name}")


def main():
    text = (CHART / "values.yaml").read_text()
    values, comments = yaml.safe_load(text), documented(text)
    schema = json.loads((CHART / "values.schema.json").read_text())
    problems = [f"values.yaml: {path} has no comment `# --`" for path in undocumented(values, comments)]
    problems += [f"values.schema.json: {d}" for d in schema_differences(values, schema, schema["definitions"])]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
