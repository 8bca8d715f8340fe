"""The health checks for Argo CD give what it shows, run by the Lua that it has, with the libraries that it opens."""

import datetime
import json
import subprocess

import pytest
import yaml
from lib.kube import go_program
from lib.process import ROOT

CHECKS = yaml.safe_load((ROOT / "charts/samples/argocd/health.yaml").read_text())["data"]
SANDBOX = 'local safe = {time = os.time, date = os.date}\npackage.loaded.os, os, io, string, math = safe, safe\n'
ENDED, LATER = "2020-01-01T00:00:00Z", f"{datetime.date.today().year + 1}-01-01T00:00:00Z"


def lua(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"[{json.dumps(k)}]={lua(v)}" for k, v in value.items()) + "}"
    return "{" + ",".join(map(lua, value)) + "}" if isinstance(value, list) else json.dumps(value)


def health(group, kind, tmp_path, **status):
    check = CHECKS[f"resource.customizations.health.{group}_{kind}"]
    obj = {"metadata": {"generation": 2}, **({"status": status} if status else {})}
    script = f"{SANDBOX}obj = {lua(obj)}\nlocal h = (function()\n{check}end)()\nprint(h.status, h.message)\n"
    (tmp_path / "check.lua").write_text(script)
    done = subprocess.run([go_program("glua"), tmp_path / "check.lua"], capture_output=True, text=True, check=True)
    return tuple(done.stdout.strip().split("\t"))


def condition(kind, status, reason="", **more):
    return {"type": kind, "status": status, "reason": reason, "message": f"{kind} {reason}", **more}


@pytest.mark.parametrize("kind", ["DynamicScorer", "DynamicScoringConfig"])
def test_of_ours(kind, tmp_path):
    def of(*conditions):
        return health("dynamic-scoring.open-cluster-management.io", kind, tmp_path, conditions=list(conditions))[0]

    assert of() == of(condition("Healthy", "False")) == "Progressing"
    assert health("dynamic-scoring.open-cluster-management.io", kind, tmp_path)[0] == "Progressing"
    assert of(condition("Valid", "True"), condition("Ready", "True")) == "Healthy"
    assert of(condition("Ready", "False", observedGeneration=2)) == "Degraded"
    assert of(condition("Ready", "Unknown")) == "Progressing"
    assert of(condition("Ready", "True", observedGeneration=1)) == "Progressing"


def test_of_scores(tmp_path):
    def of(until, *conditions):
        status = {"validUntil": until} if until else {}
        return health("cluster.open-cluster-management.io", "AddOnPlacementScore", tmp_path, conditions=list(conditions), **status)

    assert of(None)[0] == "Progressing"
    assert of(LATER, condition("Scored", "True")) == ("Healthy", "Scored")
    assert of(LATER, condition("Scored", "False", "SourceEmpty"))[0] == "Healthy"
    assert of(LATER, condition("Scored", "False", "ScoringFailed")) == ("Degraded", "Scored ScoringFailed")
    assert of(ENDED, condition("Scored", "True")) == ("Degraded", f"the scores have expired: {ENDED}")
