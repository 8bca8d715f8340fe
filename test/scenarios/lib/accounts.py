"""ServiceAccounts on a real API server, their tokens, and what they may."""

import base64
import json
import subprocess
import time

RBAC = "apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "api/v1/namespaces/{}/serviceaccounts"
ISSUER = "https://kubernetes.default.svc"


def make_account(kube, account):
    """account: (namespace, name)."""
    namespace, name = account
    path = ACCOUNTS.format(namespace)
    return kube.find(f"{path}/{name}") or kube.call("POST", path, {"metadata": {"name": name}})


def delete_account(kube, account):
    kube.delete(f"{ACCOUNTS.format(account[0])}/{account[1]}")


def token_of(kube, account):
    """A token of an account, which is made."""
    make_account(kube, account)
    path = f"{ACCOUNTS.format(account[0])}/{account[1]}/token"
    return kube.call("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]


def signed_token(kube, account, seconds):
    """One that expires in so many seconds, be it in the past: signed here with the API server's key, which issues none
    for less than ten minutes."""
    namespace, name = account
    uid = make_account(kube, account)["metadata"]["uid"]
    claims = {
        "iss": ISSUER,
        "aud": [ISSUER],
        "sub": f"system:serviceaccount:{namespace}:{name}",
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        "iat": int(time.time()) - 7200,
        "nbf": int(time.time()) - 7200,
        "exp": int(time.time()) + seconds,
    }
    parts = (base64url(json.dumps(part).encode()) for part in ({"alg": "ES256", "typ": "JWT"}, claims))
    text = ".".join(parts)
    return f"{text}.{base64url(es256(text.encode(), kube.state / 'service-account.key'))}"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def es256(data, key):
    """The two numbers of an ECDSA signature (RFC 7518, section 3.4); openssl gives them as a DER sequence."""
    command = ["openssl", "dgst", "-sha256", "-sign", key]
    der = subprocess.run(command, input=data, capture_output=True, check=True, timeout=60).stdout
    r = der[4 : 4 + der[3]]
    s = der[6 + der[3] :]
    return b"".join(int.from_bytes(n, "big").to_bytes(32, "big") for n in (r, s))


def account_subject(account):
    return {"kind": "ServiceAccount", "namespace": account[0], "name": account[1]}


def user_subject(name):
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def bind(kube, name, role, *subjects):
    """Binds a ClusterRole."""
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    kube.apply(f"{RBAC}/clusterrolebindings", name, {"roleRef": ref, "subjects": list(subjects)})


def unbind(kube, name):
    kube.delete(f"{RBAC}/clusterrolebindings/{name}")


def name_of_right(name, verb, path):
    return f"{name}-{verb}{path.replace('/', '-')}"


def allow_subject(kube, subject, verb, path):
    """Lets it do this with a nonResourceURL."""
    name = name_of_right(subject["name"], verb, path)
    kube.apply(f"{RBAC}/clusterroles", name, {"rules": [{"nonResourceURLs": [path], "verbs": [verb]}]})
    bind(kube, name, name, subject)


def allow(kube, account, verb, path):
    allow_subject(kube, account_subject(account), verb, path)


def allow_user(kube, user, verb, path):
    allow_subject(kube, user_subject(user), verb, path)


def forbid(kube, account, verb, path):
    unbind(kube, name_of_right(account[1], verb, path))
