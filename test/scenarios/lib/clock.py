"""A wall clock that a test sets, for one program; its monotonic time goes on as it is."""

import glob

from lib.process import missing

DAY, HOUR = 86400, 3600


def faked_clock(environment, offset):
    """The environment with libfaketime: `offset` is a file with the seconds to add, such as "+0", read for each look at
    the clock."""
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not found:
        missing("no faketime here")
    return {
        **environment,
        "LD_PRELOAD": found[0],
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "ASAN_OPTIONS": "verify_asan_link_order=0",
    }
