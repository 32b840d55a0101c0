"""What the databases of the fake are filled with when the switch comes up: the saved configuration, or the delivered one."""

import json
import os

import daemons
import delivered
import home
from database import Config

if not os.path.exists(home.SAVED):
    delivered.write()
with open(home.SAVED) as file:
    text = file.read()
store = Config()
store.merge(json.loads(text) if text.strip() else {})
daemons.counters(store.read())
daemons.run()
