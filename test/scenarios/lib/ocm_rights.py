"""The rights that Open Cluster Management 1.0 gives to its own programs, where they limit what a chart may hold: those of the add-on
manager on the hub and of the work agent on a managed cluster. They are listed in its repository, in manifests/. The work
agent also has those of all ClusterRoles with a certain label."""

ADDON_MANAGER = ("open-cluster-management-hub", "addon-manager-controller-sa")
WORK_AGENT = ("open-cluster-management-agent", "klusterlet-work-sa")

ADDON_MANAGER_RULES = """
/configmaps,events                                            get list watch create update delete deletecollection patch
/pods                                                         get
apps/replicasets                                              get
coordination.k8s.io/leases                                    get list watch create update patch
authorization.k8s.io/subjectaccessreviews                     get create
cluster.open-cluster-management.io/managedclusters,placements,placementdecisions  get list watch
addon.open-cluster-management.io/managedclusteraddons/finalizers,clustermanagementaddons/finalizers  update
addon.open-cluster-management.io/clustermanagementaddons/status,managedclusteraddons/status  update patch
addon.open-cluster-management.io/clustermanagementaddons      patch get list watch
addon.open-cluster-management.io/managedclusteraddons         get list watch create update delete
addon.open-cluster-management.io/addontemplates,addondeploymentconfigs  get list watch
work.open-cluster-management.io/manifestworks                 get list watch create update delete patch
certificates.k8s.io/certificatesigningrequests                create get list watch
certificates.k8s.io/certificatesigningrequests/approval,certificatesigningrequests/status  update
certificates.k8s.io/signers                                   approve sign
rbac.authorization.k8s.io/rolebindings                        get list watch create update delete
"""
# Beside Kubernetes' own ClusterRole `admin`.
WORK_AGENT_RULES = """
work.open-cluster-management.io/appliedmanifestworks          get list watch create update patch delete
work.open-cluster-management.io/appliedmanifestworks/status   patch update
work.open-cluster-management.io/appliedmanifestworks/finalizers  update
authorization.k8s.io/subjectaccessreviews                     create
/serviceaccounts                                              impersonate
apiextensions.k8s.io/customresourcedefinitions                get list watch create delete update
/namespaces                                                   create update patch delete
rbac.authorization.k8s.io/clusterrolebindings,rolebindings    get list watch create update patch delete
rbac.authorization.k8s.io/clusterroles,roles                  get list watch create update patch delete escalate bind
monitoring.coreos.com/servicemonitors                         get list watch create update patch delete
scheduling.k8s.io/priorityclasses                             get list watch create patch update delete
"""
RBAC = "apis/rbac.authorization.k8s.io/v1"
AGGREGATED = "open-cluster-management:klusterlet-work:aggregate"
AGGREGATE = {"open-cluster-management.io/aggregate-to-work": "true"}


def rule(line):
    """group/resource,resource/part  verb verb"""
    what, *verbs = line.split()
    group, _, resources = what.partition("/")
    return {"apiGroups": [group], "resources": resources.split(","), "verbs": verbs}


def bind(kube, account, role):
    namespace, name = account
    subject = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    kube.apply(f"{RBAC}/clusterrolebindings", f"{name}-{role}", {"roleRef": ref, "subjects": [subject]})


def grant(kube, account, rules):
    namespace, name = account
    kube.apply("api/v1/namespaces", namespace, {})
    kube.apply(f"api/v1/namespaces/{namespace}/serviceaccounts", name, {})
    kube.apply(f"{RBAC}/clusterroles", name, {"rules": [rule(line) for line in rules.strip().splitlines()]})
    bind(kube, account, name)


def aggregate(kube):
    kube.apply(f"{RBAC}/clusterroles", AGGREGATED, {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": AGGREGATE}]}})
    bind(kube, WORK_AGENT, AGGREGATED)
