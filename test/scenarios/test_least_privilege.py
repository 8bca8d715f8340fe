"""Each right that the chart grants is needed: without it, a promise is not kept, and the program's log quotes the API
server. With all of them, every promise is kept."""

import base64
import concurrent.futures
import contextlib
import itertools
import json

import pytest
from lib.accounts import allow, token_of
from lib.agent import running_agent, summary
from lib.controller import running_controller
from lib.fake import answer, plain, results
from lib.faketime import Clock
from lib.hub import condition_of
from lib.kube import DOMAIN, MERGE_PATCH, SCORES, Refused
from lib.process import LOG_TAIL
from lib.rights import charts_rights, grant, kubeconfig_of
from lib.scorers import api_config, scoring
from lib.wait import LONG, wait_until
from lib.work import NAMESPACES, OWNED, WORK, WORKS

VALUES = {  # those that bring more rights, and those that limit them to names
    "agent": {"replicas": 2, "rbac": {"secretNames": ["token"]}},
    "controller": {"configAuthSecrets": ["api"]},
}
UP = "dynamic_scoring_kubernetes_up"
LABEL = f"{DOMAIN}/managed-by"
ADDON = "dynamic-scoring-framework"
CRS = f"apis/{DOMAIN}/v1alpha1/namespaces"
AT_ONCE = 8  # programs, each with a sanitizer
REVIEWS = [("tokenreviews", "create"), ("subjectaccessreviews", "create")]
SWEEPS = [("addonplacementscores", "list"), ("addonplacementscores", "delete")]  # of the controller
EVERY = 0.2  # seconds between two looks
number = itertools.count()


class Case:
    """A user with all rights but one (or with all), the program that runs as this user, and what it should do.

    A promise is (what must happen first, what is promised); each returns something true once it has happened."""

    def __init__(self, kube, fake, folder, rights, missing=None):
        self.kube, self.fake, self.missing = kube, fake, missing
        self.rights = [r for r in rights if r != missing]
        self.n = next(number)
        self.folder = folder / str(self.n)
        self.folder.mkdir()
        self.program = None

    def namespace(self, name):
        with contextlib.suppress(Refused):
            self.kube.call("POST", NAMESPACES, {"metadata": {"name": name, "labels": OWNED}})
        return name

    def user(self, namespaces):
        """namespaces: {role: where it holds}"""
        own = namespaces["namespace" if "namespace" in namespaces else "cluster"]
        account = own, "program"
        for role, where in namespaces.items():
            grant(self.kube, role, where, account, f"case-{self.n}", [r for r in self.rights if r.role == role])
        return kubeconfig_of(self.kube, account, self.folder / "kubeconfig")

    def secret(self, namespace, name, **values):
        data = {k: base64.b64encode(v.encode()).decode() for k, v in values.items()}
        self.kube.apply(f"api/v1/namespaces/{namespace}/secrets", name, {"data": data})

    def tokens(self, path):
        return {r.token for r in self.fake.requests(f"/{self.n}{path}")}

    def sees(self, resource):
        """The objects of a resource are followed."""
        return self.program.metric(UP, resource=resource) == 1

    def is_refused(self):
        return self.missing.refused() in self.program.log().replace('\\"', '"')

    def check(self):
        try:
            self.check_promises()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.program.log()[-LOG_TAIL:]}") from None

    def check_promises(self):
        """Either all promises are kept, or the missing right's is not, once the API server has refused what needs it."""
        for what, (first, promised) in self.promises().items():
            first()
            if not self.missing or what != self.broken():
                wait_until(promised, f"{self.name()}: {what}", LONG, EVERY)
                continue
            wait_until(self.is_refused, f"{self.name()}: the API server refuses {self.missing}", LONG, EVERY)
            wait_until(lambda p=promised: not p(), f"{self.missing} is needed for: {what}", LONG, EVERY)
            return
        assert not self.missing, f"{self.missing} has no promise"

    def broken(self):
        followed = f"{self.missing.resource} are followed" if self.missing.verb in ("list", "watch") else None
        return self.needed_for().get((self.missing.resource, self.missing.verb), followed)

    def name(self):
        return f"without {self.missing}" if self.missing else "with all rights"


