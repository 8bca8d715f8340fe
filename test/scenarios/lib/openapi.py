"""The OpenAPI document of the scoring API, and a validator of it and of documents by its schemas."""

import functools
import json
import subprocess

from lib.kube import script
from lib.process import ROOT, environment
from lib.wait import LONG

DOCUMENT = ROOT / "controller" / "check" / "openapi.yaml"
# Reads {"name of a schema": [documents]} and prints what does not fit, after the document itself and its examples.
VALIDATE = """
import json, sys, jsonschema, openapi_spec_validator, openapi_spec_validator.readers as readers

document, _ = readers.read_from_filename(sys.argv[1])
openapi_spec_validator.validate(document)

def examples(node):
    if isinstance(node, dict):
        if "schema" in node and "example" in node:
            yield node["schema"], [node["example"]]
        for value in node.values():
            yield from examples(value)

named = [({"$ref": f"#/components/schemas/{name}"}, documents) for name, documents in json.load(sys.stdin).items()]
for schema, documents in [*examples(document["paths"]), *named]:
    validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
    for one in documents:
        for error in validator.iter_errors(one):
            print(schema, error.json_path, error.message[:200])
    print("checked", len(documents), schema["$ref"], file=sys.stderr)
"""


@functools.cache
def packages():
    """The environment with what validates; skips the test where it cannot be installed."""
    return environment(PYTHONPATH=script("python-packages", "openapi"))


def misfits(**documents):
    """What is wrong with the document, its examples, or with these by the name of their schema."""
    command = ["/usr/bin/python3", "-c", VALIDATE, DOCUMENT]
    text = json.dumps(documents)
    done = subprocess.run(command, input=text, env=packages(), capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("checked") == 2 + len(documents)
    return done.stdout
