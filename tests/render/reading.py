"""Read a drawn graph back: follow the line characters from each box to the boxes it feeds, as a reader's eye does.

Knows nothing of layouts but where the boxes stand. A line that meets a character without an arm towards it passes
beneath it (a bridge) and goes on behind.
"""

import unicodedata

STEPS = {"UP": (0, -1), "DOWN": (0, 1), "LEFT": (-1, 0), "RIGHT": (1, 0)}
OPPOSITE = {"UP": "DOWN", "DOWN": "UP", "LEFT": "RIGHT", "RIGHT": "LEFT"}
ASCII_ARMS = {
    "|": "UP DOWN", ":": "UP DOWN", "#": "UP DOWN", "-": "LEFT RIGHT", "~": "LEFT RIGHT", "=": "LEFT RIGHT",
    ",": "DOWN RIGHT", "`": "UP RIGHT", ".": "DOWN LEFT RIGHT?", "'": "UP LEFT RIGHT?", "+": "UP DOWN LEFT? RIGHT?",
}  # fmt: skip
DOWNWARD, RIGHTWARD = ("▼v", "DOWN"), ("►>", "RIGHT")


def arms(character):
    """The directions in which a character has a line; in ASCII some are sure only if the neighbour agrees."""
    if character in ASCII_ARMS:
        return set(ASCII_ARMS[character].split())
    name = unicodedata.name(character, "")
    if not name.startswith("BOX DRAWINGS"):
        return set()
    words = name.replace("VERTICAL", "UP DOWN").replace("HORIZONTAL", "LEFT RIGHT").split()
    return {word for word in words if word in STEPS}


def edges_of(text, places, *, rightward=False):
    """The edges seen in a drawing, as sorted ``(source, target)`` pairs: one per arrow head that a line reaches."""
    heads, along = RIGHTWARD if rightward else DOWNWARD
    grid = text.splitlines()
    inside = {(x, y): key for key, p in places.items() for x in range(p.x, p.right) for y in range(p.y, p.bottom)}
    found = []
    for key, place in places.items():
        port = (place.right - 1, place.port) if rightward else (place.port, place.bottom - 1)
        found += [(key, target) for target in _reached(grid, inside, port, heads, along)]
    return sorted(found)


def _at(grid, cell):
    x, y = cell
    return grid[y][x] if 0 <= y < len(grid) and 0 <= x < len(grid[y]) else " "


def _reached(grid, inside, port, heads, along):
    if _at(grid, port) not in "┬├╤╟╞+#▲◄^<":
        return []
    start = _follow(grid, inside, port, along, heads, along)
    seen, ends, waiting = {start}, set(), [start]
    while waiting:
        cell = waiting.pop()
        character = _at(grid, cell)
        if character in heads:
            step = STEPS[along]
            ends.add((cell, inside[cell[0] + step[0], cell[1] + step[1]]))
            directions = set()
        else:
            directions = arms(character)
        for direction in directions:
            following = _follow(grid, inside, cell, direction, heads, along)
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return [target for _, target in ends]


def _follow(grid, inside, cell, direction, heads, along):
    """The cell where a line that leaves in a direction is taken up again, under bridges through."""
    direction, maybe = direction.rstrip("?"), direction.endswith("?")
    step, wanted = STEPS[direction], OPPOSITE[direction]
    x, y = cell[0] + step[0], cell[1] + step[1]
    while (x, y) not in inside:
        character = _at(grid, (x, y))
        if character in heads and direction == along:
            return x, y
        towards = arms(character)
        if wanted in towards or wanted + "?" in towards:
            return x, y
        bridge = {"UP", "DOWN"} <= {arm.rstrip("?") for arm in towards} and direction in ("LEFT", "RIGHT")
        if not bridge and not (character in heads and direction in ("LEFT", "RIGHT")):
            assert maybe, f"the line from {cell} to the {direction} ends at {(x, y)}"
            return None
        x, y = x + step[0], y + step[1]
    return None
