"""Open Cluster Management's own work webhook accepts our ManifestWorks, and we use the space that it allows."""

import json
import re

import pytest

from lib.kube import Refused
from lib.ocm import work_webhook
from lib.scorers import in_parallel, own, patch_work, source
from lib.wait import wait_until
from lib.work import manifests

LIMIT = 500 * 1024
# What the API server's JSON, the webhook's and ours write differently, and what takes more bytes than it has characters.
ODD = '<&>"\\\t\u2028\u00e9\U0001f600'


@pytest.fixture
def guarded(hub):
    with work_webhook(hub.kube):
        yield hub


def size_in_the_webhook(hub, cluster):
    """The size that it reports when it rejects a work that is too large, without what was added for that."""
    work = hub.work(cluster)
    more = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}, "data": {"text": "x" * LIMIT}}
    with pytest.raises(Refused) as refused:
        patch_work(hub, cluster, {"spec": {"workload": {"manifests": [*manifests(work), more]}}})
    said = re.search(r"the size of manifests is (\d+) bytes which exceeds the 512000 limit", str(refused.value))
    assert said, refused.value
    # An element of the list in the webhook's counting: its bytes, and some for two lengths and tags.
    return int(said[1]) - len(json.dumps(more, separators=(",", ":")))


def test_ours_are_taken(guarded, fake, start_controller):
    hub = guarded
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", own("cpu", fake.url, source=source(query=f'up{{a="{ODD}"}}')))
    controller = start_controller("--keep-unhealthy")
    hub.wait_scores("c1", "cpu")
    assert ODD in hub.summaries("c1")[0]["sourceQuery"]
    hub.apply_scorer("t", own("memory", fake.url))
    hub.wait_scores("c1", "cpu", "memory")
    assert size_in_the_webhook(hub, "c1") < LIMIT
    controller.process.check_alive()


def test_as_many_as_it_takes(guarded, fake, start_controller):
    """The work is accepted, and has no room for another scorer."""
    hub = guarded
    hub.add_cluster("c1")
    hub.configure()
    query = f'up{{a="{ODD * 900}"}}'
    names = [f"s{i:02}" for i in range(40)]
    in_parallel(lambda n: hub.apply_scorer(n, own(n, fake.url, source=source(query=query))), names)
    start_controller("--keep-unhealthy")
    hub.wait_config("Distributed", "False", "NoRoom")
    hub.wait_scorer(names[-1], "Distributed", "False", "NoRoom")
    sent = wait_until(lambda: hub.score_names("c1"), "the work is there")
    assert 5 < len(sent) < len(names)
    counted = size_in_the_webhook(hub, "c1")
    assert counted < LIMIT < counted * (1 + 1 / len(sent)) + 8192, (counted, len(sent))
