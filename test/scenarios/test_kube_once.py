"""`agent --once` with a cluster's flags: one round of each scorer in its ConfigMap, printed as with a file; nothing is
written, neither on the cluster nor on the hub."""

import json

import pytest

from lib.agent import PROGRAM, summary
from lib.fake import results
from lib.kube import CLUSTER, NAMESPACE
from lib.process import environment, run
from lib.replicas import LEASE

TOKEN = {"scoringEndpointAuthName": "token", "scoringEndpointAuthKey": "key"}


def once(*flags, **env):
    return run(PROGRAM, "agent", "--once", *flags, env=environment(**env))


def test_the_same_output_as_with_a_file(kube, fake, tmp_path):
    """The tokens come from Secrets, which are read before the rounds begin."""
    kube.delete(LEASE)
    kube.secret("token", key="s3cret")
    a = summary("a", fake.on("/a", results({"node": "n"}, 1.5)), interval=600, **TOKEN)
    b = summary("b", fake.on("/b", results({}, 2)), interval=600)
    kube.configure(a, b)
    ended = once(*kube.flags(), "--output=json")
    assert ended.returncode == 0, ended.stderr
    assert [(s["scoreName"], s["state"]) for s in json.loads(ended.stdout)["scorers"]] == [("a", "ok"), ("b", "ok")]
    assert [r.token for r in fake.requests("/a")] == ["Bearer s3cret"]
    assert len(fake.requests("/b")) == 1
    assert f"configmap={NAMESPACE}/dynamic-scoring-config" in ended.stderr and "file=" not in ended.stderr
    assert kube.objects() == {} and kube.report() == {}
    assert once(*kube.flags(), "--leader-elect", "--output=json").returncode == 0
    assert kube.find(LEASE) is None
    assert len(fake.requests("/b")) == 2
    file, key = tmp_path / "summaries", tmp_path / "token" / "key"
    key.parent.mkdir()
    key.write_text("s3cret")
    file.write_text(json.dumps([a, b]))
    of_file = once(f"--config.file={file}", f"--cluster-name={CLUSTER}", f"--secrets.dir={tmp_path}")
    of_cluster = once(*kube.flags())

    def without_times(text):
        return [line for line in text.splitlines() if " in " not in line and " ms" not in line]

    assert without_times(of_cluster.stdout) == without_times(of_file.stdout)
    # What the pod's environment says does not turn a file's check into the cluster's.
    assert once(
        f"--config.file={file}", f"--cluster-name={CLUSTER}", HUB_KUBECONFIG="/none", INSTALL_NAMESPACE="none"
    ).stdout.count("secret") >= 1


@pytest.mark.parametrize(
    "what, flags, words",
    [
        ("nowhere", ("--managed-kubeconfig=/none/kubeconfig",), "/none/kubeconfig: No such file or directory"),
        ("absent", (), "ConfigMap not found"),
        ("invalid", (), "[0].scoringInterval: expected "),
        ("forbidden", (), r'forbidden: cannot list resource \"configmaps\"'),
        ("outside", (f"--addon-namespace={NAMESPACE}",), "missing flag: --config.file=FILE or, outside a pod, --managed-kubeconfig=FILE"),
    ],
)
def test_what_can_be_wrong(kube, what, flags, words):
    if what == "invalid":
        kube.configure(summary("a", "http://h/s", interval="often"))
    if what == "forbidden":
        flags = kube.flags(managed=kube.kubeconfig("nobody"))
    ended = once(*(flags or kube.flags()), *(("--cluster-name=c",) if flags else ()))
    assert (ended.returncode, ended.stdout) == (2 if what == "outside" else 1, "")
    assert words in ended.stderr


def test_what_can_be_wrong_with_a_secret(kube, fake):
    """The Secret and its key are named in one message, whatever is wrong with them."""
    kube.secret("words", key="two words")
    kube.secret("other", key="x")
    cases = {"words": "it contains white space", "other": "key not found", "absent": "Secret not found"}
    kube.configure(
        *(
            summary(
                name,
                fake.on("/s", results({}, 1)),
                scoringEndpointAuthName=name,
                scoringEndpointAuthKey="no" if name == "other" else "key",
            )
            for name in cases
        )
    )
    ended = once(*kube.flags(), "--output=json")
    assert ended.returncode == 1
    for s in json.loads(ended.stdout)["scorers"]:
        name, text = s["scoreName"], s["error"]["text"]
        assert f'secret "{NAMESPACE}/{name}", key "{"no" if name == "other" else "key"}": ' in text and cases[name] in text
    assert fake.requests("/s") == []


def test_an_api_server_that_is_away_or_another_server(kube, fake, tmp_path):
    http_port = fake.url.rsplit(":", 1)[1].strip("/")
    config = kube.own_kubeconfig("managed", tmp_path)
    text = config.read_text()
    for port, words in (
        ("1", "could not connect to 127.0.0.1:1: connection refused"),
        (http_port, f"TLS handshake with 127.0.0.1:{http_port} failed; if it is an http port, use http://"),
    ):
        config.write_text(text.replace(str(kube.port), port))
        ended = once(*kube.flags(managed=config))
        assert (ended.returncode, ended.stdout) == (1, "")
        assert "ConfigMap not read" in ended.stderr and words in ended.stderr
