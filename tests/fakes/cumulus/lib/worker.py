"""nvued: applies a revision, part by part, whoever waits for it or not. What it says at the end lies beside its state. With seconds it waits so long to be
confirmed, and takes everything back where it is not; nothing else is applied meanwhile."""

import copy
import sys
import time

import home
import tree as trees

PARTS = ("interface", "qos", "system")


def result(name, code, text):
    with home.state() as known:
        known["busy"] = None
        known.setdefault("results", {})[name] = [code, text]


def its_turn(name):
    """One after the other: a revision waits as long as another one is in hand."""
    while True:
        with home.state() as known:
            if known.get("busy") in (None, name):
                known["busy"] = name
                return
        time.sleep(0.05)


def make_so(name, before, wanted):
    """Part by part; False where it broke down."""
    steps = 0
    for part in sorted({*before, *wanted}, key=lambda key: (PARTS.index(key) if key in PARTS else 9, key)):
        if before.get(part) == wanted.get(part):
            continue
        with home.state() as known:
            known["applied"].pop(part, None)
            known["applied"].update({part: wanted[part]} if part in wanted else {})
        steps += 1
        home.log("steps", f"{name} {part}")
        for fault, said in (("hang-after", "hanging"), ("drop-after", "dropping")):
            if home.after(fault, steps):
                home.mark(said)
                home.wait_while(fault)
        if home.after("fail-after", steps):
            return False
        time.sleep(0.05)
    return True


def is_confirmed(name, seconds):
    """Waits for it; what is not confirmed in time is not."""
    since = time.monotonic()
    with home.state() as known:
        known["revisions"][name]["state"] = "confirm"
    home.mark("waits")
    while True:
        with home.state() as known:
            state = known["revisions"][name]["state"]
        if state != "confirm":
            return state == "confirm_yes"
        if time.monotonic() - since >= seconds:
            return False
        time.sleep(0.05)


def main(name, wanted_name, confirm_s=""):
    its_turn(name)
    with home.state() as known:
        revision = known["revisions"].get(wanted_name)
        wanted = home.startup() if wanted_name == "startup" else copy.deepcopy(revision["tree"])
        before = copy.deepcopy(known["applied"])
        base = before if revision is None else revision["base"]
        # What others applied since stays.
        unset, changed = trees.difference(base, wanted)
        wanted = copy.deepcopy(before) if revision is not None else wanted
        trees.unset_in(wanted, unset)
        trees.set_in(wanted, changed)
        if confirm_s:
            known["revisions"][name]["state"] = "reloading"
    if not make_so(name, before, wanted):
        with home.state() as known:
            if revision is not None:
                known["revisions"][wanted_name].update({"state": "apply_fail", "issues": ["switchd did not come back"]})
        result(name, 1, f"Failed to apply [rev_id: {name}]\n  switchd did not come back")
        return
    with home.state() as known:
        known["applied"] = wanted
        known["dark"] = [port for port in home.MODEL["ports"] if home.fault(f"unplugged-{port}") is not None]
    if confirm_s and not is_confirmed(name, int(confirm_s)):
        make_so(name, wanted, before)
        with home.state() as known:
            known["applied"] = before
            known["dark"] = []
            known["revisions"][name]["state"] = "confirm_fail"
        result(name, 1, f"confirm_fail [rev_id: {name}]")
        return
    state = "applied"
    with home.state() as known:
        known["applied_state"] = "applied"
        known["history"].append(name)
        try:
            if home.saves_itself(wanted):
                home.save(wanted)
                state = known["applied_state"] = "applied_and_saved"
        except OSError as error:
            failed = str(error)
            state = None
        if revision is not None:
            known["revisions"][wanted_name]["state"] = state or "applied"
            known["applied_id"] = wanted_name
    result(name, 0 if state else 1, f"{state} [rev_id: {name}]" if state else f"Error: {failed}")


main(*sys.argv[1:])