def nothing():
    return True


# ---- The agent ----


class AgentCase(Case):
    def prepare(self):
        self.hub_namespace = self.namespace(f"cluster-{self.n}")
        self.own_namespace = self.namespace(f"agent-{self.n}")
        user = self.user({"hub": self.hub_namespace, "cluster": self.own_namespace, "everywhere": None})
        self.fake.on(f"/{self.n}/s", results({}, 1))
        self.secret(self.own_namespace, "token", key="first")
        self.leave_old_score()
        self.configure("a", "old", "goes")
        return (
            f"--hub-kubeconfig={user}",
            f"--managed-kubeconfig={user}",
            f"--cluster-name={self.hub_namespace}",
            f"--addon-namespace={self.own_namespace}",
            f"--addon-name={ADDON}",
            "--adopt-unowned-scores",
            "--leader-elect",
            "--log.level=debug",
        )

    def run(self):
        with running_agent({}, *self.prepare()) as self.program:
            self.check()

    def leave_old_score(self):
        """As the reference leaves it: it names no owner."""
        body = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
        self.kube.call("POST", SCORES.format(self.hub_namespace), {**body, "metadata": {"name": "old"}})

    def configure(self, *names):
        token = {"scoringEndpointAuthName": "token", "scoringEndpointAuthKey": "key"}
        url = f"{self.fake.url}/{self.n}/s"
        listed = [summary(name, url, interval=1, **token) for name in names]
        path = f"api/v1/namespaces/{self.own_namespace}/configmaps"
        self.kube.apply(path, "dynamic-scoring-config", {"data": {"summaries": json.dumps(listed)}})

    def items(self, name):
        found = self.kube.object(name, self.hub_namespace) or {}
        return {s["name"]: s["value"] for s in found.get("status", {}).get("scores", [])}

    def label(self, name):
        found = self.kube.object(name, self.hub_namespace) or {}
        return found.get("metadata", {}).get("labels", {}).get(LABEL)

    def take_label(self):
        path = f"{SCORES.format(self.hub_namespace)}/a"
        self.kube.call("PATCH", path, {"metadata": {"labels": {LABEL: None}}}, MERGE_PATCH)

    def report(self):
        path = f"api/v1/namespaces/{self.own_namespace}/configmaps/dynamic-scoring-status"
        return (self.kube.find(path) or {}).get("data", {}).get("status", "")

    def lease(self):
        found = self.kube.call("GET", f"apis/coordination.k8s.io/v1/namespaces/{self.own_namespace}/leases")["items"]
        return found[0]["spec"] if found else {}

    def promises(self):
        return {
            "one replica leads": (nothing, lambda: self.program.metric("dynamic_scoring_leader") == 1),
            "configmaps are followed": (nothing, lambda: self.sees("configmaps")),
            "addonplacementscores are followed": (nothing, lambda: self.sees("addonplacementscores")),
            "tokens are sent": (nothing, lambda: self.tokens("/s") == {"Bearer first"}),
            "a score has an object": (nothing, lambda: self.kube.object("a", self.hub_namespace)),
            "an object has its scores": (nothing, lambda: self.items("a") == {"a": 1}),
            "an old score is adopted": (nothing, lambda: self.items("old") == {"old": 1}),
            "a new token is sent": (
                lambda: self.secret(self.own_namespace, "token", key="second"),
                lambda: "Bearer second" in self.tokens("/s"),
            ),
            "a label that is taken comes back": (self.take_label, lambda: self.label("a") == "agent"),
            "the hub gets a report": (nothing, self.report),
            "a removed scorer's score goes": (
                lambda: self.configure("a", "old"),
                lambda: not self.kube.object("goes", self.hub_namespace),
            ),
            "the report follows": (nothing, lambda: '"a"' in self.report() and '"goes"' not in self.report()),
            "the leader stays": (nothing, lambda: self.lease()["renewTime"] > self.lease()["acquireTime"]),
        }

    @staticmethod
    def needed_for():
        scores = "addonplacementscores"
        return {
            ("leases", "get"): "one replica leads",
            ("leases", "create"): "one replica leads",
            ("leases", "update"): "the leader stays",
            (scores, "create"): "a score has an object",
            (scores, "get"): "an old score is adopted",
            (scores, "patch"): "an old score is adopted",
            (f"{scores}/status", "patch"): "an object has its scores",
            (scores, "delete"): "a removed scorer's score goes",
            ("secrets", "list"): "tokens are sent",
            ("secrets", "watch"): "a new token is sent",
            ("configmaps", "create"): "the hub gets a report",
            ("configmaps", "patch"): "the hub gets a report",
        }


