"""Fixtures of the scenarios, and the logs of the programs when one fails."""

import contextlib
import functools
import os
import re
import socket

import pytest

from lib import process
from lib.agent import running_agent
from lib.controller import running_controller
from lib.fake import running_fake
from lib.hub import clean_hub
from lib.kube import running_kube
from lib.prometheus import running_prometheus


# What test/run makes beside the tests that can do without: programs, packages, images, systems. Most of what has parts needs none
# of the programs that are built last.
PARTS = re.compile(r"^from lib(\.| import .*\b)(image|kube|machine|openapi|package|pod|reference)\b", re.MULTILINE)
LAST = re.compile(
    r"^from lib(\.| import .*\b)(fleet|governance|ocm)\b|\b(actionlint|glua|go_crds|kube-score|kube-state-metrics|ocm|old-version|pint|prometheus3|telemetrygen)\b",
    re.MULTILINE,
)


@functools.cache
def imports(path, what):
    return what.search(path.read_text()) is not None


def parts_of(item):
    if "api_server" not in item.fixturenames and not imports(item.path, PARTS):
        return "without"
    return "last" if imports(item.path, LAST) else "first"


def pytest_collection_modifyitems(config, items):
    """The longest files first, so that no worker is left with one of them at the end."""
    long = ("test_least_privilege", "test_chart_on_two_clusters", "test_chart_with_tokens", "test_package_contents", "test_remote_write_", "test_hub_crds")
    long += ("test_quickstart", "test_hub_api_server_away", "test_dashboards_show_something", "test_alerts_")
    items.sort(key=lambda item: not item.path.name.startswith(long))
    if which := os.environ.get("DS_PARTS", "").split():
        leave_out(config, items, lambda item: parts_of(item) not in which)
    if os.environ.get("DS_BROWSER") == "elsewhere":
        leave_out(config, items, lambda item: "browser" in item.fixturenames)


def leave_out(config, items, is_left):
    left = [item for item in items if is_left(item)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.when != "teardown":
        for one in process.running:
            report.sections.append((f"the end of {one.name}'s log", one.log()[-process.LOG_TAIL :]))


@pytest.fixture
def start_agent():
    """start_agent(config, *flags, env=None, start=True): an agent that must exit with status 0 after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **more: stack.enter_context(running_agent(*args, **more))


@pytest.fixture
def unused_port():
    """unused_port(host): a free port; skips the test where the host is an IPv6 address and there is no IPv6."""

    def port(host):
        try:
            if ":" in host:
                socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as why:
            pytest.skip(f"no IPv6 here: {why}")
        return process.free_port()

    return port


@pytest.fixture
def fake():
    with running_fake() as server:
        yield server


@pytest.fixture
def other_fake():
    with running_fake() as server:
        yield server


@pytest.fixture(scope="session")
def prometheus():
    """Scrapes nothing: it answers queries, and label_replace(vector(1), ...) creates any series."""
    with running_prometheus() as server:
        yield server


@pytest.fixture(scope="session")
def api_server():
    with running_kube() as server:
        yield server


@pytest.fixture
def kube(api_server):
    """A real API server without leftovers of earlier tests."""
    api_server.clean()
    return api_server


@pytest.fixture
def hub(api_server):
    """The same for the hub's controller: without scorers and clusters."""
    return clean_hub(api_server)


@pytest.fixture
def start_controller(hub):
    """start_controller(*flags, kubeconfig=None, env=None, start=True): a controller that must exit with status 0 after
    the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **more: stack.enter_context(running_controller(hub.kube, *args, **more))
