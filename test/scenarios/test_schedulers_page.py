"""charts/README.md says of MultiKueue's order what the tested version of Kueue does."""

import re

from lib.helm import CHART
from lib.kube import script

GATE = "MultiKueueIncrementalDispatcherRespectConfigOrder"


def test_the_page_names_the_tested_version():
    page = (CHART.parent / "README.md").read_text()
    major_minor = ".".join(script("versions", "kueue").split(".")[:2])
    assert re.search(rf"\| {re.escape(major_minor)}, with the feature gate `{GATE}`", page)
