"""If there are more summaries than a ManifestWork holds, the older scorers are sent, and the others report that there
was no room."""

import json

from lib.fake import answer
from lib.scorers import api_config, full, in_parallel, own, serve, source, wait_status
from lib.wait import wait_until
from lib.work import WORK_CONFIGMAP, manifest

HALF_MEGABYTE = 500 * 1024


def test_the_rest_is_still_sent(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    serve(fake, "/config", "cpu")
    long_query = "sum(rate(x{" + ",".join(f'l{i}="{"v" * 100}"' for i in range(500)) + "}[5m]))"
    names = [f"large{i:02}" for i in range(12)]
    in_parallel(lambda n: hub.apply_scorer(n, own(n, fake.url, source=source(query=long_query))), names)
    hub.apply_scorer("small", full(fake.url + "/config"))
    controller = start_controller()
    _, _, message = hub.wait_config("Distributed", "False", "NoRoom")
    assert "500 KiB" in message
    work = wait_until(lambda: hub.work("c1"), "the work is there")
    assert len(json.dumps(work["spec"])) <= HALF_MEGABYTE

    def left_out():
        return [n for n in [*names, "small"] if hub.scorer_condition(n, "Distributed")[1] == "NoRoom"]

    wait_until(
        lambda: sorted([*hub.score_names("c1"), *left_out()]) == sorted([*names, "cpu"]), "each is either sent or told"
    )
    sent, left = hub.score_names("c1"), left_out()
    assert len(sent) >= 6 and left
    assert "cpu" in sent, "a small one finds room where a large one does not"
    hub.apply_scorer("twin", full(fake.url + "/config"))
    hub.wait_scorer("twin", "UniqueScoreName", "False")
    counts = {"total": len(names) + 2, "distributed": len(names) + 1, "leftOut": 1, "noRoom": len(left)}
    wait_until(lambda: hub.config()["status"]["scorers"] == counts, "they are counted")
    controller.wait_metric("dynamic_scoring_hub_scorers_left_out", len(left))
    wait_until(lambda: all(hub.scorer_status(n)["clusters"]["noRoom"] == 1 for n in left), "each counts the cluster")
    # Room that is made is used.
    for name in sent:
        if name.startswith("large"):
            hub.delete_scorer(name)
    hub.wait_scores("c1", "cpu", *left)
    hub.wait_config("Distributed", "False", "Progressing")  # no work agent applies it here
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory", *left)


def test_text_is_whole_and_stable(hub, fake, start_controller):
    """Sorted by score name, in whatever order the scorers were created."""
    hub.add_cluster("c1")
    hub.add_cluster("c2")
    hub.configure()
    for name in ("m", "z", "a"):
        hub.apply_scorer(name, full(serve(fake, f"/{name}", name)))
    start_controller()
    hub.wait_scores("c1", "a", "m", "z")
    hub.wait_scores("c2", "a", "m", "z")
    text = [manifest(hub.work(c), WORK_CONFIGMAP)["data"]["summaries"] for c in ("c1", "c2")]
    assert text[0] == text[1]
    hub.delete_scorer("m")
    hub.wait_scores("c1", "a", "z")
    hub.apply_scorer("m", full(fake.url + "/m"))
    wait_until(lambda: manifest(hub.work("c1"), WORK_CONFIGMAP)["data"]["summaries"] == text[0], "byte for byte")
    wait_status(hub, "m", lambda s: s["clusters"]["upToDate"] == 2, "it is counted")
