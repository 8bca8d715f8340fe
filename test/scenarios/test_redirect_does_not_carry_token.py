"""A redirect to another host is followed without the token; within one host the token is sent."""

import pytest

from lib.agent import summary
from lib.fake import redirect, results, series

AUTH = {
    n: v
    for kind in ("source", "scoring")
    for n, v in ((f"{kind}EndpointAuthName", "t"), (f"{kind}EndpointAuthKey", "k"))
}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_to_another_host(fake, other_fake, start_agent, tmp_path, status):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text("s3cret")
    there = other_fake.on("/there", results({}, 1))
    query_there = other_fake.on("/query", series({"node": "n"}))
    fake.on("/api/v1/query_range", redirect(query_there, status))
    away = summary("away", fake.on("/away", redirect(there, status)), source=fake.url, **AUTH)
    home = summary("home", fake.on("/home", redirect("/here", status)), **AUTH)
    fake.on("/here", results({}, 2))
    agent = start_agent({"summaries": [away, home]}, f"--secrets.dir={tmp_path}")
    assert agent.wait_scores("away") == [({}, 1)]
    assert agent.wait_scores("home") == [({}, 2)]
    assert {r.token for r in fake.requests()} == {"Bearer s3cret"}
    assert {r.token for r in other_fake.requests()} == {None}
    assert fake.requests("/here")[0].method == other_fake.requests("/there")[0].method == "POST"
    assert other_fake.requests("/there")[0].json["data"][0]["metric"] == {"node": "n"}