# ---- The controller ----


class ControllerCase(Case):
    """Its clusters are those of all cases: see test_of_the_controller()."""

    scorer = "s"

    def prepare(self):
        self.own_namespace = self.namespace(f"hub-{self.n}")
        user = self.user({"everywhere": None, "namespace": self.own_namespace})
        self.secret(self.own_namespace, "api", key="first")
        self.serve("cpu")
        self.fake.on("/healthz", plain("ok"))
        self.put("dynamicscorers", "DynamicScorer", self.scorer, self.spec(f"/{self.n}/config"))
        self.put("dynamicscorers", "DynamicScorer", "fails", {**self.spec("/nowhere"), "placements": ["nowhere"]})
        self.put("dynamicscoringconfigs", "DynamicScoringConfig", "dynamic-scoring-config", {})
        return user

    def run(self):
        user = self.prepare()
        flags = (f"--namespace={self.own_namespace}", "--leader-elect", f"--addon-name={ADDON}", "--log.level=debug")
        with running_controller(self.kube, *flags, kubeconfig=user, start=False) as self.program:
            self.program.launch()
            wait_until(lambda: self.program.metric("dynamic_scoring_build_info"), "the controller runs")
            self.check()
            self.finish()

    def is_refused(self):
        """Events are best effort: only a metric tells of those that were refused. Tokens are the users' own trouble: a
        condition tells."""
        if self.missing.resource == "events":
            return self.program.metric("dynamic_scoring_hub_events_dropped_total")
        if self.missing.resource == "secrets":
            found = condition_of(self.get("dynamicscorers", self.scorer), "ConfigSynced")
            return found and self.missing.refused() in found[2]
        return super().is_refused()

    def finish(self):
        """Before the next controller meets the same clusters."""
        path = f"{CRS}/{self.own_namespace}/dynamicscoringconfigs"
        for one in self.kube.call("GET", path)["items"]:
            try:
                no_finalizers = {"metadata": {"finalizers": None}}
                self.kube.call("PATCH", f"{path}/{one['metadata']['name']}", no_finalizers, MERGE_PATCH)
            except Refused as why:
                assert why.status == 404, why  # the controller has let it go meanwhile
        self.kube.call("DELETE", path)

    def serve(self, score_name):
        about = scoring(score_name, path="/scoring")
        self.fake.on(f"/{self.n}/config", answer(api_config(score_name, source={"type": "None"}, scoring=about)))

    def spec(self, path):
        auth = {"tokenSecretRef": {"name": "api", "key": "key"}}
        return {"configURL": self.fake.url + path, "configSyncMode": "Full", "configAuth": auth}

    def put(self, plural, kind, name, spec):
        body = {"apiVersion": f"{DOMAIN}/v1alpha1", "kind": kind, "spec": spec}
        self.kube.apply(f"{CRS}/{self.own_namespace}/{plural}", name, body)

    def get(self, plural, name):
        return self.kube.find(f"{CRS}/{self.own_namespace}/{plural}/{name}") or {}

    def work_text(self):
        return str((self.kube.find(f"{WORKS.format('c1')}/{WORK}") or {}).get("spec", ""))

    def lease(self):
        path = f"apis/coordination.k8s.io/v1/namespaces/{self.own_namespace}/leases/dynamic-scoring-controller"
        return (self.kube.find(path) or {}).get("spec", {})

    def rename(self):
        """The API's /config has another score name, which a changed DynamicScorer has read at once."""
        self.serve("other")
        spec = {"spec": {"configURL": f"{self.fake.url}/{self.n}/config?again"}}
        self.kube.call("PATCH", f"{CRS}/{self.own_namespace}/dynamicscorers/{self.scorer}", spec, MERGE_PATCH)

    def delete_config(self):
        self.kube.delete(f"{CRS}/{self.own_namespace}/dynamicscoringconfigs/dynamic-scoring-config")

    def events(self):
        return self.kube.call("GET", f"apis/events.k8s.io/v1/namespaces/{self.own_namespace}/events")["items"]

    def promises(self):
        config = "dynamic-scoring-config"
        kinds = ("dynamicscorers", "dynamicscoringconfigs", "managedclusters", "managedclusteraddons", "manifestworks")
        kinds += ("placements", "placementdecisions")
        return {
            **{f"{kind} are followed": (nothing, lambda k=kind: self.sees(k)) for kind in kinds},
            "one replica leads": (nothing, lambda: self.program.metric("dynamic_scoring_hub_leader") == 1),
            "/config is asked with its token": (nothing, lambda: self.tokens("/config") == {"Bearer first"}),
            "a DynamicScorer has conditions": (
                nothing,
                lambda: condition_of(self.get("dynamicscorers", self.scorer), "ConfigSynced"),
            ),
            "the DynamicScoringConfig has a finalizer": (
                nothing,
                lambda: self.get("dynamicscoringconfigs", config)["metadata"].get("finalizers"),
            ),
            "the DynamicScoringConfig has conditions": (
                nothing,
                lambda: condition_of(self.get("dynamicscoringconfigs", config), "Ready"),
            ),
            "failures are Events": (nothing, self.events),
            **self.promises_of_clusters(),
            "the leader stays": (nothing, lambda: self.lease()["renewTime"] > self.lease()["acquireTime"]),
        }

    def promises_of_clusters(self):
        return {}

    @staticmethod
    def needed_for():
        return {
            ("leases", "get"): "one replica leads",
            ("leases", "create"): "one replica leads",
            ("leases", "update"): "the leader stays",
            ("secrets", "get"): "/config is asked with its token",
            ("dynamicscorers/status", "patch"): "a DynamicScorer has conditions",
            ("dynamicscoringconfigs/status", "patch"): "the DynamicScoringConfig has conditions",
            ("dynamicscoringconfigs", "patch"): "the DynamicScoringConfig has a finalizer",
            ("events", "create"): "failures are Events",
            ("manifestworks", "create"): "a cluster gets its ManifestWork",
            ("manifestworks", "patch"): "a changed score name reaches it",
            ("manifestworks", "delete"): "it goes with the DynamicScoringConfig",
        }


