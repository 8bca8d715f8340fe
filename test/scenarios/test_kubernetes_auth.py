"""With --web.kubernetes-auth, agent and controller answer only those whom the RBAC of the cluster allows it, and say to
the others what they lack; probes stay open on their own address."""

import concurrent.futures
import secrets
import threading
import time

import pytest

from lib.accounts import allow, bind, delete_account, forbid, signed_token, token_of, unbind, user_subject
from lib.agent import summary
from lib.client import call
from lib.fake import results
from lib.kube import NAMESPACE
from lib.process import free_port
from lib.prometheus import running_prometheus
from lib.wait import LONG

METRICS, STATUS, RELOAD = ("get", "/metrics"), ("get", "/status"), ("post", "/-/reload")
PROGRAMS = ("managed-agent", "dynamic-scoring-controller")  # the users that the programs are on the API server
SENDERS = 24  # more than reviews are under way at once
PAGES = ("/", "/api/v1/status", "/ui/style.css", "/nothing")


class Guarded:
    """One of the two programs; .program is Agent or Controller."""

    def __init__(self, program, probe_url):
        self.program, self.probe_url = program, probe_url
        program.wait_until(lambda: call("GET", probe_url).status == 200, "it is ready")

    def ask(self, path, token=None, method="GET"):
        more = {"Authorization": f"Bearer {token}"} if token else {}
        return call(method, self.program.url + path, **more)

    def status(self, *args, **more):
        return self.ask(*args, **more).status

    def wait_status(self, status, *args, deadline=LONG):
        self.program.wait_until(lambda: self.status(*args) == status, f"{args[0]} is answered with {status}", deadline)


@pytest.fixture(name="kube")
def runs_and_trusts_the_programs(hub):
    """An API server that lets both programs review tokens, and that runs again after the test in any case."""
    bind(hub.kube, "reviewers", "system:auth-delegator", *map(user_subject, PROGRAMS))
    yield hub.kube
    if not (hub.kube.state / "server.pid").exists():
        hub.kube.resume()


@pytest.fixture(name="start")
def start_both(kube, fake, start_agent, start_controller):
    """start(*flags): the agent and the controller, at the same API server."""

    def start(*flags):
        flags = ("--web.kubernetes-auth", *flags)
        probes = f"127.0.0.1:{free_port()}"
        kube.configure(summary("cpu", fake.on("/scoring", results({"node": "n1"}, 5))))
        agent = start_agent({}, *kube.flags(), f"--health-probe-bind-address={probes}", *flags, start=False)
        agent.launch()
        controller = start_controller(*flags)
        return Guarded(agent, f"http://{probes}/-/ready"), Guarded(controller, controller.health_url + "/readyz")

    return start


@pytest.fixture(name="may")
def token_with_rights(kube, request):
    """may(name, *rights): a ServiceAccount that has them, and a token of it."""

    def make(name, *rights):
        account = NAMESPACE, f"{request.node.name.replace('_', '-')}-{name}"[-63:]
        for right in rights:
            allow(kube, account, *right)
        return account, token_of(kube, account)

    return make


def test_each_path_needs_its_right(start, may):
    agent, controller = start()
    _, scrapes = may("scrapes", METRICS)
    _, reads = may("reads", STATUS)
    _, reloads = may("reloads", RELOAD)
    _, nothing = may("nothing")
    for guarded in (agent, controller):
        guarded.wait_status(200, "/metrics", scrapes)
        guarded.wait_status(200, "/", reads)
        assert b"dynamic_scoring_build_info" in guarded.ask("/metrics", scrapes).body
        for path in PAGES:
            assert guarded.status(path, reads) == (404 if path == "/nothing" else 200)
            assert {guarded.status(path, token) for token in (scrapes, reloads, nothing)} == {403}
            assert {guarded.status(path, token) for token in (None, "garbage")} == {401}
        assert {guarded.status("/metrics", token) for token in (reads, reloads, nothing)} == {403}
        assert guarded.status("/-/reload", reads, method="POST") == 403
    assert agent.status("/-/reload", reloads, method="POST") == 200
    assert controller.status("/-/reload", reloads, method="POST") == 404


