"""Tokens come from Secrets in the agent's namespace: new, changed and removed ones take effect immediately, and the
hub's credentials are never sent."""

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import NAMESPACE
from lib.wait import wait_until

TOKEN = {"scoringEndpointAuthName": "token", "scoringEndpointAuthKey": "key"}


def tokens(fake):
    return [r.token for r in fake.requests("/s")]


def test_late_changed_and_no_longer_named(kube, fake, start_agent):
    url = fake.on("/s", results({}, 1))
    kube.configure(summary("a", url, interval=300, **TOKEN))
    agent = start_agent({}, *kube.flags())
    secret = f'secret "{NAMESPACE}/token", key "key"'
    assert f"{secret}: Secret not found" in kube.wait_condition("a", "Scored", "False")[2]
    kube.secret("token")
    wait_until(lambda: f"{secret}: key not found" in kube.condition("a", "Scored")[2], "a Secret without any key is there")
    kube.secret("token", other="first")
    wait_until(lambda: f"{secret}: key not found" in kube.condition("a", "Scored")[2], "the key is what is missing")
    assert tokens(fake) == []
    fake.on("/s", plain("who are you?", 401))
    kube.secret("token", key="old")
    words = f"HTTP 401 Unauthorized with {secret}: who are you?"
    wait_until(lambda: words in kube.condition("a", "Scored")[2], "the Secret that was refused is named")
    fake.on("/s", results({}, 1))
    kube.secret("token", key="first\n")
    kube.wait_items("a", {"a": 1})
    assert tokens(fake)[-2:] == ["Bearer old", "Bearer first"]
    kube.secret("token", key="second")
    agent.wait_until(lambda: "secret changed" in agent.log(), "the change is seen")
    kube.configure(summary("a", url, interval=299, **TOKEN))
    agent.wait_until(lambda: tokens(fake)[-1] == "Bearer second", "the second round")
    kube.configure(summary("a", url, interval=298))
    agent.wait_until(lambda: tokens(fake)[-1] is None, "the third round")
    assert tokens(fake)[-3:] == ["Bearer first", "Bearer second", None]


def test_a_changed_token_after_a_refusal_needs_no_waiting(kube, fake, start_agent):
    url = fake.on("/s", plain("who are you", 401))
    kube.secret("token", key="bad")
    kube.configure(summary("a", url, interval=300, **TOKEN))
    agent = start_agent({}, *kube.flags())
    agent.wait_until(lambda: tokens(fake), "the first round")
    assert "401" in kube.wait_condition("a", "Scored", "False")[2]
    fake.on("/s", results({}, 3))
    kube.secret("token", key="good")
    kube.wait_items("a", {"a": 3})
    assert tokens(fake)[-1] == "Bearer good"


def test_the_hubs_credentials_are_no_token(kube, fake, start_agent):
    url = fake.on("/s", results({}, 1))
    kube.secret("dynamic-scoring-hub-kubeconfig", token="s3cret")
    kube.secret("renamed", kubeconfig="k", token="s3cret")
    kube.configure(
        summary("a", url, scoringEndpointAuthName="dynamic-scoring-hub-kubeconfig", scoringEndpointAuthKey="token"),
        summary("b", url, scoringEndpointAuthName="renamed", scoringEndpointAuthKey="token"),
    )
    agent = start_agent({}, *kube.flags())
    agent.wait_rounds("a", 3)
    agent.wait_rounds("b", 3)
    assert "secret" in kube.wait_condition("a", "Scored", "False")[2]
    assert fake.requests("/s") == []
    assert "s3cret" not in agent.log()
