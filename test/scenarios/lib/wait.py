"""Waiting for a condition, never for a length of time."""

import http.client
import time

DEADLINE = 30  # generous: the sanitizers' builds are slow, and so may be the machine


def wait_until(condition, what, deadline=DEADLINE, every=0.02):
    """Calls condition until it gives something true, and returns that. No answer from a server yet counts as
    not true."""
    end = time.monotonic() + deadline
    last = None
    while True:
        try:
            last = condition()
            if last:
                return last
        except (OSError, http.client.HTTPException) as error:
            last = error
        assert time.monotonic() < end, f"waited {deadline} s until {what}; last seen: {last!r}"
        time.sleep(every)
