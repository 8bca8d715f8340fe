"""Three of 300 clusters cannot be written to, each for another reason: the others are not affected, and the three are
named."""

from lib.fake import answer
from lib.scorers import allow, api_config, full, in_parallel, limited_user, serve, text_of
from lib.wait import LONG, eventually, wait_until
from lib.work import NAMESPACES

GOOD = [f"f{i:03}" for i in range(297)]
# No role reaches a missing namespace: to this user it is forbidden, too.
BAD = {"forbidden": "cannot create", "missing": "cannot create", "terminating": "terminated"}


def wait_all(hub, score_name):
    mark = f'"scoreName":"{score_name}"'
    wait_until(
        lambda: {name for name, w in hub.works().items() if mark in text_of(w)} >= set(GOOD),
        f"{score_name} is everywhere else",
        LONG,
        0.2,
    )


def look_at_the_three(hub):
    """The statuses and kubectl name and count them."""
    scorer, config = hub.scorer_status("s"), hub.config()["status"]
    for status in (scorer, config):
        words = {c["name"]: c["error"] for c in status["failingClusters"][:3]}  # before those that are silent
        assert set(words) == set(BAD)
        for name in BAD:
            assert BAD[name] in words[name], f"{name}: {words[name]}"
    assert config["clusters"]["failing"] == 3
    row = hub.kubectl("get", "dynamicscorer", "s", "--no-headers").stdout.split()
    assert row[1:7] == ["Unknown", "Waiting", "Active", "300", "0", "3"]  # CLUSTERS, SCORING, FAILING
    counts = {"selected": 300, "upToDate": 297, "applied": 0, "failing": 3}
    assert {name: scorer["clusters"][name] for name in counts} == counts
    for kind, is_true in (("Distributed", "False"), ("Ready", "Unknown")):
        status, _, message = hub.scorer_condition("s", kind)
        assert status == is_true and ("3 of 300" in message or "failing on 3: " in message)


def test_three_in_three_hundred(hub, fake, start_controller):
    in_parallel(hub.add_cluster, [*GOOD, "forbidden", "terminating"])
    hub.add_cluster("missing", namespace=False)
    user = limited_user(hub, [*GOOD, "terminating"])
    hub.kube.call("DELETE", f"{NAMESPACES}/terminating")  # and no controller ends it
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    controller = start_controller(kubeconfig=user)
    wait_all(hub, "cpu")
    eventually(lambda: look_at_the_three(hub), LONG)
    # A change reaches the others again.
    fake.on("/config", answer(api_config("memory")))
    wait_all(hub, "memory")
    eventually(lambda: look_at_the_three(hub), LONG)
    # What is mended heals by itself.
    allow(hub, "forbidden")
    hub.wait_scores("forbidden", "memory", deadline=LONG)
    wait_until(lambda: controller.metric("dynamic_scoring_hub_clusters", state="failing") == 2, "it is counted")
