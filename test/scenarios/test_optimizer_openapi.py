"""/openapi.json describes the optimizer's requests as they are: a valid document, to whose word schemathesis holds the server."""

import json
import subprocess

from lib.guide import running_guide
from lib.openapi import packages
from lib.optimizer import running_optimizer
from lib.process import run
from lib.wait import LONG

VALIDATE = "import json, sys, openapi_spec_validator as v; v.validate(json.load(sys.stdin))"
# A name that is not there is 404, and a namespace that may not be written to 403, whatever the schema says of the text.
ACCEPTED = "[checks.positive_data_acceptance]\nexpected-statuses = [200, 403, 404, 409, 422]\n"


def test_document_and_server_agree(kube, tmp_path):
    (tmp_path / "schemathesis.toml").write_text(ACCEPTED)
    with running_guide(kube, "openapi") as guide, running_optimizer(kube.kubeconfig()) as optimizer:
        optimizer.wait_ready()
        text = optimizer.get("/openapi.json").text
        (tmp_path / "openapi.json").write_text(text)
        command = ["/usr/bin/python3", "-c", VALIDATE]
        subprocess.run(command, input=text, text=True, env=packages(), check=True, timeout=LONG)
        document = json.loads(text)
        tools = {tool["name"] for tool in optimizer.tools()}
        operations = {o["operationId"] for path in document["paths"].values() for o in path.values()}
        assert tools <= operations and operations - tools == {"apply", "reset_reset_post"}
        guide.wait_known(optimizer)
        command = ["/usr/bin/python3", "-m", "schemathesis.cli", "run", tmp_path / "openapi.json", f"--url={optimizer.url}"]
        command += ["--phases=examples,coverage", "--max-examples=2", "--generation-deterministic", "--mode=all"]
        command += ["--exclude-path=/optimize"]  # whose arguments are those of /plan
        command += ["--exclude-checks=unsupported_method", f"--request-timeout={LONG}"]
        done = run(*command, env=packages(), timeout=2 * LONG, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-6000:]
