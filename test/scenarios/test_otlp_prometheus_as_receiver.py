"""The whole of PromQL: an SDK and telemetrygen push to the Prometheus 3 that the chart runs beside the agent, and a scorer of
the source OpenTelemetry asks it for histogram_quantile."""

import json

import pytest
import yaml

from lib.agent import running_agent, summary
from lib.fake import results
from lib.helm import CHART, helm, on_clusters
from lib.kube import go_program, script
from lib.process import environment, run
from lib.prometheus import running_prometheus
from lib.wait import eventually
from test_otlp_sdks_are_understood import SDK

QUERY = "histogram_quantile(0.9, sum by (le, k8s_node_name) (order_duration_seconds_bucket))"
ENABLED = ["--set", "agent.otlp.prometheus.enabled=true"]


def manifests(*words):
    """What the AddOnTemplates install on each cluster."""
    done = helm("template", "dynamic-scoring-framework", CHART, *words)
    assert done.returncode == 0, done.stderr
    return on_clusters([o for o in yaml.safe_load_all(done.stdout) if o])


def of_prometheus(objects):
    return {o["kind"]: o for o in objects if o["metadata"]["name"] == "dynamic-scoring-agent-prometheus"}


def args_of(deployment):
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_the_chart_runs_it_with_few_rights():
    objects = manifests(*ENABLED)
    mine = of_prometheus(objects)
    assert set(mine) == {"ServiceAccount", "ConfigMap", "NetworkPolicy", "Deployment", "Service"}
    assert mine["ServiceAccount"]["automountServiceAccountToken"] is False
    pod = mine["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"] and [v["emptyDir"]["sizeLimit"] for v in pod["volumes"] if "emptyDir" in v]
    assert mine["NetworkPolicy"]["spec"]["egress"] == [] and mine["NetworkPolicy"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    [agent] = [o for o in objects if o["kind"] == "Deployment" and o["metadata"]["name"] == "dynamic-scoring-agent"]
    url = "http://dynamic-scoring-agent-prometheus.dynamic-scoring.svc:9090/api/v1/query_range"
    assert f"--otlp.query-url={url}" in args_of(agent)
    assert not of_prometheus(manifests())


@pytest.mark.parametrize("values, why", [({"agent.otlp.enabled": "true"}, "enable one of them"),
                                         ({"agent.otlp.prometheus.retention.size": "1 GB"}, "does not match pattern")])
def test_values_that_do_not_fit(values, why):
    done = helm("template", "x", CHART, *ENABLED, *(w for k, v in values.items() for w in ("--set-string" if " " in v else "--set", f"{k}={v}")))
    assert done.returncode != 0 and why in done.stderr


def test_a_quantile_is_scored(fake):
    mine = of_prometheus(manifests(*ENABLED))
    settings = yaml.safe_load(mine["ConfigMap"]["data"]["prometheus.yml"])
    own = ("--config.file", "--storage.tsdb.path", "--web.listen-address", "--log.level")
    flags = [a for a in args_of(mine["Deployment"]) if not a.startswith(own)]
    with running_prometheus(program=go_program("prometheus3"), flags=flags, **settings) as prometheus:
        url = f"{prometheus.url}/api/v1/otlp/v1/metrics"
        sdk = environment(PYTHONPATH=script("python-packages", "opentelemetry"))
        sent = run("/usr/bin/python3", SDK / "metrics.py", url, env=sdk)
        assert sent.returncode == 0, sent.stdout + sent.stderr
        endpoint = prometheus.url.removeprefix("http://")
        words = ["--otlp-http", "--otlp-insecure", f"--otlp-endpoint={endpoint}", "--otlp-http-url-path=/api/v1/otlp/v1/metrics"]
        sent = run(go_program("telemetrygen"), "metrics", *words, "--metric-type=Histogram", "--metrics=3", "--interval=100ms")
        assert sent.returncode == 0, sent.stdout + sent.stderr
        prometheus.wait_query("gen_bucket", "what telemetrygen sent is there")
        scorer = summary("slow", fake.on("/s", results({"node": "node-1"}, 4)), sourceType="OpenTelemetry", sourceQuery=QUERY)
        with running_agent([scorer], "--cluster-name=c1", f"--otlp.query-url={prometheus.url}/api/v1/query_range") as agent:
            assert agent.wait_scores("slow") == [({"node": "node-1"}, 4)]

            def asked():
                [one] = json.loads(fake.requests("/s")[-1].body)["data"]
                assert one["metric"] == {"k8s_node_name": "node-1"}
                assert 0 < float(one["values"][-1][1]) <= 5  # the SDK's first bucket

            eventually(asked)
        with running_agent({"summaries": [{**scorer, "sourceEndpoint": prometheus.url}]}) as agent:
            assert agent.wait_scores("slow") == [({"node": "node-1"}, 4)]
