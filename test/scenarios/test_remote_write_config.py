"""Each mistake under remoteWrite is an error with line, column and key before anything starts."""

import re
import subprocess
import threading
import time

import pytest
from lib import remote, remote_wire

HEAD = "clusterName: c1\nsummaries: []\nremoteWrite:\n"
URL = "- url: http://127.0.0.1:1/write\n"

GOOD = """- url: https://hub.example.net/api/v1/write?tenant=7
  name: hub
  remote_timeout: 10s
  headers: {X-Scope-OrgID: t1}
  basic_auth: {username: u, password: p}
  tls_config: {insecure_skip_verify: true, server_name: hub}
  proxy_url: http://proxy.example.net:3128
  protocol: auto
  queue_config: {max_samples_per_send: 2000, batch_send_deadline: 5s, min_backoff: 30ms, max_backoff: 5s,
    sample_age_limit: 2h, max_spool_bytes: 64MiB, full_policy: drop_newest}
  external_labels: {zone: z1}
  send_health_metrics: true
  metadata_config: {send: true, send_interval: 1m}
  write_relabel_configs:
  - {source_labels: [ds_node], regex: 'a.*', action: keep}
  - {regex: 'ds_(.+)', action: labelmap, replacement: '$1'}
- url: http://hub2:8428/api/v1/write
  authorization: {type: Bearer, credentials_file: /run/secrets/hub}
"""

