"""A boot: what is saved is applied; nothing is saved on a switch as it is delivered but what it comes with."""

import os

import home

if not os.path.exists(home.STARTUP):
    home.save(home.MODEL["startup"])
with home.state() as known:
    known["applied"], known["busy"] = home.startup(), None
    for name in [name for name, one in known["revisions"].items() if one["state"] == "apply"]:
        known["revisions"][name]["state"] = "apply_fail"
