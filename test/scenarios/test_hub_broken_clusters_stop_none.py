"""Of 300 clusters three cannot be written to, each in its own way: the others do not notice, the three are named."""

import time

from lib.fake import answer
from lib.scorers import allow, api_config, full, in_parallel, limited_user, serve, text_of, wait_status
from lib.wait import wait_until
from lib.work import NAMESPACES

GOOD = [f"f{i:03}" for i in range(297)]
# No role reaches a missing namespace: to this user it is forbidden, too.
BAD = {"forbidden": "forbidden", "missing": "forbidden", "terminating": "terminated"}


def wait_all(hub, score_name):
    mark = f'"scoreName":"{score_name}"'
    wait_until(
        lambda: {name for name, w in hub.works().items() if mark in text_of(w)} >= set(GOOD),
        f"{score_name} is everywhere else",
        60,
        0.2,
    )


def test_three_in_three_hundred(hub, fake, start_controller):
    in_parallel(hub.add_cluster, [*GOOD, "forbidden", "terminating"])
    hub.add_cluster("missing", namespace=False)
    user = limited_user(hub, [*GOOD, "terminating"])
    hub.kube.call("DELETE", f"{NAMESPACES}/terminating")  # and no controller ends it
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    begin = time.monotonic()
    controller = start_controller(kubeconfig=user)
    wait_all(hub, "cpu")
    first = time.monotonic() - begin
    wait_status(hub, "s", lambda s: len(s.get("failingClusters", [])) == 3, "the three are told")
    for failing in (hub.scorer_status("s")["failingClusters"], hub.config()["status"]["failingClusters"]):
        words = {c["name"]: c["error"] for c in failing}
        assert set(words) == set(BAD)
        assert all(BAD[name] in words[name] for name in BAD), words
    hub.wait_scorer("s", "Distributed", "False")
    assert "3 of 300" in hub.scorer_condition("s", "Distributed")[2]
    assert hub.config()["status"]["clusters"]["failing"] == 3
    row = hub.kubectl("get", "dynamicscorer", "s", "--no-headers").stdout.split()
    assert row[:8] == ["s", "Active", "cpu", "True", "300", "297", "0", "3"]  # ready; FAILING is 3
    assert "3 of 300" in hub.scorer_condition("s", "Ready")[2]
    # A change reaches the others again, as fast.
    begin = time.monotonic()
    fake.on("/config", answer(api_config("memory")))
    wait_all(hub, "memory")
    assert time.monotonic() - begin < max(10, 2 * first)
    # What is mended heals by itself.
    allow(hub, "forbidden")
    hub.wait_scores("forbidden", "memory", deadline=90)
    wait_until(lambda: controller.metric("dynamic_scoring_hub_clusters", state="failing") == 2, "it is counted")