# What follows HEAD; the line and column of the complaint; what it must speak of.
BAD = {
    "no list": ("  url: http://a/\n", (4, 3), "remoteWrite"),
    "a word": ("- hub\n", (4, 3), ""),
    "no url": ("- name: hub\n", (4, 3), "url"),
    "unknown key": (URL + "  remote_timeouts: 5s\n", (5, 3), "remote_timeouts"),
    "unknown key in queue_config": (URL + "  queue_config:\n    shards: 5\n", (6, 5), "shards"),
    "unknown key in tls_config": (URL + "  tls_config:\n    ca: x\n", (6, 5), "ca"),
    "unknown key in authorization": (URL + "  authorization:\n    token: x\n", (6, 5), "token"),
    "unknown key in basic_auth": (URL + "  basic_auth:\n    user: x\n", (6, 5), "user"),
    "unknown key in metadata_config": (URL + "  metadata_config:\n    interval: 1m\n", (6, 5), "interval"),
    "a key twice": (URL + "  name: a\n  name: b\n", (6, 3), "name"),
    "no scheme": ("- url: hub.example.net/write\n", (4, 8), "url"),
    "another scheme": ("- url: ftp://hub.example.net/write\n", (4, 8), "ftp"),
    "a file": ("- url: file:///etc/passwd\n", (4, 8), "file"),
    "no host": ("- url: http:///write\n", (4, 8), "url"),
    "a bad port": ("- url: http://hub:99999/write\n", (4, 8), "url"),
    "a blank in the url": ("- url: 'http://hub/a b'\n", (4, 8), "url"),
    "an empty url": ("- url: ''\n", (4, 8), "url"),
    "a name twice": (URL + "  name: a\n" + URL + "  name: a\n", (6, 3), "name"),
    "a name with a slash": (URL + "  name: ../a\n", (5, 9), "name"),
    "Content-Type": (URL + "  headers:\n    Content-Type: text/plain\n", (6, 5), "Content-Type"),
    "content-encoding": (URL + "  headers:\n    content-encoding: gzip\n", (6, 5), "content-encoding"),
    "the version": (URL + "  headers:\n    x-PROMETHEUS-remote-write-Version: 9\n", (6, 5), "ersion"),
    "VictoriaMetrics' version": (URL + "  headers:\n    X-VictoriaMetrics-Remote-Write-Version: 9\n", (6, 5), "ersion"),
    "User-Agent": (URL + "  headers:\n    User-Agent: me/1\n", (6, 5), "User-Agent"),
    "Content-Length": (URL + "  headers:\n    Content-Length: '0'\n", (6, 5), "Content-Length"),
    "Host": (URL + "  headers:\n    Host: other\n", (6, 5), "Host"),
    "Transfer-Encoding": (URL + "  headers:\n    Transfer-Encoding: chunked\n", (6, 5), "Transfer-Encoding"),
    "a line end in a header": (URL + '  headers:\n    X-A: "a\\r\\nX-B: b"\n', (6, 10), "X-A"),
    "a blank in a header's name": (URL + "  headers:\n    'X A': b\n", (6, 5), "headers[...]"),
    "two credentials": (URL + "  basic_auth: {username: u}\n  authorization: {credentials: c}\n", None, "authorization"),
    "credentials and a file": (URL + "  authorization: {credentials: c, credentials_file: f}\n", None, "credentials"),
    "no such protocol": (URL + "  protocol: '3.0'\n", (5, 13), "auto"),
    "no such policy": (URL + "  queue_config: {full_policy: explode}\n", (5, 31), "drop_oldest"),
    "no duration": (URL + "  remote_timeout: soon\n", (5, 19), "remote_timeout"),
    "zero time": (URL + "  remote_timeout: 0s\n", (5, 19), "remote_timeout"),
    "a negative size": (URL + "  queue_config: {max_samples_per_send: -1}\n", (5, 40), "max_samples_per_send"),
    "zero samples": (URL + "  queue_config: {max_samples_per_send: 0}\n", (5, 40), "max_samples_per_send"),
    "backwards": (URL + "  queue_config: {min_backoff: 9s, max_backoff: 1s}\n", None, "backoff"),
    "a label's name": (URL + "  external_labels:\n    a-b: c\n", (6, 5), "a-b"),
    "a label's value": (URL + "  external_labels:\n    a: [c]\n", (6, 8), "a"),
    "the metric's name": (URL + "  external_labels:\n    __name__: c\n", (6, 5), "__name__"),
    "an expression": (URL + "  write_relabel_configs:\n  - {regex: '(', action: labeldrop}\n", (6, 13), "regex"),
    "an action": (URL + "  write_relabel_configs:\n  - {action: explode}\n", (6, 14), "action"),
    "no target": (URL + "  write_relabel_configs:\n  - {source_labels: [a], action: replace}\n", None, "target_label"),
    "a proxy": (URL + "  proxy_url: nonsense\n", (5, 14), "proxy_url"),
    "OAuth without a token_url": (URL + "  oauth2: {client_id: a, client_secret: b}\n", (5, 11), "oauth2.token_url: missing"),
    "OAuth without a secret": (URL + "  oauth2: {client_id: a, token_url: 'http://i/t'}\n", (5, 11), "client_secret_file: missing"),
    "OAuth and a password": (URL + "  basic_auth: {username: u}\n  oauth2: {client_id: a}\n", (6, 3), "only one of basic_auth"),
    "OAuth's token_url": (URL + "  oauth2: {token_url: idp/token}\n", (5, 23), "token_url: expected an absolute http"),
    "OAuth's scopes": (URL + "  oauth2: {scopes: all}\n", (5, 20), "expected a list of scopes"),
    "OAuth's parameter": (URL + "  oauth2: {endpoint_params: {a: 1}}\n", (5, 33), "expected a parameter: a string"),
    "unknown key in oauth2": (URL + "  oauth2: {grant: x}\n", (5, 12), "grant"),
    "Amazon's signatures": (URL + "  sigv4: {region: a}\n", (5, 3), "sigv4: not supported"),
    "Azure's tokens": (URL + "  azuread: {cloud: AzurePublic}\n", (5, 3), "azuread: not supported"),
    "Google's tokens": (URL + "  google_iam: {credentials_file: f}\n", (5, 3), "google_iam: not supported"),
}

