"""Makes a failing kernel smaller as long as it fails in the same way."""
from meaning import ONE


def _smaller(tree):
    """Simpler trees that may stand in place of this one."""
    kind = tree[0]
    if kind in ("one", "axis"):
        return
    if kind == "pair":
        yield tree[1]
        yield tree[2]
        for part in _smaller(tree[1]):
            yield ("pair", part, tree[2])
        for part in _smaller(tree[2]):
            yield ("pair", tree[1], part)
        return
    yield tree[1]
    n = tree[2]
    for m in {1, n // 2, n - 1, 2, 4, 8}:
        if 0 < m < n:
            yield (kind, tree[1], m)
    for part in _smaller(tree[1]):
        yield (kind, part, n)


def _without(tree, name):
    """The tree with an axis pinned to 0 and the operators on it removed."""
    kind = tree[0]
    if kind == "one":
        return tree
    if kind == "axis":
        return ONE if tree[1] == name else tree
    if kind == "pair":
        left, right = _without(tree[1], name), _without(tree[2], name)
        if left == ONE:
            return right
        return left if right == ONE else ("pair", left, right)
    inner = _without(tree[1], name)
    return ONE if inner == ONE and tree[1] != ONE else (kind, inner, tree[2])


def _resized(tree, name, old, new):
    """The tree with every number that is a multiple of old / new on that axis scaled down with it."""
    kind = tree[0]
    if kind in ("one", "axis"):
        return tree
    if kind == "pair":
        return ("pair", _resized(tree[1], name, old, new), _resized(tree[2], name, old, new))
    inner = _resized(tree[1], name, old, new)
    if name in str(tree[1]) and tree[2] * new % old == 0 and tree[2] > 1:
        return (kind, inner, tree[2] * new // old)
    return (kind, inner, tree[2])


def candidates(spec):
    for name in sorted(spec.used()):
        small = spec.copy()
        small.maps = {role: _without(tree, name) for role, tree in spec.maps.items()}
        for role in ("cluster", "slice"):
            if small.maps[role] == ONE:
                small.maps[role] = ("#", ONE, 2 if role == "cluster" else 256)
        yield small
    for role in ("chip", "cluster", "slice"):
        plain = {"chip": ONE, "cluster": ("#", ONE, 2), "slice": ("#", ONE, 256)}[role]
        if spec.maps[role] != plain:
            small = spec.copy()
            small.maps[role] = plain
            yield small
    for name in sorted(spec.used()):
        n = spec.sizes[name]
        for m in sorted({1, 2, 3, 4, n // 2, n // 3, n - 1}):
            if 0 < m < n:
                small = spec.copy()
                small.sizes[name] = m
                yield small
                scaled = small.copy()
                scaled.maps = {role: _resized(tree, name, n, m) for role, tree in spec.maps.items()}
                yield scaled
    for role, tree in spec.maps.items():
        for part in _smaller(tree):
            small = spec.copy()
            small.maps[role] = part
            yield small
    if spec.out != spec.dtype:
        small = spec.copy()
        small.out = small.dtype
        yield small
    if spec.address:
        small = spec.copy()
        small.address = 0
        yield small


def shrink(spec, fails, budget=400):
    """The smallest kernel found for which `fails` still holds."""
    best, going = spec, True
    while going and budget > 0:
        going = False
        for small in candidates(best):
            if not small.valid() or not small.sound():
                continue
            budget -= 1
            if fails(small):
                best, going = small, True
                break
            if budget <= 0:
                break
    return best