class LoneControllerCase(ControllerCase):
    """No other controller runs."""

    def promises_of_clusters(self):
        return {
            "a cluster gets its ManifestWork": (nothing, lambda: '"cpu"' in self.work_text()),
            "a changed score name reaches it": (self.rename, lambda: '"other"' in self.work_text()),
            "it goes with the DynamicScoringConfig": (self.delete_config, lambda: not self.work_text()),
        }

    def finish(self):
        super().finish()
        self.kube.delete(f"{WORKS.format('c1')}/{WORK}")


class SweepCase(ControllerCase):
    """A cluster has lost the agent's add-on more than ten minutes ago, by a clock that the test moves."""

    def run(self):
        self.clock = Clock(self.folder)
        flags = (f"--namespace={self.namespace(f'hub-{self.n}')}", f"--addon-name={ADDON}")
        user = self.prepare()
        body = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
        metadata = {"labels": {LABEL: "agent"}, "annotations": {f"{DOMAIN}/owner": f"dynamic-scoring/{ADDON}"}}
        self.kube.delete(f"{SCORES.format('left')}/left")
        self.kube.call("POST", SCORES.format("left"), {**body, "metadata": {"name": "left", **metadata}})
        with running_controller(self.kube, *flags, kubeconfig=user, env=self.clock.env) as self.program:
            wait_until(lambda: '"cpu"' in self.work_text(), "it has planned", LONG)
            self.check()
            self.finish()

    def promises(self):
        return {"scores of an agent that has gone go": (nothing, self.is_swept)}

    def is_swept(self):
        return self.clock.passes(11 * 60, lambda: not self.kube.object("left", "left"))

    def is_refused(self):
        return self.clock.passes(11 * 60, super().is_refused)

    @staticmethod
    def needed_for():
        return dict.fromkeys(SWEEPS, "scores of an agent that has gone go")


