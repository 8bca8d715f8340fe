"""The scoring endpoint's default host is that of the scoring API, never that of the source."""

from lib.fake import answer
from lib.scorers import full, own, serve, source, summaries


def test_the_apis_own_host(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    prometheus = source("https://prom:9091")
    hub.apply_scorer("full", full(serve(fake, "/a/config", "a", source=prometheus)))
    spec = own("b", fake.url, source=prometheus)
    del spec["scoring"]["host"]
    hub.apply_scorer("own", spec)
    elsewhere = {"host": "https://scores.example", "params": {"name": "c", "interval": 5}}
    hub.apply_scorer("elsewhere", full(serve(fake, "/c/config", "c", scoring=elsewhere)))
    start_controller()
    hub.wait_scores("c1", "a", "b", "c")
    found = summaries(hub, "c1")
    assert found["a"]["scoringEndpoint"] == found["b"]["scoringEndpoint"] == f"{fake.url}/scoring"
    assert found["c"]["scoringEndpoint"] == "https://scores.example/scoring"
    assert found["a"]["sourceEndpoint"] == found["b"]["sourceEndpoint"] == "https://prom:9091/api/v1/query_range"


def test_what_config_leaves_out_is_the_specs(hub, fake, start_controller):
    """Field by field: the API's value, else the DynamicScorer's, else the default."""
    hub.add_cluster("c1")
    hub.configure()
    serve(fake, "/config", "cpu")
    says = {"name": "n", "source": {"params": {"query": "theirs"}}, "scoring": {"params": {"name": "cpu"}}}
    spec = full(
        fake.on("/config", answer(says)),
        source=source("http://ours:9090", "ours", path="/select/api/v1/query_range"),
        scoring={"host": "http://scorer.example:81", "path": "/v2", "params": {"name": "ours", "interval": 7}},
        location="external",
        scoreDestination="none",
        scoreDimensionFormat="${node}",
    )
    hub.apply_scorer("s", spec)
    start_controller()
    hub.wait_scores("c1", "cpu")
    got = summaries(hub, "c1")["cpu"]
    assert got["sourceQuery"] == "theirs"
    assert got["sourceEndpoint"] == "http://ours:9090/select/api/v1/query_range"
    assert (got["sourceRange"], got["sourceStep"], got["scoringInterval"]) == (3600, 60, 7)
    assert got["scoringEndpoint"] == "http://scorer.example:81/v2"
    assert (got["location"], got["scoreDestination"]) == ("External", "None")
    assert got["scoreDimensionFormat"] == "${node}"
    assert hub.scorer_status("s")["configSource"] == "API"


def test_several_sources_are_delivered(hub, fake, start_controller):
    """As a list, and the first one also in the summary's own fields, for agents that do not know the list."""
    hub.add_cluster("c1")
    hub.configure()
    spec = own("cpu", fake.url, sources=[source("http://a:1", "x"), source("http://b:2", "y")])
    del spec["source"]
    serve(fake, "/config", "cpu")
    hub.apply_scorer("s", spec)
    start_controller()
    hub.wait_scores("c1", "cpu")
    got = summaries(hub, "c1")["cpu"]
    endpoints = [f"http://{host}/api/v1/query_range" for host in ("a:1", "b:2")]
    assert [(s["sourceEndpoint"], s["sourceQuery"]) for s in got["sources"]] == list(zip(endpoints, "xy"))
    assert (got["sourceEndpoint"], got["sourceQuery"]) == (endpoints[0], "x")