def test_a_refusal_says_what_is_missing(start, kube, may):
    (namespace, name), token = may("nothing")
    fresh, expired = (signed_token(kube, (namespace, name), seconds) for seconds in (3600, -60))
    cases = (("/metrics", "get", "/metrics"), ("/", "get", "/status"), ("/-/reload", "post", "/-/reload"))
    bad = (None, "Basic dTpw", "Bearer garbage", f"Bearer {token}x", f"Bearer {expired}", "Bearer " + "x" * 20000)
    for guarded in start():
        for path, verb, of in cases:
            refused = guarded.ask(path, token, method=verb.upper())
            assert refused.status == 403 and "ClusterRole" in refused.text
            assert f'user "system:serviceaccount:{namespace}:{name}" cannot {verb} path "{of}": ' in refused.text
        assert guarded.status("/metrics", fresh) == 403
        for authorization in bad:
            refused = guarded.program.get("/metrics", **({"Authorization": authorization} if authorization else {}))
            assert refused.status == 401 and refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert call("GET", guarded.probe_url).status == 200
        assert token not in guarded.program.log() and expired not in guarded.program.log()


def test_a_right_is_taken_away_and_given(start, kube, may):
    both = start("--web.kubernetes-auth.cache-ttl=1s")
    account, token = may("scrapes", METRICS)
    for guarded in both:
        guarded.wait_status(200, "/metrics", token)
    forbid(kube, account, *METRICS)
    for guarded in both:
        guarded.wait_status(403, "/metrics", token)
    allow(kube, account, *METRICS)
    for guarded in both:
        guarded.wait_status(200, "/metrics", token)
    delete_account(kube, account)
    for guarded in both:
        guarded.wait_status(401, "/metrics", token)


def test_without_the_api_server_known_tokens_are_served(start, kube, may):
    both = start("--web.kubernetes-auth.cache-ttl=1h")
    _, known = may("known", METRICS)
    _, new = may("new", METRICS)
    for guarded in both:
        guarded.wait_status(200, "/metrics", known)
    kube.pause()
    for guarded in both:
        refused = guarded.ask("/metrics", new)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
        assert "the API server does not answer" in refused.text
        assert guarded.status("/metrics", known) == 200
        assert "HTTP requests cannot be authorized" in guarded.program.log()
    kube.resume()
    for guarded in both:
        guarded.wait_status(200, "/metrics", new)
        assert "HTTP requests are authorized again" in guarded.program.log()


def test_a_program_that_may_not_review_tokens_says_so(start, kube, may):
    unbind(kube, "reviewers")
    _, token = may("scrapes", METRICS)
    for guarded in start():
        guarded.wait_status(503, "/metrics", token)
        assert "see the log" in guarded.ask("/metrics", token).text
        assert 'cannot create resource \\"tokenreviews\\"' in guarded.program.log()


def test_bad_tokens_keep_nobody_out(start, may):
    """Answers expire meanwhile, so that the good token is reviewed again and again among bad ones."""
    both = start("--web.kubernetes-auth.cache-ttl=1s")
    _, good = may("scrapes", METRICS)
    for guarded in both:
        guarded.wait_status(200, "/metrics", good)
    over, seen = threading.Event(), []

    def send_bad_tokens(guarded):
        while not over.is_set():
            seen.append(guarded.status("/metrics", secrets.token_urlsafe(64)))

    with concurrent.futures.ThreadPoolExecutor(2 * SENDERS) as pool:
        senders = [pool.submit(send_bad_tokens, guarded) for guarded in both for _ in range(SENDERS)]
        try:
            end = time.monotonic() + 3
            while time.monotonic() < end:
                assert [guarded.status("/metrics", good) for guarded in both] == [200, 200]
        finally:
            over.set()
        for sender in senders:
            sender.result()
    assert len(seen) > 2 * SENDERS and set(seen) <= {401, 503}


def test_prometheus_scrapes_with_a_credentials_file(start, may, tmp_path):
    targets = [{"targets": [guarded.program.url[7:] for guarded in start()]}]
    jobs = []
    for name, rights in (("scrapes", [METRICS]), ("nothing", [])):
        file = tmp_path / name
        file.write_text(may(name, *rights)[1])
        jobs.append({"job_name": name, "static_configs": targets, "authorization": {"credentials_file": str(file)}})
    with running_prometheus(*jobs) as prometheus:
        prometheus.wait_query('sum(up{job="scrapes"}) == 2', "the account with the right scrapes both")
        prometheus.wait_query('sum(up{job="nothing"}) == 0', "the other scrapes none")
