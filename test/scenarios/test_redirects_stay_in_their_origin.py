"""A redirect to another origin is not followed, by neither stage: no series and no token go there, and no answer comes
from there. Within one origin the token is sent."""

import pytest

from lib.agent import summary
from lib.fake import redirect, results, series

AUTH = {
    n: v
    for kind in ("source", "scoring")
    for n, v in ((f"{kind}EndpointAuthName", "t"), (f"{kind}EndpointAuthKey", "k"))
}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_to_another_origin(fake, other_fake, start_agent, tmp_path, status):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text("s3cret")
    there = other_fake.on("/there", results({}, 1))
    query_there = other_fake.on("/api/v1/query_range", series({"node": "n"}))
    fake.on("/api/v1/query_range", series({"node": "n"}))
    fake.on("/moved/api/v1/query_range", redirect(query_there, status))
    secure = fake.on("/secure", redirect("https://127.0.0.1/secure?code=hidden", status))
    fake.on("/here", results({}, 2))
    scorers = [
        summary("away", fake.on("/away", redirect(there + "?code=hidden", status)), source=fake.url, **AUTH),
        summary("moved", fake.on("/moved", results({}, 3)), source=fake.url + "/moved/api/v1/query_range", **AUTH),
        summary("secure", secure, **AUTH),
        summary("home", fake.on("/home", redirect("/here", status)), **AUTH),
    ]
    agent = start_agent({"summaries": scorers}, f"--secrets.dir={tmp_path}")
    assert agent.wait_scores("home") == [({}, 2)]
    errors = {name: s["error"] for name, s in agent.wait_all().items()}
    refused = f"redirect from {fake.url} to {other_fake.url} is not followed: it is another origin; configure its URL"
    for name, stage in (("away", "scoring"), ("moved", "source")):
        assert (errors[name]["stage"], errors[name]["class"]) == (stage, "http_other"), errors[name]
        assert refused in errors[name]["text"], errors[name]
    assert "to https://127.0.0.1:443 is not followed: configure the https:// URL" in errors["secure"]["text"]
    assert "hidden" not in str(errors) + agent.log()
    assert errors["home"] is None
    assert fake.requests("/here")[0].method == "POST" and fake.requests("/here")[0].token == "Bearer s3cret"
    assert not other_fake.requests() and not fake.requests("/moved")
