"""Trees of settings: what is set and unset in them, how two differ, and how NVUE prints what is alike as one."""

import re


def spread(word):
    out = []
    for part in str(word).split(","):
        found = re.fullmatch(r"(.*\D)?(\d+)-(?:\1)?(\d+)", part)
        out += [f"{found[1] or ''}{n}" for n in range(int(found[2]), int(found[3]) + 1)] if found else [part]
    return out


RANGES = {"interface", "traffic-class", "switch-priority", "dscp", "pcp"}


def set_in(tree, wanted, ranges=False):
    for key, value in wanted.items():
        for name in spread(key) if ranges else [str(key)]:
            if isinstance(value, dict):
                if not isinstance(tree.get(name), dict):
                    tree[name] = {}
                set_in(tree[name], value, str(key) in RANGES)
            else:
                tree[name] = {} if value is None else value


def unset_in(tree, gone):
    for key, below in gone.items():
        if isinstance(below, dict) and below:
            if isinstance(tree.get(key), dict):
                unset_in(tree[key], below)
                if not tree[key]:
                    del tree[key]
        else:
            tree.pop(key, None)


def difference(one, other):
    """What has to be unset, and set, to come from one to the other."""
    unset, wanted = {}, {}
    for key in sorted({*one, *other}):
        here, there = one.get(key), other.get(key)
        if here == there:
            continue
        if isinstance(here, dict) and isinstance(there, dict):
            below = difference(here, there)
            unset.update({key: below[0]} if below[0] else {})
            wanted.update({key: below[1]} if below[1] else {})
        elif there is None:
            unset[key] = None
        else:
            wanted[key] = there
    return unset, wanted


def operations(unset, wanted):
    return [{word: tree} for word, tree in (("unset", unset), ("set", wanted)) if tree]


def shown(tree):
    """Interfaces that are alike are one, and nobody sees a password."""
    out = {}
    for key, value in tree.items():
        if key in ("password", "hashed-password", "secret"):
            value = "*"
        out[key] = shown(value) if isinstance(value, dict) else value
    ports = {}
    for name, value in (out.get("interface") or {}).items():
        if re.fullmatch(r"swp\d+", name):
            ports.setdefault(repr(value), []).append(name)
    for names in (names for names in ports.values() if len(names) > 1):
        numbers = sorted(int(name[3:]) for name in names)
        runs = [[numbers[0], numbers[0]]]
        for number in numbers[1:]:
            if number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        value = out["interface"][names[0]]
        for name in names:
            del out["interface"][name]
        word = ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
        out["interface"]["swp" + word.replace(",", ",swp")] = value
    return out
