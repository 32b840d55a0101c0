"""Configurations as trees of commands, and as the indented text that EOS shows."""


def parse(text):
    tree = {}
    above = [(-1, tree)]
    for line in text.splitlines():
        command = line.strip()
        if not command or command.startswith("!") or line == "end":
            continue
        indent = len(line.rstrip()) - len(command)
        while above[-1][0] >= indent:
            above.pop()
        above.append((indent, above[-1][1].setdefault(command, {})))
    return tree


def place(command):
    """Sections in the order in which EOS shows them, as far as it matters here: what is not named stays where it came."""
    return command.startswith(("interface ", "qos profile "))


def shown(tree, depth=0):
    out = []
    for command, below in tree.items():
        if below and (depth or place(command)) or (depth == 0 and place(command)):
            out.append("   " * depth + "!")
        out.append("   " * depth + command)
        out += shown(below, depth + 1)
    return out


def text(tree):
    return "\n".join(shown(tree)) + "\n!\nend\n"


def pruned(tree):
    """Without queues that have nothing in them, which EOS does not show."""
    out = {}
    for command, below in tree.items():
        below = pruned(below)
        if below or "tx-queue " not in command or " to " in command:
            out[command] = below
    return out
