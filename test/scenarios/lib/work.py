"""ManifestWorks, and what a work agent does with them."""

import contextlib
import http.client
import threading
import time
import traceback

from lib.kube import MERGE_PATCH, Refused

WORK = "dynamic-scoring-config-manifestwork"
WORK_FINALIZER = "cluster.open-cluster-management.io/manifest-work-cleanup"
WORK_CONFIGMAP = "dynamic-scoring-config"
STATUS_CONFIGMAP = "dynamic-scoring-status"
OWNED = {"dynamic-scoring-tests/owned": "yes"}  # of namespaces that go with the test

NAMESPACES = "api/v1/namespaces"
CONFIGMAPS = "api/v1/namespaces/{}/configmaps"
WORKS = "apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def manifests(work):
    return work["spec"]["workload"].get("manifests", [])


def manifest(work, name):
    return next(m for m in manifests(work) if m["metadata"]["name"] == name)


def strategy_of(work, name):
    for config in work["spec"].get("manifestConfigs", []):
        if config["resourceIdentifier"]["name"] == name:
            return config.get("updateStrategy", {}).get("type", "Update"), config.get("feedbackRules", [])
    return "Update", []


def feedback_values(rules, text):
    """The values of the rules for .data.status, as the work agent fills them in."""
    names = [p["name"] for r in rules for p in r.get("jsonPaths", []) if p["path"] == ".data.status"]
    return [{"name": n, "fieldValue": {"type": "String", "string": text}} for n in names]


def conditions(generation, **are):
    """conditions(3, Applied=(True, "words"))"""
    return [
        {
            "type": kind,
            "status": str(bool(ok)),
            "reason": f"{kind}Complete" if ok else f"{kind}Failed",
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": now(),
        }
        for kind, (ok, message) in are.items()
    ]


def write_work_status(kube, work, report, applied=True, why="applied"):
    """report: the text of the ConfigMap dynamic-scoring-status; None without it: the work is then not Available."""
    generation, entries = work["metadata"]["generation"], []
    for i, one in enumerate(manifests(work)):
        name = one["metadata"]["name"]
        strategy, rules = strategy_of(work, name)
        reads = strategy == "ReadOnly"
        there = report is not None if reads else applied
        entries.append(
            {
                "resourceMeta": {
                    "ordinal": i,
                    "version": "v1",
                    "kind": one["kind"],
                    "resource": "configmaps",
                    "name": name,
                    "namespace": one["metadata"]["namespace"],
                },
                "conditions": conditions(
                    generation,
                    Applied=(True, "") if reads else (applied, why),
                    Available=(there, "" if there else f"{name} is not there"),
                ),
                "statusFeedback": {"values": feedback_values(rules, report) if reads and there else []},
            }
        )
    available = all(c["status"] == "True" for e in entries for c in e["conditions"] if c["type"] == "Available")
    status = {
        "conditions": conditions(generation, Applied=(applied, why), Available=(available, "")),
        "resourceStatus": {"manifests": entries},
    }
    path = f"{WORKS.format(work['metadata']['namespace'])}/{WORK}/status"
    kube.call("PATCH", path, {"status": status}, MERGE_PATCH)


class FakeWorkAgent:
    """Acts as the work agent of some clusters: holds a finalizer, copies the work's ConfigMap to the "managed cluster",
    which is a namespace of an API server, and returns the agent's report.

    clusters: {cluster: (kube, namespace)}. refuse[cluster] = "message": it cannot apply there. hold.add(cluster): it is
    away there."""

    def __init__(self, hub, clusters):
        self.hub, self.clusters = hub, dict(clusters)
        self.refuse, self.hold, self.seen = {}, set(), {}
        self.trouble, self.refusal = None, None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name="work agent")

    def __enter__(self):
        for kube, namespace in self.clusters.values():
            with contextlib.suppress(Refused):
                kube.call("POST", NAMESPACES, {"metadata": {"name": namespace, "labels": OWNED}})
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.stopping.set()
        self.thread.join()
        if error[0]:
            print(f"what the work agent was refused last: {self.refusal}")
        assert error[0] or not self.trouble, self.trouble

    def run(self):
        while not self.stopping.wait(0.1):
            for cluster, (kube, namespace) in list(self.clusters.items()):
                if cluster in self.hold:
                    continue
                try:
                    self.look(cluster, kube, namespace)
                except (OSError, http.client.HTTPException, Refused) as refusal:
                    self.refusal = refusal  # an API server that is away, or another's write: again
                    self.seen.pop(cluster, None)
                except Exception:  # a thread's own would be lost
                    self.trouble = traceback.format_exc()

    def look(self, cluster, kube, namespace):
        work = self.hub.work(cluster)
        if work is None:
            return
        if "deletionTimestamp" in work["metadata"]:
            kube.delete(f"{CONFIGMAPS.format(namespace)}/{WORK_CONFIGMAP}")
            self.set_finalizers(work, lambda have: [f for f in have if f != WORK_FINALIZER])
            self.seen.pop(cluster, None)
            return
        if WORK_FINALIZER not in work["metadata"].get("finalizers", []):
            self.set_finalizers(work, lambda have: [*have, WORK_FINALIZER])
            return  # its newest form comes next time
        self.apply(cluster, work, kube, namespace)

    def set_finalizers(self, work, change):
        wanted = change(work["metadata"].get("finalizers", []))
        version = work["metadata"]["resourceVersion"]
        path = f"{WORKS.format(work['metadata']['namespace'])}/{WORK}"
        self.hub.patch(path, {"metadata": {"finalizers": wanted, "resourceVersion": version}})

    def apply(self, cluster, work, kube, namespace):
        refused = self.refuse.get(cluster)
        generation = (work["metadata"]["uid"], work["metadata"]["generation"], refused)
        before = self.seen.get(cluster)
        if not refused and (before is None or before[0] != generation):
            for one in manifests(work):
                name = one["metadata"]["name"]
                if strategy_of(work, name)[0] != "ReadOnly":
                    kube.apply(CONFIGMAPS.format(namespace), name, {"data": one["data"]})
        report = kube.find(f"{CONFIGMAPS.format(namespace)}/{STATUS_CONFIGMAP}")
        text = report and report["data"]["status"]
        if before != (generation, text):
            write_work_status(self.hub.kube, work, text, not refused, refused or "applied")
            self.seen[cluster] = (generation, text)