# The keys of remote_write in Prometheus' documentation and the configurations of its tests and examples, without those
# that are refused; by the keys that are warned of.
PROMETHEUS = {
    (): """- url: http://remote1/push
  protobuf_message: io.prometheus.write.v2.Request
  name: drop_expensive
  write_relabel_configs:
  - source_labels: [__name__]
    regex: expensive.*
    action: drop
- url: http://remote1/push
  name: rw_oauth2
  oauth2:
    client_id: '123'
    client_secret: '456'
    token_url: http://remote1/auth
    scopes: [a, b]
    endpoint_params: {param: value}
    tls_config: {cert_file: valid_cert_file, key_file: valid_key_file}
- url: http://remote2/push
  name: rw_tls
  tls_config:
    cert_file: valid_cert_file
    key_file: valid_key_file
  headers:
    name: value
""",
    ("send_exemplars", "send_native_histograms", "round_robin_dns", "follow_redirects", "enable_http2",
     "proxy_from_environment", "capacity", "min_shards", "max_shards", "batch_send_deadline", "retry_on_http_429",
     "metadata_config.max_samples_per_send"): """- url: https://remote3/push
  protobuf_message: prometheus.WriteRequest
  remote_timeout: 30s
  headers: {X-Scope-OrgID: tenant}
  send_exemplars: false
  send_native_histograms: false
  round_robin_dns: false
  basic_auth: {username: u, password_file: f}
  tls_config: {ca_file: ca, server_name: remote3, insecure_skip_verify: false}
  follow_redirects: true
  enable_http2: true
  proxy_from_environment: false
  queue_config:
    capacity: 10000
    min_shards: 1
    max_shards: 50
    max_samples_per_send: 2000
    batch_send_deadline: 5s
    min_backoff: 30ms
    max_backoff: 5s
    retry_on_http_429: false
    sample_age_limit: 0s
  metadata_config:
    send: true
    send_interval: 1m
    max_samples_per_send: 2000
  write_relabel_configs:
  - {source_labels: [job, __meta_dns_name], regex: '(.*)some-[regex]', target_label: job, replacement: 'foo-${1}'}
  - {source_labels: [abc], target_label: cde}
  - {replacement: static, target_label: abc}
  - {source_labels: [__address__], modulus: 8, target_label: __tmp_hash, action: hashmod}
  - {source_labels: [__tmp_hash], regex: '1', action: keep}
  - {action: labelmap, regex: '1'}
  - {action: labeldrop, regex: d}
  - {action: labelkeep, regex: k}
  - {source_labels: [foo], action: lowercase, target_label: foo}
  - {source_labels: [foo], action: uppercase, target_label: foo}
  - {source_labels: [foo], action: keepequal, target_label: bar}
  - {source_labels: [foo], action: dropequal, target_label: bar}
""",
}


def check(tmp_path, text):
    (tmp_path / "config.yml").write_text(text)
    command = [remote.PROGRAM, "check-config", f"{tmp_path}/config.yml"]
    return subprocess.run(command, capture_output=True, text=True, timeout=remote.DEADLINE, check=False)


def test_every_key_that_there_is(tmp_path):
    done = check(tmp_path, HEAD + GOOD)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("ignored", PROMETHEUS)
def test_configurations_of_prometheus_load(tmp_path, ignored):
    done = check(tmp_path, HEAD + PROMETHEUS[ignored])
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    warned = [line for line in said.splitlines() if "warning:" in line]
    assert len(warned) == len(ignored), said
    for key in ignored:
        assert any(f"{key}: ignored: " in line for line in warned), (key, said)


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_has_its_place(tmp_path, case):
    text, place, word = BAD[case]
    done = check(tmp_path, HEAD + text)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    found = [m for m in re.finditer(r"config\.yml:(\d+):(\d+): error: (.*)", said) if word in m[3]]
    assert found, said
    assert place in (None, *((int(m[1]), int(m[2])) for m in found)), said


def test_the_agent_refuses_to_start(tmp_path):
    with remote.Scoring() as scoring:
        agent = remote.Agent(tmp_path, scoring, [{"url": "http://127.0.0.1:1/", "shards": 5}])
        agent.start(ready=False)
        assert agent.process.wait(remote.DEADLINE) == 1
        assert re.search(r"config\.json line=\d+ column=\d+ .*shards", agent.log()), agent.log()
        agent.process = None


