"""Where the stand-in for a Cumulus switch has its things, and the faults that a test lays in a folder of it."""

import fcntl
import json
import os
import time
from contextlib import contextmanager

HOME = "/opt/cumulus-stand-in"
FAULTS = "/etc/cumulus-stand-in/faults"
LOGS = "/var/log/cumulus-stand-in"
MARKS = "/run/cumulus-stand-in"
STATE = "/var/lib/cumulus-stand-in/state.json"
STARTUP = "/etc/nvue.d/startup.yaml"


def data(name):
    with open(f"{HOME}/{name}") as file:
        return json.load(file)


def fault(name):
    """The text of a fault, or None where nobody wants it."""
    try:
        with open(f"{FAULTS}/{name}") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def after(name, steps):
    """True where a fault wants to be after so many steps."""
    text = fault(name)
    return text is not None and int(text or 0) == steps


def log(name, line):
    os.makedirs(LOGS, exist_ok=True)
    with open(f"{LOGS}/{name}", "a") as file:
        file.write(line + "\n")


def mark(name):
    os.makedirs(MARKS, exist_ok=True)
    open(f"{MARKS}/{name}", "w").close()


def wait_while(fault_name):
    """Hangs until the test takes the fault away."""
    while fault(fault_name) is not None:
        time.sleep(0.02)


@contextmanager
def state():
    """What NVUE knows, under a lock, written back at the end."""
    os.makedirs(os.path.dirname(STATE), exist_ok=True)
    with open(STATE + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(STATE) as file:
                known = json.load(file)
        except FileNotFoundError:
            known = {"next": 1, "applied": {}, "applied_id": None, "pending": {}, "revisions": {}, "history": []}
        yield known
        with open(STATE + ".new", "w") as file:
            json.dump(known, file)
        os.replace(STATE + ".new", STATE)


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
        json.dump([{"header": data("delivered/model.json")["header"]}, {"set": tree}], file, indent=1, sort_keys=True)
    os.replace(STARTUP + ".new", STARTUP)


def saves_itself(tree):
    """Auto-save is on unless it was switched off (docs: nvue-reference/Config-Commands.md, 5.9 and later)."""
    auto = tree.get("system", {}).get("config", {}).get("auto-save", {})
    return auto.get("state", "enabled") == "enabled" and auto.get("enable", "on") == "on"
