"""After etcd is restored from a backup, its versions begin again at an older one: the controller and the agent see what is
there now and repair what has gone back, without a restart."""

import pytest

from lib.agent import running_agent
from lib.fake import results
from lib.hub import clean_hub
from lib.kube import CLUSTER, running_kube
from lib.scorers import own, scoring, text_of, wait_status
from lib.wait import LONG, wait_until


@pytest.fixture(scope="module")
def api_server():
    """Its own: others must not lose what they wrote."""
    with running_kube() as server:
        yield server


@pytest.fixture
def hub(api_server):
    return clean_hub(api_server)


def spec(fake, score, interval=1):
    about = scoring(score, host=fake.url)
    about = {**about, "path": "/s", "params": {**about["params"], "interval": interval}}
    return {**own(score, fake.url), "healthCheck": "None", "source": {"type": "None"}, "scoring": about}


def test_edits_are_distributed_and_scores_written(hub, fake, start_controller):
    fake.on("/s", results({}, 7))
    hub.add_cluster(CLUSTER)
    hub.configure()
    hub.apply_scorer("s", spec(fake, "first"))
    controller = start_controller()
    hub.wait_scores(CLUSTER, "first")
    hub.kube.back_up()

    # What the backup does not have: another score name, another scorer, and many versions.
    hub.apply_scorer("s", spec(fake, "second"))
    hub.apply_scorer("t", spec(fake, "third"))
    hub.wait_scores(CLUSTER, "second", "third", deadline=LONG)
    wait_status(hub, "s", lambda s: s["scoreName"] == "second", "its status says so", LONG)
    hub.kube.configure({"scoreName": "mine", "scoringEndpoint": f"{fake.url}/s", "scoringInterval": 1, "sourceType": "None"})
    with running_agent({}, *hub.kube.flags()) as agent:
        hub.kube.wait_items("mine", {"mine": 7}, LONG)
        for n in range(300):
            hub.kube.apply("api/v1/namespaces/default/configmaps", "n", {"data": {"n": str(n)}})
        hub.kube.restore()

        # The controller goes by what is there now, and so do its status and the ManifestWork.
        hub.wait_scores(CLUSTER, "first", deadline=LONG)
        hub.apply_scorer("s", spec(fake, "fourth", interval=2))
        hub.wait_scores(CLUSTER, "fourth", deadline=LONG)
        assert hub.scorer("t") is None
        wait_status(hub, "s", lambda s: s["scoreName"] == "fourth" and s["clusters"]["upToDate"] == 1, "so does its status", LONG)
        assert '"scoringInterval":2' in text_of(hub.work(CLUSTER)).replace(" ", "")

        # The agent's ConfigMap and its score are gone with the backup: it follows the first and writes the second anew.
        hub.kube.configure({"scoreName": "mine", "scoringEndpoint": f"{fake.url}/s", "scoringInterval": 1, "sourceType": "None"})
        fake.on("/s", results({}, 8))
        hub.kube.wait_items("mine", {"mine": 8}, LONG)
        wait_until(lambda: agent.metric("dynamic_scoring_kubernetes_up", resource="configmaps") == 1, "its watch works")
    assert controller.metric("dynamic_scoring_kubernetes_up", resource="manifestworks") == 1
    assert "the API server's store went back in time" in controller.log()
