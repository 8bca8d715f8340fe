"""A program whose clocks the test moves, by Debian's libfaketime: nothing has to wait for ten minutes."""

import glob
import time

from lib.process import environment, missing


def preload():
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    return found[0] if found else missing("no faketime here")


DAY, HOUR = 86400, 3600
EVERY = 10  # seconds


class Clock:
    def __init__(self, folder, monotonic=True):
        """monotonic=False: only the wall clock moves."""
        self.offset = folder / "offset"
        self.offset.write_text("+0")
        self.moved, self.moved_at = 0, -EVERY
        more = {} if monotonic else {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        self.env = environment(
            LD_PRELOAD=preload(),
            FAKETIME_TIMESTAMP_FILE=str(self.offset),
            FAKETIME_NO_CACHE="1",
            ASAN_OPTIONS="verify_asan_link_order=0",
            **more,
        )

    def move(self, seconds):
        """By so much from the true time, in whole seconds. The program may read the file at any moment."""
        new = self.offset.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.rename(self.offset)

    def passes(self, seconds, condition):
        """condition(), while time passes: a jump, and another one whenever that has led to nothing, for example because a
        connection was just being made, which fails by it."""
        if time.monotonic() - self.moved_at >= EVERY:
            self.moved, self.moved_at = self.moved + seconds, time.monotonic()
            self.move(self.moved)
        return condition()
