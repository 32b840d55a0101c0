"""The generic configuration updater of the fake: checks a patch, sorts it, carries it out step by step.

The order of checks and the texts are those of sonic-utilities config/main.py (apply_patch, validate_patch) and
generic_config_updater/{generic_updater,gu_common}.py. Not atomic, no lock, no timer: a run that ends in the middle leaves
what it did."""

import copy
import json
import os
import time

import allowed
import daemons
import home
import jsonpatch
import jsonpointer
import models
import steps
from database import Config, connect

# what other daemons write is left out of the comparison at the end (change_applier.py)
BACKEND = ["BUFFER_PG", "BUFFER_PROFILE", "FLEX_COUNTER_TABLE"]


class Refused(Exception):
    pass


def say(line):
    print(f"Patch Applier: {line}", flush=True)


def with_missing_tables(ops, config):
    """A table that is not there yet is added empty first."""
    ops = copy.deepcopy(ops)
    for table in {op["path"].strip("/").split("/")[0] for op in ops if op.get("path")} - set(config):
        at = next(n for n, op in enumerate(ops) if op.get("path", "").startswith(f"/{table}"))
        ops.insert(at, {"op": "add", "path": f"/{table}", "value": {}})
    return ops


def validated(ops, config):
    try:
        target = jsonpatch.JsonPatch(copy.deepcopy(ops)).apply(copy.deepcopy(config))
        models.check(target)
        return target
    except Exception as error:
        raise Refused(f"Validate json patch: {ops} failed due to:{error}") from error


def faults(count, store):
    """What a test wants to happen after this many steps of a patch."""
    if home.number("hang-after", -1) == count:
        home.mark("hanging")
        home.wait_while("hang-after")
    if home.number("drop-after", -1) == count:
        home.mark("dropping")
        home.wait_while("drop-after")
    writer = home.fault("second-writer")
    if writer is not None and json.loads(writer)["after"] == count:
        other = json.loads(writer)
        os.rename(f"{home.FAULTS}/second-writer", f"{home.FAULTS}/second-writer.done")
        store.set(other["table"], other["key"], other["fields"])
        daemons.run([(other["table"], other["key"])])
    time.sleep(home.number("pace-ms", 0) / 1000)


def one(step, store):
    """One step, and what the daemons make of it. A port that goes down and comes back is a flap."""
    table, key, fields = step
    now = store.row(table, key)
    home.log("steps", json.dumps(steps.words(step, now), sort_keys=True))
    store.set(table, key, fields)
    daemons.run([(table, key)])
    if table == "PORT" and now and fields and (now.get("admin_status"), fields.get("admin_status")) == ("up", "down"):
        home.log("flaps", key)
        time.sleep(home.number("flap-ms", 20) / 1000)


def apply_steps(todo, store, dry):
    faults(0, store)
    for count, step in enumerate(todo, 1):
        words = json.dumps(steps.words(step, store.row(step[0], step[1])))
        say(f"  * [{words}]")
        if dry:
            print(f"** DryRun: Would apply [{words}]", flush=True)
            continue
        one(step, store)
        faults(count, store)


def without(config, tables):
    return {table: rows for table, rows in config.items() if table not in tables}


def apply(ops, config, dry):
    """The steps of `PatchApplier.apply`."""
    store = Config()
    say("localhost: Patch application starting.")
    say(f"localhost: Patch: {json.dumps(ops)}")
    say("localhost getting current config db.")
    say("localhost: simulating the target full config after applying the patch.")
    target = jsonpatch.JsonPatch(copy.deepcopy(ops)).apply(copy.deepcopy(config))
    say("localhost: validating all JsonPatch operations are permitted on the specified fields")
    allowed.check(list(jsonpatch.JsonPatch.from_diff(config, target)), config, connect("STATE_DB"))
    say("localhost: validating target config does not have empty tables,\n"
        "                            since they do not show up in ConfigDb.")
    empty = [table for table, rows in target.items() if not rows]
    if empty:
        many = "s" if len(empty) != 1 else ""
        raise Refused("localhost: given patch is not valid because it will result in empty tables"
                      f" {' ' * 31} which is not allowed in ConfigDb. {' ' * 31} Table{many}: {', '.join(empty)}")
    say("localhost: sorting patch updates.")
    if models.without_model({jsonpointer.JsonPointer(op["path"]).parts[0] for op in ops}):
        raise Refused("Given patch is not valid because it has changes to tables without YANG models")
    try:
        models.check(target)
    except models.Invalid as error:
        raise Refused(f"Given patch will produce invalid config. Error: {error}") from error
    todo = steps.sort(config, target)
    some = "" if len(todo) == 1 else "s"
    say(f"The localhost patch was converted into {len(todo)} change{some}{':' if todo else '.'}")
    say(f"localhost: applying {len(todo)} change{some} in order{':' if todo else '.'}")
    apply_steps(todo, store, dry)
    say("localhost: verifying patch updates are reflected on ConfigDB.")
    if not dry and without(store.read(), BACKEND) != without(target, BACKEND):
        raise Refused("localhost: after applying patch to config, there are still some parts not updated")
    say("localhost patch application completed.")


def apply_patch(ops, dry):
    config = Config().read()
    ops = with_missing_tables(ops, config)
    validated(ops, config)
    if any(not op["path"] for op in ops):
        raise Refused("Wrong patch with empty path.")
    try:
        apply(ops, config, dry)
    except BrokenPipeError:
        raise
    except Exception as error:
        raise Refused(f"Failed to apply patch on the following scopes:\n- localhost: {error}") from error


def replace(target):
    """`ConfigReplacer.replace`: the difference as a patch, the same way."""
    print("Config Replacer: Config replacement starting.", flush=True)
    old = Config().read()
    patch = list(jsonpatch.make_patch(old, target))
    apply(patch, old, dry=False)
    new = Config().read()
    if without(new, BACKEND) != without(target, BACKEND):
        raise Refused("After replacing config, there is still some parts not updated")
    print("Config Replacer: Config replacement completed.", flush=True)
