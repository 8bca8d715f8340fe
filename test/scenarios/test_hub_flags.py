"""Each flag of the controller does what --help says."""

import signal
from datetime import datetime

import pytest

from lib.client import call
from lib.fake import answer
from lib.hub import LEASES
from lib.scorers import api_config, distributed, full, serve, text_of
from lib.wait import LONG, wait_until
from lib.work import STATUS_CONFIGMAP, WORK_CONFIGMAP, manifest, manifests

LEADER = "dynamic_scoring_hub_leader"


def test_refuse_private_addresses(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    controller = start_controller("--refuse-private-addresses", "--unhealthy-threshold=2")
    for kind in ("Healthy", "ConfigSynced"):
        _, reason, message = hub.wait_scorer("s", kind, "False")
        assert reason == "Forbidden"
        assert "connections to private addresses are not allowed: 127.0.0.1" in message
    hub.wait_scores("c1")
    assert fake.requests() == []
    controller.stop()
    # It is the flag, and no fault of the scorer's.
    start_controller()
    hub.wait_scores("c1", "cpu")


def test_agent_namespace(hub, fake, start_controller):
    """Also for existing works: manifests in another namespace are replaced."""
    controller = distributed(hub, fake, start_controller)
    controller.stop()
    start_controller("--agent-namespace=elsewhere")
    hub.add_cluster("c2")
    for cluster in ("c1", "c2"):
        wait_until(
            lambda: (w := hub.work(cluster)) and manifest(w, WORK_CONFIGMAP)["metadata"]["namespace"] == "elsewhere",
            f"{cluster} has it in the namespace",
        )
        work = hub.work(cluster)
        named = [m["metadata"] for m in manifests(work)]
        named += [c["resourceIdentifier"] for c in work["spec"]["manifestConfigs"]]
        assert {n["name"] for n in named} == {WORK_CONFIGMAP, STATUS_CONFIGMAP}
        assert {n["namespace"] for n in named} == {"elsewhere"}
        assert hub.score_names(cluster) == ["cpu"]


def written_at(work):
    """When its spec was last written, by the API server's clock."""
    times = [f["time"] for f in work["metadata"]["managedFields"] if f.get("subresource") != "status"]
    return datetime.fromisoformat(max(times).replace("Z", "+00:00"))


def test_write_limits(hub, fake, start_controller):
    """With five a second, and a quarter more for clusters that join, 80 works take 10 s. Everything else continues."""
    names = [f"r{i:02}" for i in range(80)]
    controller = distributed(hub, fake, start_controller, clusters=names)
    controller.stop()
    controller = start_controller("--kube-api-qps=5", "--kube-api-burst=5")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")

    def reached(score_name):
        return sum(f'"scoreName":"{score_name}"' in text_of(w) for w in hub.works().values())

    fake.on("/config", answer(api_config("memory")))
    wait_until(lambda: reached("memory"), "the first has it")
    hub.apply_scorer("t", full("http://127.0.0.1:9/config"))
    wait_until(lambda: hub.scorer_condition("t", "Healthy"), "another scorer is told of")
    assert controller.health().status == 200
    assert reached("memory") < len(names)
    wait_until(lambda: reached("memory") == len(names), "all have it", LONG)
    times = [written_at(w) for w in hub.works().values()]
    assert (max(times) - min(times)).total_seconds() >= 8
    # Clusters that join have a quarter for themselves, and do not wait for the others.
    fake.on("/config", answer(api_config("disk")))
    wait_until(lambda: reached("disk"), "the first has it")
    hub.add_cluster("joins")
    wait_until(lambda: hub.work("joins"), "it has its work")
    assert reached("disk") < len(names)


@pytest.mark.parametrize("own, health", [("0", None), (None, "0"), ("0", "0")])
def test_no_address(hub, fake, start_controller, own, health):
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    flags = [f"--metrics-bind-address={own}"] if own else []
    flags += [f"--health-probe-bind-address={health}"] if health else []
    controller = start_controller(*flags, start=False)
    controller.launch()
    hub.wait_scores("c1", "cpu")
    for url, off in ((controller.url + "/metrics", own), (controller.health_url + "/readyz", health)):
        if off:
            with pytest.raises(ConnectionRefusedError):
                call("GET", url)
        else:
            assert call("GET", url).status == 200


def test_one_address_for_both(hub, start_controller):
    controller = start_controller(start=False)
    controller.flags = [f"--health-probe-bind-address={controller.url[7:]}"]
    controller.launch()
    controller.wait_until(lambda: controller.get("/readyz").status == 200, "it is ready")
    assert controller.get("/metrics").status == 200


def test_web_config(hub, start_controller, tmp_path):
    """The password is "U*U". SIGHUP reads the file again. Probes stay open, and so need an address of their own."""
    login = {"Authorization": "Basic YWxpY2U6VSpV"}
    file = tmp_path / "web.yml"
    file.write_text("basic_auth_users:\n  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n")
    controller = start_controller(f"--web.config.file={file}")
    assert controller.health("/readyz").status == 200
    for path in ("/metrics", "/", "/api/v1/status"):
        assert controller.get(path).status == 401
        assert controller.get(path, **login).status == 200
    file.write_text("basic_auth_users: none\n")
    controller.process.send(signal.SIGHUP)
    wait_until(lambda: not controller.get("/api/v1/status", **login).json["webConfig"]["ok"], "the file is rejected")
    assert "dynamic_scoring_web_config_last_reload_successful 0" in controller.get("/metrics", **login).text
    controller.stop()
    both = start_controller(f"--web.config.file={file}", start=False)
    file.write_text("")
    both.flags = [f"--web.config.file={file}", f"--health-probe-bind-address={both.url[7:]}"]
    both.launch()
    assert both.process.wait() == 1
    assert "the addresses of metrics and probes must differ" in both.log()


@pytest.mark.parametrize(
    "flags, elects",
    [
        (["--leader-elect"], True),
        (["--leader-elect=true"], True),
        (["-leader-elect=true"], True),
        (["--leader-elect=false"], False),
        (["--leader-elect", "--leader-elect=false"], False),
        (["--leader-elect=false", "--leader-elect"], True),
        ([], False),
    ],
)
def test_leader_elect(hub, start_controller, flags, elects):
    """The last occurrence counts, as with Go's flags."""
    controller = start_controller(*flags)
    controller.wait_until(lambda: controller.metric(LEADER) == 1, "it leads")
    assert (hub.kube.find(f"{LEASES}/dynamic-scoring-controller") is not None) == elects
