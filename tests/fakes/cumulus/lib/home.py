"""What the fake of a Cumulus switch keeps, under a lock."""

import json
import os
import subprocess
import sys

sys.path.insert(0, "/opt/switch-fakes")
from place import Place, kept

PLACE = Place("cumulus")
MODEL = PLACE.model()
STATE = "/var/lib/cumulus-fake/state.json"
STARTUP = "/etc/nvue.d/startup.yaml"


data, fault, after, log, mark, wait_while = PLACE.data, PLACE.fault, PLACE.after, PLACE.log, PLACE.mark, PLACE.wait_while


def state():
    """What NVUE knows, under a lock, written back at the end."""
    return kept(STATE, {"next": 1, "applied": {}, "applied_id": None, "pending": {}, "revisions": {}, "history": []})


def nvued(ticket, revision, confirm_s=""):
    """The daemon applies a revision, whoever waits for it; under the lock of `state`."""
    environment = {**os.environ, "PYTHONPATH": "/opt/cumulus-fake/lib"}
    nowhere = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen(["/usr/bin/python3", "-m", "worker", ticket, revision, confirm_s], env=environment, start_new_session=True, **nowhere)


def startup():
    """What is saved."""
    try:
        with open(STARTUP) as file:
            text = file.read()
    except FileNotFoundError:
        return {}
    tree = {}
    for operation in json.loads(text) if text.strip() else []:
        tree.update(operation.get("set", {}))
    return tree


def save(tree):
    """Beside the old one and over it: that the real one does so is not known."""
    os.makedirs(os.path.dirname(STARTUP), exist_ok=True)
    if fault("full-flash") is not None:
        raise OSError("[Errno 28] No space left on device: '/etc/nvue.d/startup.yaml'")
    with open(STARTUP + ".new", "w") as file:
        json.dump([{"header": MODEL["header"]}, {"set": tree}], file, indent=1, sort_keys=True)
    os.replace(STARTUP + ".new", STARTUP)


def saves_itself(tree):
    """Auto-save is on unless it was switched off (docs: nvue-reference/Config-Commands.md, 5.9 and later)."""
    auto = tree.get("system", {}).get("config", {}).get("auto-save", {})
    return auto.get("state", "enabled") == "enabled" and auto.get("enable", "on") == "on"