# ---- Those who ask ----


class ReviewCase(Case):
    """Of a program that answers whom the API server allows it: the rights that this takes, beside all others."""

    def promises(self):
        return {"a reader gets /metrics": (nothing, self.reads)}

    def reads(self):
        account = "default", f"reader-{self.n}"
        allow(self.kube, account, "get", "/metrics")
        token = token_of(self.kube, account)
        return self.program.get("/metrics", Authorization=f"Bearer {token}").status == 200

    def is_refused(self):
        self.reads()  # the API server is asked once somebody asks the program
        return super().is_refused()

    @staticmethod
    def needed_for():
        return dict.fromkeys(REVIEWS, "a reader gets /metrics")


class AgentReviewCase(ReviewCase, AgentCase):
    def run(self):
        with running_agent({}, *self.prepare(), "--web.kubernetes-auth", start=False) as self.program:
            self.program.launch()
            self.check()


class ControllerReviewCase(ReviewCase, ControllerCase):
    def run(self):
        user = self.prepare()
        flags = (f"--namespace={self.own_namespace}", "--web.kubernetes-auth")
        with running_controller(self.kube, *flags, kubeconfig=user) as self.program:
            self.check()
            self.finish()


# ---- Tests ----


@pytest.fixture(scope="module")
def rights():
    return charts_rights(**VALUES)


def run_all(cases):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for running in [pool.submit(case.run) for case in cases]:
            running.result()


def test_of_the_agent(kube, fake, tmp_path, rights):
    run_all(AgentCase(kube, fake, tmp_path, rights[1], missing) for missing in [None, *rights[1]])


def test_of_the_controller(hub, fake, tmp_path, rights):
    """Those that write ManifestWorks one after the other, and those that delete scores. The others write the same ones,
    which none of them needs."""
    hub.add_cluster("c1")
    hub.set_addon("c1", "True")
    hub.add_cluster("left")
    writes = [r for r in rights[0] if r.resource == "manifestworks" and r.verb not in ("list", "watch")]
    for missing in [None, *writes]:
        LoneControllerCase(hub.kube, fake, tmp_path, rights[0], missing).run()
    sweeps = [r for r in rights[0] if (r.resource, r.verb) in SWEEPS]
    for missing in [None, *sweeps]:
        SweepCase(hub.kube, fake, tmp_path, rights[0], missing).run()
    others = [r for r in rights[0] if r not in writes and r not in sweeps]
    run_all(ControllerCase(hub.kube, fake, tmp_path, rights[0], missing) for missing in others)


def test_of_those_who_ask(hub, fake, tmp_path, rights):
    """Of both programs, with the values that secure them."""
    web = {"web": {"kubernetesAuth": {"enabled": True}}}
    secured = charts_rights(**{part: {**values, **web} for part, values in VALUES.items()})
    for case, with_reviews, without in zip((ControllerReviewCase, AgentReviewCase), secured, rights, strict=True):
        more = [right for right in with_reviews if right not in without]
        assert [(right.resource, right.verb) for right in more] == REVIEWS
        run_all(case(hub.kube, fake, tmp_path, with_reviews, missing) for missing in [None, *more])
