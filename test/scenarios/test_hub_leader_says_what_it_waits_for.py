"""A leader that cannot know all objects yet changes nothing, and its log says once what it waits for."""

from lib.scorers import RBAC, limited_user
from lib.wait import LONG

WAITS = "leading, but not active yet: clusters keep what they have, and nothing new is distributed"


def test_a_kind_that_it_may_not_list(hub, start_controller):
    user = limited_user(hub, [])
    role = f"{RBAC}/clusterroles", "test-look"
    rules = hub.kube.find("/".join(role))["rules"]
    hub.kube.apply(*role, {"rules": [r for r in rules if "managedclusters" not in r["resources"]]})
    controller = start_controller("--leader-elect", kubeconfig=user, start=False)
    controller.launch()
    controller.wait_until(lambda: WAITS in controller.log(), "it says so", LONG)
    assert f'msg="{WAITS}" waits_for=ManagedClusters\n' in controller.log()
    assert "msg=active" not in controller.log()
    hub.kube.apply(*role, {"rules": rules})
    controller.wait_until(lambda: "msg=active" in controller.log(), "it goes on, and says so", LONG)
    assert controller.log().count(WAITS) == 1
