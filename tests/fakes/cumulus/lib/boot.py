"""A boot: what is saved is applied; nothing is saved on a switch as it is delivered but what it comes with."""

import os

import home

if not os.path.exists(home.STARTUP):
    home.save(home.MODEL["startup"])
with home.state() as known:
    known["applied"], known["busy"] = home.startup(), None
    for one in known["revisions"].values():
        # What nobody confirmed is not what is saved (assumed: the name of the state).
        one["state"] = {"apply": "apply_fail", "reloading": "apply_fail", "confirm": "confirm_fail", "confirm_yes": "confirm_fail", "confirm_no": "confirm_fail"}.get(one["state"], one["state"])