def test_a_reload_applies_changes_and_keeps_what_waits(tmp_path):
    """A changed endpoint restarts with its spool, a new one is added, a removed one ends; an invalid file changes
    nothing."""
    with remote.Receiver() as first, remote.Receiver() as second, remote.Scoring(t=remote.counted(5)) as scoring:
        first.down()
        with remote.Agent(tmp_path, scoring, [remote.endpoint(first)]) as agent:
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 10)
            agent.config["remoteWrite"] = [{"url": "nonsense"}]
            with pytest.raises(OSError):
                agent.reload()
            assert agent.remote("samples_pending", remote_name="hub") >= 10
            # The same name at another address: what waits goes there.
            agent.config["remoteWrite"] = [remote.endpoint(second), remote.endpoint(first, name="new")]
            agent.reload()
            # For up to three seconds what ends goes on, and would send what waits to where it was to go.
            remote.wait_for("an end", lambda: '"ending"' not in agent.page("/api/v1/status"), alive=agent.alive)
            first.up()
            remote.wait_for("what waited", lambda: len(second.stream()) == 5)
            first.wait(2)
            agent.drained()
            for samples in second.stream().values():
                assert samples[0].bits == 0, "the first round was lost"
            remote.in_order(second.stream())
            agent.config["remoteWrite"] = [remote.endpoint(second)]
            agent.reload()
            before = len(second.arrivals)
            remote.wait_for("another round", lambda: len(second.arrivals) > before + 1)
            ended = lambda: not agent.values("prometheus_remote_storage_samples_total", remote_name="new")
            remote.wait_for("its end", ended, alive=agent.alive)
            at = len(first.arrivals)
            remote.wait_for("another round", lambda: len(second.arrivals) > before + 3)
            assert len(first.arrivals) == at, "a removed endpoint still writes"


# ---- What a reload changes at an endpoint. Rounds are rare, so that only the reload can bring samples ----


def rare_agent(tmp_path, scoring, section, **more):
    agent = remote.Agent(tmp_path, scoring, [section], **more)
    for summary in agent.summaries:
        summary["scoringInterval"] = 600
    agent.write_config()
    return agent


def change(agent, section):
    agent.config["remoteWrite"] = [section]
    agent.reload()


def kinds(samples):
    return ["marker" if s.bits == remote_wire.STALE else "value" for s in samples]


@pytest.mark.parametrize("storage", [True, None])
def test_an_endpoint_with_another_timeout_keeps_queue_and_series(tmp_path, storage):
    with remote.Receiver() as receiver, remote.Scoring(often=remote.counted(2), rare=remote.counted(3)) as scoring:
        agent = rare_agent(tmp_path, scoring, remote.endpoint(receiver), storage=storage)
        agent.summaries[0]["scoringInterval"] = 1
        agent.write_config()
        with agent:
            remote.wait_for("both scorers", lambda: len(receiver.stream()) == 5, alive=agent.alive)
            agent.drained()
            receiver.down()
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 6, alive=agent.alive)
            sent = agent.remote("samples_total")
            change(agent, remote.endpoint(receiver, remote_timeout="31s", queue_config={"max_samples_per_send": 1}))
            assert agent.remote("samples_total") >= sent and agent.remote("samples_pending") >= 6
            remote.wait_for("it is used", lambda: agent.remote("max_samples_per_send") == 1, alive=agent.alive)
            receiver.up()
            until, before = time.monotonic(), len(scoring.served["often"])
            remote.wait_for("two rounds", lambda: len(scoring.served["often"]) >= before + 2, alive=agent.alive)
            agent.drained()
            assert agent.remote("samples_dropped_total") == 0
            stream = receiver.stream()
            assert receiver.with_samples()[-1].write.samples() == 1, "new requests have the new size"
        remote.in_order(stream)
        served = [n for n, (at, _) in enumerate(scoring.served["often"]) if at < until]
        for labels, samples in stream.items():
            assert set(kinds(samples)) == {"value"}, f"{dict(labels)} has ended"
            expected = served if dict(labels)["ds_score_name"] == "often" else [0]
            assert [int(remote_wire.double(s.bits)) for s in samples][: len(expected)] == expected


def test_only_series_with_other_labels_end_and_begin(tmp_path):
    rule = {"source_labels": ["ds_node"], "regex": "n00001", "target_label": "zone", "replacement": "z1"}
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        with rare_agent(tmp_path, scoring, remote.endpoint(receiver)) as agent:
            remote.wait_for("all series", lambda: len(receiver.stream()) == 3, alive=agent.alive)
            change(agent, remote.endpoint(receiver, write_relabel_configs=[rule]))
            new = remote.labels("t", node="n00001", external={"zone": "z1"}.items())
            remote.wait_for("the new labels", lambda: new in receiver.stream(), alive=agent.alive)
            agent.drained()
            found = {labels: kinds(samples) for labels, samples in receiver.stream().items()}
    old = remote.labels("t", node="n00001")
    assert found.pop(new) == ["value"] and found.pop(old) == ["value", "marker"]
    assert list(found.values()) == [["value"], ["value"]]


