"""What the fake of a switch with EOS keeps: what runs and the configure sessions in /run, which a reload empties; the startup
configuration on the flash."""

import contextlib
import os
import sys
import time

sys.path.insert(0, "/opt/switch-fakes")
from place import Place, kept

import tree as trees

PLACE = Place("eos")
STATE = "/run/eos-fake/state.json"
STARTUP = "/mnt/flash/startup-config"


@contextlib.contextmanager
def state():
    """What runs, under a lock, written back at the end. A commit timer that is over takes its change back first."""
    with kept(STATE, {"running": {}, "sessions": {}, "timer": None}) as known:
        timer = known["timer"]
        if timer and timer["until"] < time.monotonic():
            known["running"], known["timer"] = timer["before"], None
        yield known
        known["running"] = trees.pruned(known["running"])
        for session in known["sessions"].values():
            session["tree"] = trees.pruned(session["tree"])


def startup():
    with open(STARTUP) as file:
        return trees.parse(file.read())


def save(tree):
    """Beside the old one and over it: that the real one does so is not known."""
    if PLACE.fault("full-flash") is not None:
        raise OSError("No space left on device")
    os.makedirs(os.path.dirname(STARTUP), exist_ok=True)
    with open(STARTUP + ".new", "w") as file:
        file.write("! Command: show startup-config\n" + trees.text(tree))
    os.replace(STARTUP + ".new", STARTUP)
