"""Tokens and passwords do not appear in any log, page, metric or terminal, whatever fails."""

from lib.agent import PROGRAM, summary
from lib.fake import cut_off, hanging, plain, redirect, results, series
from lib.process import run

TOKEN, PASSWORD = "tok-5ecret", "pa55w0rd"


def test_nowhere(fake, start_agent, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text(TOKEN)
    source = fake.url.replace("http://", f"http://user:{PASSWORD}@")
    fake.on("/api/v1/query_range", series({}))
    auth = {"scoringEndpointAuthName": "t", "scoringEndpointAuthKey": "k", "timeout": "1s"}
    auth |= {"sourceEndpointAuthName": "t", "sourceEndpointAuthKey": "k"}
    replies = {
        "good": results({}, 1),
        "error": plain("no", 500),
        "cut": cut_off("{"),
        "hangs": hanging,
        "moved": redirect("http://user:" + PASSWORD + "@127.0.0.1:1/"),
        "loop": redirect("/loop"),
    }
    summaries = [summary(n, fake.on(f"/{n}", r), source=fake.url, interval=2, **auth) for n, r in replies.items()]
    dead = source.replace(str(fake.port), "1")
    summaries += [
        summary("user", source + "/good", source=source, interval=2),
        summary("dead", dead + "/x", interval=2),
        summary("dead_source", fake.url + "/good", source=dead, interval=2),
        summary("no_host", f"http://user:{PASSWORD}@no-such-host.invalid/"),
    ]
    config = {"summaries": summaries}
    agent = start_agent(config, f"--secrets.dir={tmp_path}", "--log.level=debug")
    agent.wait_all()
    assert any(r.token == f"Bearer {TOKEN}" for r in fake.requests("/good"))
    assert any((r.token or "").startswith("Basic ") for r in fake.requests("/good"))
    places = {p: agent.get(p).text for p in ("/", "/metrics", "/api/v1/status")}
    for output in ("table", "json", "prom"):
        once = run(
            PROGRAM, "agent", f"--config.file={agent.file}", f"--secrets.dir={tmp_path}", "--once", "--output", output
        )
        places[output] = once.stdout + once.stderr
    agent.write({"summaries": [{**summaries[-1], "scoringInterval": -1}, {"scoringEndpoint": dead[7:]}]})
    places["reload"] = agent.reload().text
    places["check"] = run(PROGRAM, "check-config", agent.file).stderr
    agent.process.end()
    places["log"] = agent.log()
    for place, text in places.items():
        assert len(text) > 100, place
        assert TOKEN not in text and PASSWORD not in text, place
