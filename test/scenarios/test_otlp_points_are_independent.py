"""A data point received by OTLP gives the series of its own fields, whatever points came before it."""

from lib.agent import running_agent, summary
from lib.fake import results
from lib.otlp import gauge, histogram, point, push, request
from lib.otlp import summary as otlp_summary
from lib.process import free_port
from lib.wait import eventually


def test_a_summary_after_a_histogram_has_no_buckets(fake):
    """In one request, and in the request of another sender."""
    port = free_port()
    source = {"sourceType": "OpenTelemetry", "sourceQuery": '{__name__=~".+"}', "sourceRange": 60, "sourceStep": 1}
    config = {"summaries": [{**summary("s", fake.on("/s", results({}, 1))), **source}]}

    def send(*metrics):
        assert push(f"http://127.0.0.1:{port}/v1/metrics", request(*metrics)).json == {}

    with running_agent(config, f"--otlp.listen-address=127.0.0.1:{port}"):
        latency = histogram("latency", point(count="7", sum=1, bucketCounts=["5", "2"], explicitBounds=[0.5]))
        pauses = point(count="3", sum=9, quantileValues=[{"quantile": 0.5, "value": 2}])
        send(latency, otlp_summary("gc", pauses))
        send(otlp_summary("other", pauses), gauge("last", point(1)))

        def received():
            series = [one["metric"] for one in fake.requests("/s")[-1].json["data"]]
            names = sorted(one["__name__"] for one in series)
            assert names == ["gc", "gc_count", "gc_sum", "last", "latency_bucket", "latency_bucket", "latency_count",
                             "latency_sum", "other", "other_count", "other_sum"]

        eventually(received)
