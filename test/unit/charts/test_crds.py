#!/usr/bin/python3
"""Checks the CRDs of charts/: v1 is v1alpha1's copy and the annotation `schema` the hash of both (`--write` makes them), each
field is described, no bound in a status can trip the controller up, and all of the reference implementation's fields are
there with their types."""

import hashlib
import pathlib
import re
import sys

import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
CRDS = TOP / "charts" / "dynamic-scoring-framework" / "crds"
REFERENCE = TOP / "test" / "reference"
GROUP = "dynamic-scoring.open-cluster-management.io"
BOUNDS = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "x-kubernetes-validations"}

problems = []


def check(ok, what):
    if not ok:
        problems.append(what)


def as_it_should_be(text):
    """The file with v1 made from v1alpha1, and with its hash, by which the chart's NOTES notice other CRDs on a cluster."""
    head, first, rest = re.split(r"^(  - name: v1alpha1\n)", text, maxsplit=1, flags=re.M)
    block = rest.split("\n  - name: v1\n")[0].rstrip("\n") + "\n"
    copy = block.replace("    storage: true\n", "    storage: false\n", 1)
    schema = hashlib.sha256(block.encode()).hexdigest()[:12]
    head = re.sub(rf"({GROUP}/schema: ).*", rf'\1"{schema}"', head)
    return head + first + block + "  - name: v1\n" + copy


def parts(schema):
    """(name, schema) of what is directly in a schema."""
    yield from schema.get("properties", {}).items()
    if "items" in schema:
        yield "[]", schema["items"]


def everything(schema, path=""):
    yield path, schema
    for name, inner in parts(schema):
        yield from everything(inner, f"{path}.{name}")


def check_versions(name, crd):
    versions = {v["name"]: v for v in crd["spec"]["versions"]}
    check(set(versions) == {"v1alpha1", "v1"}, f"{name}: v1alpha1 and v1 are served")
    check(all(v["served"] for v in versions.values()), f"{name}: both versions are served")
    stored = [n for n, v in versions.items() if v["storage"]]
    check(stored == ["v1alpha1"], f"{name}: v1alpha1 is stored")
    first, second = ({**v, "name": "", "storage": None} for v in versions.values())
    check(first == second, f"{name}: the versions differ")
    check(crd["spec"]["conversion"] == {"strategy": "None"}, f"{name}: no conversion")


def check_fields(name, schema):
    for path, field in everything(schema):
        check(path == ".metadata" or field.get("description", "").endswith("."), f"{name}: {path} has no description")
        bounds = BOUNDS & set(field)
        check(not (path.startswith(".status") and bounds), f"{name}: {path} is bounded by {bounds}")


def check_reference(path, theirs, ours):
    kinds = [s.get("type") for s in (theirs, ours)]
    check(kinds[0] == kinds[1], f"{path}: {kinds[1]}, but the reference has {kinds[0]}")
    needed = [set(s.get("required", [])) for s in (theirs, ours)]
    if path.startswith(".status"):
        check(needed[0] == needed[1], f"{path}: others are required")
    elif path:
        check(needed[1] <= needed[0], f"{path}: more is required")
    inner = dict(parts(ours))
    for name, field in parts(theirs):
        if name in inner:
            check_reference(f"{path}.{name}", field, inner[name])
        else:
            check(False, f"{path}.{name} is missing")


def check_file(file):
    text = file.read_text()
    want = as_it_should_be(text)
    if want != text and "--write" in sys.argv:
        file.write_text(want)
    else:
        check(want == text, f"{file.name}: v1 is not v1alpha1's copy, or the hash another; --write mends it")
    crd = yaml.safe_load(want)
    check_versions(file.name, crd)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    check_fields(file.name, schema)
    if file.stem == "dynamicscorers":
        spec = schema["properties"]["spec"]["properties"]
        one, many = (s["properties"] for s in (spec["source"], spec["sources"]["items"]))
        check(one == many, "sources' entries are not like source")
    theirs = yaml.safe_load((REFERENCE / file.name).read_text())
    for key in ("group", "scope"):
        check(theirs["spec"][key] == crd["spec"][key], f"{file.name}: another {key}")
    check(theirs["spec"]["names"].items() <= crd["spec"]["names"].items(), f"{file.name}: other names")
    check_reference("", theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema)


def main():
    files = sorted(CRDS.glob("*.yaml"))
    check([f.stem for f in files] == ["dynamicscorers", "dynamicscoringconfigs"], f"there are {files}")
    for file in files:
        check_file(file)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
