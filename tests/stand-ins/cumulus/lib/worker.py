"""nvued: applies a revision, part by part, whoever waits for it or not. What it says at the end lies beside its state."""

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


def main(name, wanted_name):
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
            result(name, 1, f"Failed to apply [rev_id: {name}]\n  switchd did not come back")
            return
        time.sleep(0.05)
    state = "applied"
    with home.state() as known:
        known["applied"] = wanted
        known["dark"] = [port for port in home.MODEL["ports"] if home.fault(f"unplugged-{port}") is not None]
        if revision is not None:
            known["revisions"][wanted_name]["state"] = "applied"
            known["applied_id"] = wanted_name
        known["history"].append(name)
        try:
            if home.saves_itself(wanted):
                home.save(wanted)
                state = "applied_and_saved"
        except OSError as error:
            failed = str(error)
            state = None
    result(name, 0 if state else 1, f"{state} [rev_id: {name}]" if state else f"Error: {failed}")


main(*sys.argv[1:])
