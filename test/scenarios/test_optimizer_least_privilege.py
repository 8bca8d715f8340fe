"""The chart's rights are all that the optimizer needs, and it needs each of them: without one it says which, and nothing
is changed."""

import contextlib

from lib.guide import POWER, running_guide
from lib.helm import named, render
from lib.hub import static_scorer
from lib.optimizer import running_optimizer
from lib.rights import grant, kubeconfig_of, rights_of
from lib.wait import eventually, wait_until

NAMESPACE = "guide-rights"
ACCOUNT = NAMESPACE, "optimizer"
NAME = "dynamic-scoring-framework-mcp"
REVIEWS = "apis/authorization.k8s.io/v1/subjectaccessreviews"


def chart_rights():
    """(those to read everywhere, those to write in a namespace)"""
    objects = render(values={"optimizer": {"enabled": True, "writeNamespaces": [NAMESPACE]}})
    return tuple(rights_of(kind, named(objects, kind, NAME)["rules"]) for kind in ("ClusterRole", "Role"))


def give(kube, everywhere, here):
    grant(kube, "everywhere", None, ACCOUNT, NAMESPACE, everywhere)
    grant(kube, "namespace", NAMESPACE, ACCOUNT, NAMESPACE, here)


def is_allowed(kube, right):
    asked = {"namespace": NAMESPACE, "verb": right.verb, "group": right.group, "resource": right.resource}
    spec = {"user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT[1]}", "resourceAttributes": asked}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return kube.call("POST", REVIEWS, body)["status"]["allowed"]


def refused(answer, right):
    assert answer.status == 403, answer.text
    assert right.refused() in answer.json["detail"], answer.text


def test_each_right_to_write(kube):
    reads, writes = chart_rights()
    with running_guide(kube, NAMESPACE) as guide:
        give(kube, reads, writes)
        flags = kubeconfig_of(kube, ACCOUNT, f"{kube.folder}/optimizer-kubeconfig"), f"--write-namespace={NAMESPACE}"
        with running_optimizer(*flags) as optimizer:
            optimizer.wait_ready()

            def check_known():
                answer = optimizer.post("/plan", guide.request())
                assert answer.status == 200, answer.text

            def without(right, check):
                give(kube, reads, [r for r in writes if r != right])
                wait_until(lambda: not is_allowed(kube, right), f"{right} is taken")
                before = guide.made()
                check(optimizer.post("/optimize", guide.request(POWER)), right)
                assert guide.made() == before
                give(kube, reads, writes)
                wait_until(lambda: is_allowed(kube, right), f"{right} is given")

            eventually(check_known)
            for right in [r for r in writes if r.verb == "create"]:
                without(right, refused)
            assert optimizer.post("/optimize", guide.request()).json["applied"]
            for right in [r for r in writes if r.verb != "create"]:
                without(right, refused)
            assert optimizer.post("/optimize", guide.request(POWER)).json["applied"]
            assert len(optimizer.post("/reset", {"namespace": NAMESPACE}).json["deleted"]) == 6
            assert {(r.resource, r.verb) for r in writes} == {
                ("placements", "create"),
                ("placements", "patch"),
                ("placements", "delete"),
                ("placementbindings", "create"),
                ("placementbindings", "delete"),
            }
            assert "cannot list" not in optimizer.log()


def test_each_right_to_read(kube):
    """All of them at once: the log says which are missing, and a request that needs one ends with the API server's words."""
    reads, writes = chart_rights()
    with running_guide(kube, NAMESPACE) as guide:
        assert {r.verb for r in reads} == {"list", "get"}
        give(kube, [r for r in reads if r.verb != "list"], writes)
        missing = [r for r in reads if r.verb == "list"]
        wait_until(lambda: not any(is_allowed(kube, r) for r in missing), "rights to list are taken")
        user = kubeconfig_of(kube, ACCOUNT, f"{kube.folder}/optimizer-kubeconfig")
        with running_optimizer(user) as optimizer:

            def check():
                log = optimizer.log().replace('\\"', '"')
                assert [r for r in missing if r.refused() not in log] == []

            eventually(check)
            answer = optimizer.post("/plan", guide.request())
            assert answer.status == 403 and missing[0].group in answer.json["detail"], answer.text


def test_the_right_to_read_the_reports_of_agents(hub):
    """Without it, the explanation says so and goes on."""
    reads, _ = chart_rights()
    unread = 'cannot get resource "manifestworks"'
    with contextlib.ExitStack() as stack:
        hub.add_namespace(NAMESPACE)
        stack.callback(hub.remove_namespace, NAMESPACE)
        hub.add_cluster("guide-explained")
        stack.callback(hub.remove_cluster, "guide-explained", namespace=True)
        hub.apply_scorer("guide-explained", static_scorer("http://127.0.0.1:1", "explained"))
        stack.callback(hub.delete_scorer, "guide-explained")
        for have in (reads, [r for r in reads if r.verb != "get"]):
            give(hub.kube, have, [])
            user = kubeconfig_of(hub.kube, ACCOUNT, f"{hub.kube.folder}/optimizer-kubeconfig")
            with running_optimizer(user) as optimizer:

                def check(o=optimizer, refused_there=have != reads):
                    answer = o.get("/scorers/explain?cluster=guide-explained&scorer=guide-explained")
                    assert answer.status == 200, answer.text
                    assert any(unread in i["finding"] for i in answer.json["items"]) == refused_there, answer.text

                eventually(check)
