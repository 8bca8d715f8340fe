"""Tokens and passwords do not appear in any log, page, metric or terminal, whatever fails."""

import base64
import json
import urllib.parse

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


FORMS = {
    "plain": lambda s: s,
    "quoted": json.dumps,
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "inside_base64": lambda s: base64.urlsafe_b64encode(b"?" + s.encode()).decode(),
    "percent": lambda s: urllib.parse.quote(s, safe=""),
    "all_percent": lambda s: "".join(f"%{b:02x}" for b in s.encode()),
    "escaped": lambda s: json.dumps(s).replace("/", "\\/"),
    "far_behind": lambda s: "x" * 250 + s,
}


def echo(form, status, wrap="{}"):
    """Answers with what the request's headers and its URL hold."""

    def send(connection, request):
        said = " ".join(FORMS[form](v) for k, v in request.headers.items() if k in ("Authorization", "X-Key"))
        text = f"denied: {said} {request.path}"
        plain(wrap.replace("{}", text) if wrap == "{}" else wrap.replace("{}", json.dumps(text)), status)(
            connection, request
        )

    return send


def test_not_in_what_servers_echo(fake, other_fake, start_agent, tmp_path):
    """Servers that put what they got into their errors: scoring APIs, sources, remote-write endpoints, API servers."""
    token, password, key, hub_token = "tok/5ecret+abc=", "pa55 w0rd&more", "k3y-0f-tenant", "hub-t0ken-0123456789"
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text(token)
    auth = {
        f"{kind}EndpointAuth{what}": value
        for kind in ("source", "scoring")
        for what, value in (("Name", "t"), ("Key", "k"))
    }
    error = '{"status":"error","errorType":"bad_data","error":{}}'
    warning = '{"status":"success","data":{"resultType":"matrix","result":[]},"warnings":[{}]}'
    hidden_key = "q-5ecret-value"
    scorers, endpoints = [], []
    for form in FORMS:
        url = fake.on(f"/scoring/{form}", echo(form, 401)) + f"?api_key={hidden_key}"
        scorers.append(summary(f"scoring_{form}", url, **auth))
        source = fake.on(f"/source/{form}", echo(form, 400, error))
        scorers.append(summary(f"source_{form}", fake.url + "/scoring/plain", source=source, **auth))
        source = fake.on(f"/warns/{form}", echo(form, 200, warning))
        scorers.append(summary(f"warns_{form}", fake.on("/good", results({}, 1)), source=source, **auth))
        url = fake.on(f"/write/{form}", echo(form, 400))
        endpoints.append({"url": url, "name": form, "authorization": {"credentials": token}, "headers": {"X-Key": key}})
        basic = {"username": "user", "password": password}
        endpoints.append({"url": url, "name": f"basic_{form}", "basic_auth": basic})
    forbidden = echo("plain", 403, '{"kind":"Status","apiVersion":"v1","status":"Failure","message":{},"code":403}')
    other_fake.take = lambda request: forbidden
    (tmp_path / "kubeconfig").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": other_fake.url}}],
                "users": [{"name": "u", "user": {"token": hub_token}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
                "current-context": "x",
            }
        )
    )
    flags = [f"--secrets.dir={tmp_path}", "--log.level=debug", "--cluster-name=c1", f"--hub-kubeconfig={tmp_path / 'kubeconfig'}"]
    agent = start_agent({"summaries": scorers, "remoteWrite": endpoints}, *flags)
    status = agent.wait_all()
    for form in FORMS:
        for stage in ("scoring", "source"):
            text = status[f"{stage}_{form}"]["error"]["text"]
            assert "denied: " in text and ("***" in text or form == "far_behind"), text
    agent.wait_until(lambda: all(e["error"] for e in agent.status()["remoteWrite"]), "each endpoint has an error")
    agent.wait_log("denied: Bearer *** /apis")
    agent.write({"summaries": [], "remoteWrite": [{**endpoints[0], "authorization": f"Bearer {token}"}]})
    reload = agent.reload()
    assert reload.status != 200 and "authorization: expected an object, got a value" in reload.text
    places = {p: agent.get(p).text for p in ("/", "/metrics", "/api/v1/status")}
    places |= {"reload": reload.text, "log": agent.log()}
    places["check"] = run(PROGRAM, "check-config", agent.file).stderr
    secrets = [token, password, key, hub_token, hidden_key, base64.b64encode(f"user:{password}".encode()).decode()]
    for place, text in places.items():
        for secret in secrets:
            for form, write in FORMS.items():
                found = write(secret).strip('"=x')[3:-3]
                assert found not in text, (place, form, secret)
