"""Where the controller went before its DynamicScoringConfig, the commands of charts/README.md remove what it would have."""

import re
import shlex

from lib.hub import ALL_WORKS
from lib.kube import DOMAIN
from lib.process import ROOT
from lib.scorers import FINALIZER, distributed
from lib.wait import wait_until

VERSION = "cluster.open-cluster-management.io/v1alpha1"
SCORES = f"apis/{VERSION}"
HEAD = "**If the release was uninstalled first**"


def commands():
    """Those of the paragraph: each a list of words."""
    text = (ROOT / "charts/README.md").read_text().split(HEAD, 1)[1]
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL).group(1)
    return [shlex.split(line) for line in block.replace("\\\n", " ").splitlines()]


def test_the_way_out(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    wait_until(lambda: hub.config()["metadata"].get("finalizers") == [FINALIZER], "the config has our finalizer")
    label = {f"{DOMAIN}/managed-by": "agent"}
    for name, labels in ("of-an-agent", label), ("of-others", {}):
        score = {"apiVersion": VERSION, "kind": "AddOnPlacementScore", "metadata": {"name": name, "labels": labels}}
        hub.kube.call("POST", f"{SCORES}/namespaces/c1/addonplacementscores", score)
    controller.stop()
    hub.delete_config()
    assert hub.config()["metadata"]["deletionTimestamp"]
    assert len(hub.kube.call("GET", ALL_WORKS)["items"]) == 2
    for program, *words in commands():
        assert program == "kubectl"
        done = hub.kube.kubectl(*words)
        assert done.returncode == 0, done.stderr
    wait_until(lambda: hub.config() is None, "the config is gone")
    assert hub.kube.call("GET", ALL_WORKS)["items"] == []
    left = hub.kube.call("GET", f"{SCORES}/addonplacementscores")["items"]
    assert [o["metadata"]["name"] for o in left] == ["of-others"]
