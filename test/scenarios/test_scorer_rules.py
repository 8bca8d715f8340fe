"""Our models follow the rules of scoring APIs: check-scorer finds nothing wrong with them, and they keep to the OpenAPI
document."""

import contextlib
import json

import pytest

from lib.agent import PROGRAM
from lib.client import call
from lib.fake import answer
from lib.openapi import DOCUMENT, misfits, packages
from lib.process import run
from lib.scoring_api import running_scorer
from lib.wait import LONG

ALL = "examples,coverage,fuzzing"
SOME = "examples,coverage"


@contextlib.contextmanager
def running_model(folder, fake, model, *flags):
    """The model llm asks a language model that always says the same."""
    fake.on("/v1/completions", answer({"choices": [{"index": 0, "text": " 50.5"}]}))
    with running_scorer(folder, *flags, model=model, env={"INFERENCE_ENDPOINT": f"{fake.url}/v1/completions"}) as scorer:
        yield scorer.url


def document_for(prefix, folder):
    text = DOCUMENT.read_text()
    for path in ("config", "scoring"):
        text = text.replace(f"\n  /{path}:", f"\n  {prefix}/{path}:")
    (folder / "openapi.yaml").write_text(text)
    return folder / "openapi.yaml"


@pytest.mark.parametrize(
    "model, prefix, mode, phases",
    [
        ("mean", "", "negative", SOME),
        ("forecast", "", "positive", ALL),
        ("llm", "", "positive", SOME),
        ("static", "/performance", "positive", SOME),
    ],
)
def test_our_models_keep_to_the_document(fake, tmp_path, model, prefix, mode, phases):
    """schemathesis generates requests that the document allows, and others: those need not be refused, since labels are
    passed on unread, but never fail with another status than the document has."""
    command = ["/usr/bin/python3", "-m", "schemathesis.cli", "run", document_for(prefix, tmp_path), f"--phases={phases}"]
    command += ["--max-examples=5", "--generation-deterministic", "--suppress-health-check=too_slow"]
    command += ["--include-path-regex=/(config|scoring)$"]
    command += [f"--mode={mode}", f"--request-timeout={LONG}"]
    if mode == "negative":
        command += ["--exclude-checks=negative_data_rejection,response_schema_conformance"]
    with running_model(tmp_path, fake, model) as url:
        done = run(*command, f"--url={url}", env=packages(), timeout=2 * LONG, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-4000:]
        assert misfits(Config=[call("GET", f"{url}{prefix}/config").json]) == ""


MODELS = [("mean", "", 10), ("forecast", "", 10), ("llm", "", 10)]
MODELS += [("static", "/performance", 6), ("static", "/powerconsumption", 6)]


@pytest.mark.parametrize("model, prefix, series", MODELS)
def test_check_scorer_finds_nothing_wrong(fake, tmp_path, model, prefix, series):
    token = tmp_path / "token"
    token.write_text("dummy-token-1234")
    with running_model(tmp_path, fake, model, f"--token-file={token}") as url:
        ended = run(PROGRAM, "check-scorer", "--output=json", "--timeout=60s", f"--token-file={token}", url + prefix)
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["findings"]) == (0, [])
    assert found["agent"]["series"] == series
