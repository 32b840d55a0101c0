"""What railwright does with NVUE's JSON on the switch itself, so that users and passwords in it never leave it.

read         the configuration, and the interfaces after it, on standard input: prints what is judged
ours PATHS   a difference on standard input: prints what of it is at none of these places
others PORTS a configuration on standard input: prints all but these ports and the QoS of the whole switch
back NOW KEPT UNSET SET PORTS   writes the documents that make KEPT out of NOW, as far as it is of these ports or of the whole switch
"""
import json
import re
import sys


def spread(word):
    """`swp1-4,swp6`, `0-7`: NVUE prints what is alike as one (docs: nvue-reference/Config-Commands.md, `bond1-3`)."""
    out = []
    for part in word.split(","):
        found = re.fullmatch(r"(.*\D)?(\d+)-(?:\1)?(\d+)", part)
        first, last = (int(found[2]), int(found[3])) if found else (0, -1)
        out += [f"{found[1] or ''}{n}" for n in range(first, last + 1)] if 0 <= last - first <= 4096 else [part]
    return out


RANGES = {"interface", "traffic-class", "switch-priority", "dscp", "pcp"}


def merge(into, tree, ranges=False):
    for key, value in tree.items():
        for name in spread(key) if ranges else [key]:
            if isinstance(value, dict):
                below = into.get(name)
                into[name] = below if isinstance(below, dict) else {}
                merge(into[name], value, key in RANGES)
            else:
                into[name] = {} if value is None else value
    return into


def documents(text):
    """JSON documents, one after the other."""
    out, at, decoder = [], 0, json.JSONDecoder()
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        out.append(document)
    return out


def part(document, word):
    """All that a list of operations sets, or unsets."""
    tree = {}
    for operation in document if isinstance(document, list) else [document]:
        merge(tree, operation.get(word) or {})
    return tree


def judged(document):
    tree = part(document, "set")
    out = {}
    for name, interface in (tree.get("interface") or {}).items():
        link = {word: interface["link"][word] for word in ("mtu", "state") if word in interface.get("link", {})}
        kept = {**({"link": link} if link else {}), **({"qos": interface["qos"]} if "qos" in interface else {})}
        if kept:
            out.setdefault("interface", {})[name] = kept
    if "qos" in tree:
        out["qos"] = tree["qos"]
    return out


def leaves(tree, path=()):
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from leaves(value, path + (key,))
    else:
        yield path


def is_above(leaf, path):
    """A part of a port, or of the QoS of the switch, with all that is in it; we never unset a port as a whole."""
    is_port = leaf[0] == "interface" and len(leaf) <= 2
    return path[: len(leaf)] == leaf and not is_port


def ours(paths):
    known = [tuple(path) for path in json.loads(paths)]
    foreign = []
    for document in documents(sys.stdin.read()):
        for word in ("set", "unset"):
            for leaf in leaves(part(document, word)):
                if leaf and not any(leaf[: len(path)] == path or is_above(leaf, path) for path in known):
                    foreign.append(" ".join([word, *leaf]))
                elif leaf:
                    print("ours")
    for line in sorted(foreign)[:3]:
        print("not ours: " + line)


def differing(now, kept, depth):
    """What is there and was not, or was otherwise, so deep; and what was there."""
    gone, back = {}, {}
    for key in sorted({*now, *kept}):
        here, there = now.get(key), kept.get(key)
        if here == there:
            continue
        if depth and isinstance(here, dict) and isinstance(there, dict):
            below = differing(here, there, depth - 1)
            gone.update({key: below[0]} if below[0] else {})
            back.update({key: below[1]} if below[1] else {})
            continue
        if here is not None:
            gone[key] = None
        if there is not None:
            back[key] = there
    return gone, back


def narrow(file, ports):
    """Each port is there, so that none goes as a whole: what else is set on it is not known here."""
    tree = json.load(file)["set"]
    interfaces = tree.get("interface", {})
    return dict(tree, interface={name: {"link": {}, **interfaces.get(name, {})} for name in ports.split()})


def back(now, kept, unset, wanted, ports):
    """MTU and state of a port, its bindings, and the parts of a profile are put back; other settings of a link are not known here."""
    with open(now) as one, open(kept) as other:
        gone, there = differing(narrow(one, ports), narrow(other, ports), 3)
    for name, word, tree in ((unset, "unset", gone), (wanted, "set", there)):
        with open(name, "w") as file:
            if tree:
                json.dump([{word: tree}], file)


def others(ports):
    tree = part(json.load(sys.stdin), "set")
    tree.pop("qos", None)
    tree["interface"] = {name: of for name, of in tree.get("interface", {}).items() if name not in ports.split()}
    print(json.dumps(tree, sort_keys=True))


if sys.argv[1] == "read":
    said = documents(sys.stdin.read())
    ports = {"ports": sorted(name for name in said[1] if re.fullmatch(r"swp[0-9s]+", name))} if len(said) > 1 else {}
    print(json.dumps({**ports, "set": judged(said[0])}, sort_keys=True))
elif sys.argv[1] == "ours":
    ours(sys.argv[2])
elif sys.argv[1] == "others":
    others(sys.argv[2])
else:
    back(*sys.argv[2:])
