"""A boot: what is saved runs; on a switch as it is delivered that is what it comes with."""

import os

import commands
import home
import tree as trees

if not os.path.exists(home.STARTUP):
    home.save(trees.parse("\n".join(commands.MODEL["startup"])))
with home.state() as known:
    known["running"], known["sessions"], known["timer"] = home.startup(), {}, None