@pytest.mark.parametrize("storage", [True, None])
@pytest.mark.parametrize("what", ["headers", "url", "name"])
def test_another_place_gets_each_current_score_once(tmp_path, what, storage):
    """After the markers at the place before, which may be the same receiver."""
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(3)) as scoring:
        with rare_agent(tmp_path, scoring, remote.endpoint(receiver), storage=storage) as agent:
            remote.wait_for("all series", lambda: len(receiver.stream()) == 3, alive=agent.alive)
            other = {"headers": {"X-Scope-OrgID": "b"}, "url": receiver.url("/other"), "name": "other"}[what]
            reloaded = int(time.time() * 1000)  # as timestamps are: whole milliseconds
            change(agent, remote.endpoint(receiver, **{what: other}))
            ended = ["value", "marker", "value"]
            remote.wait_for(
                "the scores again",
                lambda: [kinds(sorted(s, key=lambda x: x.timestamp)) for s in receiver.stream().values()] == 3 * [ended],
                alive=agent.alive,
            )
            agent.drained()
            found = {labels: sorted(s, key=lambda x: x.timestamp) for labels, s in receiver.stream().items()}
    for samples in found.values():
        assert len(samples) == 3 and samples[0].timestamp < reloaded <= samples[1].timestamp < samples[2].timestamp
        assert samples[0].bits == samples[2].bits


def log_place(agent, *words):
    """The number of the first line of the log with these words."""
    return next(n for n, line in enumerate(agent.log().splitlines()) if all(word in line for word in words))


@pytest.mark.parametrize("storage", [True, None])
def test_a_reload_waits_for_no_endpoint_that_ends(tmp_path, storage):
    """A receiver has a request and does not answer. The endpoint gets another URL meanwhile, twice, another one goes on, and
    a scorer is added. The receiver is released only after all of that was seen to work."""
    asked, released = threading.Event(), threading.Event()

    def hang(_):
        asked.set()
        released.wait(remote.DEADLINE)
        return remote.Answer()

    with remote.Receiver(plan=hang) as hanging, remote.Receiver() as other, remote.Receiver() as second:
        with remote.Scoring(t=remote.counted(3)) as scoring:
            agent = rare_agent(tmp_path, scoring, remote.endpoint(hanging), storage=storage)
            agent.config["remoteWrite"].append(remote.endpoint(other, name="other"))
            agent.write_config()
            with agent:
                assert asked.wait(remote.DEADLINE)
                remote.wait_for("the other endpoint", lambda: len(other.stream()) == 3, alive=agent.alive)
                scoring.of["new"] = remote.counted(2)
                agent.summaries.append(scoring.summary("new", scoringInterval=600))
                for url in ("http://127.0.0.1:1/write", second.url()):
                    agent.config["remoteWrite"][0] = remote.endpoint(second, url=url)
                    agent.reload()
                assert agent.page("/-/healthy")
                remote.wait_for("the added scorer", lambda: len(other.stream()) == 5, alive=agent.alive)
                remote.wait_for("its successor", lambda: len(second.stream()) == 5, alive=agent.alive)
                agent.drained()
                assert not released.is_set()
                released.set()
                left = "samples remain in the spool" if storage else "samples lost: no spool"
                applied = [n for n, line in enumerate(agent.log().splitlines()) if "configuration applied" in line]
                assert len(applied) == 3 and applied[2] < log_place(agent, left), "a reload has waited for the endpoint"
                assert "127.0.0.1:1/" not in agent.page("/api/v1/status")
                assert not agent.log("error"), "two had one folder"
                found, whole = second.stream(), other.stream()
    for labels, samples in whole.items():
        assert kinds(samples) == ["value"], f"{dict(labels)} has not gone on"
    # What the first one could not send, and its markers, are in its folder; then come the current scores.
    for labels, samples in found.items():
        began = dict(labels)["ds_score_name"] == "t" and storage
        assert kinds(samples) == (["value", "marker", "value"] if began else ["value"])
    remote.in_order(found)
