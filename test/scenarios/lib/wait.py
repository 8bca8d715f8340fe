"""Waiting for a condition, never for a length of time, and with patience: how fast a machine is proves nothing.

DS_PATIENCE=2 in the environment doubles all deadlines. No more: hanging scorers hang for 300 s.
"""

import http.client
import os
import time

DEADLINE = 60 * float(os.environ.get("DS_PATIENCE", "1"))
LONG = 2 * DEADLINE  # for what may first wait for a back-off of up to a minute

# No answer from a server yet; a part of an answer that is not there yet.
NOT_YET = (OSError, http.client.HTTPException, LookupError, TypeError)


def wait_until(condition, what, deadline=DEADLINE, every=None):
    """Calls condition() until it returns something true, and returns that. NOT_YET counts as not true.

    Polls every 20 ms at first, then at a tenth of the time waited, up to 200 ms: polling faster would load the server more than
    the test does. `every`: a fixed interval in seconds.
    """
    begin = time.monotonic()
    last = None
    while True:
        try:
            last = condition()
            if last:
                return last
        except NOT_YET as error:
            last = error
        waited = time.monotonic() - begin
        assert waited < deadline, f"waited {deadline:.0f} s until {what}; last seen: {last!r}"
        time.sleep(min(max(0.02, waited / 10), 0.2) if every is None else every)


def eventually(check, deadline=DEADLINE, every=0.1):
    """Calls check() until none of its assertions fails, and returns its result: for several values that settle one
    after the other."""
    end = time.monotonic() + deadline
    while True:
        try:
            return check()
        except (AssertionError, *NOT_YET):
            if time.monotonic() >= end:
                raise
        time.sleep(every)
