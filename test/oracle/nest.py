"""Loop nests of a sequencer, as lists of (size, stride), outermost first.

An address sequence determines its nest: the innermost loop ends where the sequence first leaves the straight line, so
the shortest nest is found by looking, and there is no other one with as few loops. `shortest` decides by that whether a
sequence is a nest at all; `search` does the same when some addresses are free.
"""
import random
from functools import lru_cache

SIZE_LIMIT = 65536
ENTRY_LIMIT = 8
STRIDE_LIMIT = 1 << 31


def walk(entries):
    addresses = [0]
    for size, stride in entries:
        steps = [i * stride for i in range(size)]
        addresses = [a + s for a in addresses for s in steps]
    return addresses


def volume(entries):
    product = 1
    for size, _ in entries:
        product *= size
    return product


def shortest(addresses):
    """The nest with the fewest loops that gives these addresses relative to the first one, or None.

    Addresses are integers or equally long tuples of integers (several walks in lock step)."""
    if addresses and isinstance(addresses[0], tuple):
        return _shortest_tuples(addresses)
    entries, todo = [], [a - addresses[0] for a in addresses]
    while len(todo) > 1:
        stride, n = todo[1], 2
        while n < len(todo) and todo[n] == n * stride:
            n += 1
        if len(todo) % n:
            return None
        line = [i * stride for i in range(n)]
        heads = todo[::n]
        for k, head in enumerate(heads):
            block = todo[k * n:k * n + n]
            if head:
                block = [b - head for b in block]
            if block != line:
                return None
        entries.append((n, stride))
        todo = heads
    return entries[::-1]


def _shortest_tuples(addresses):
    lanes = list(zip(*addresses))
    todo = [tuple(a - lane[0] for a in lane) for lane in lanes]
    entries = []
    while len(todo[0]) > 1:
        strides = [lane[1] for lane in todo]
        n, count = 2, len(todo[0])
        while n < count and all(lane[n] == n * s for lane, s in zip(todo, strides)):
            n += 1
        if count % n:
            return None
        for lane, stride in zip(todo, strides):
            for k in range(0, count, n):
                head = lane[k]
                if any(lane[k + i] != head + i * stride for i in range(1, n)):
                    return None
        entries.append((n, tuple(strides)))
        todo = [lane[::n] for lane in todo]
    return entries[::-1]


def _divisions(n):
    """Every way to write n as an ordered product of factors above 1."""
    if n == 1:
        yield ()
    for first in range(2, n + 1):
        if n % first == 0:
            for rest in _divisions(n // first):
                yield (first, *rest)


def fewest(addresses):
    """How many loops the smallest nest of a short walk has, or None: every nest there is is tried. A nest's strides are
    addresses of the walk, so its sizes are all there is to choose."""
    best, base = None, addresses[0]
    for sizes in _divisions(len(addresses)):
        if best is not None and len(sizes) >= best:
            continue
        entries, inside = [], 1
        for size in reversed(sizes):
            entries.append((size, addresses[inside] - base))
            inside *= size
        if all(a - base == b for a, b in zip(addresses, walk(entries[::-1]))):
            best = len(sizes)
    return best


@lru_cache(maxsize=None)
def pieces(n):
    """How many loops of at most SIZE_LIMIT iterations make one of n, or None."""
    if n <= SIZE_LIMIT:
        return 1
    best = None
    for first in range(SIZE_LIMIT, 1, -1):
        if n % first == 0:
            rest = pieces(n // first)
            if rest is not None and (best is None or rest + 1 < best):
                best = rest + 1
            if best == 2:
                break
    return best


def entries_needed(entries):
    """Table entries of a shortest nest under the size limit, or None."""
    total = 0
    for size, _ in entries:
        n = pieces(size)
        if n is None:
            return None
        total += n
    return max(total, 1)


def fits(entries):
    needed = entries_needed(entries)
    return (needed is not None and needed <= ENTRY_LIMIT
            and all(-STRIDE_LIMIT <= stride < STRIDE_LIMIT for _, stride in entries))


def merge(entries):
    """Neighbours that are one loop become one; loops of size 1 vanish."""
    out = []
    for size, stride in entries:
        if size == 1:
            continue
        out.append((size, stride))
        while len(out) > 1 and out[-2][1] == out[-1][0] * out[-1][1]:
            inner, outer = out.pop(), out.pop()
            out.append((outer[0] * inner[0], inner[1]))
    return out


def run(entries):
    """Adjacent elements one after the other from the innermost loop outwards (10.6)."""
    entries = merge(entries)
    if not entries:
        return 1
    size, stride = entries[-1]
    return size if stride in (0, 1) else 1


def _primes(n):
    out, p = [], 2
    while p * p <= n:
        while n % p == 0:
            out.append(p)
            n //= p
        p += 1
    return out + [n] if n > 1 else out


def search(wanted, budget=3000):
    """A nest that meets every address which is not None, or None; "unknown" when the budget is used up.

    Loops of prime size suffice (a larger loop is several of them). Depth first from the innermost loop: a prefix that
    contradicts an address is not continued."""
    count = len(wanted)
    order = _primes(count)
    tries = [budget]

    def extend(loops, done, left):
        if done == count:
            return loops[::-1]
        for p in sorted(set(left)):
            tries[0] -= 1
            if tries[0] < 0:
                return None
            stride = _stride(loops, done, p)
            if stride is None:
                continue
            rest = list(left)
            rest.remove(p)
            found = extend(loops + [(p, stride)], done * p, rest)
            if found:
                return found
        return None

    def _stride(loops, done, p):
        inner = walk(loops[::-1])
        stride = None
        for i in range(done, min(done * p, count)):
            if wanted[i] is None:
                continue
            k, r = divmod(i, done)
            difference = wanted[i] - inner[r]
            if stride is None:
                if difference % k:
                    return None
                stride = difference // k
            elif difference != k * stride:
                return None
        return 0 if stride is None else stride

    found = extend([], 1, order)
    if found is None and tries[0] < 0:
        return "unknown"
    if found is None:
        return None if any(w is not None for w in wanted[1:]) or count > 1 else []
    return found


def _self_test(rounds=3000):
    """The nest that is found by looking has as few loops as the best of all nests, and none is missed."""
    rng, nests = random.Random(1), 0
    for _ in range(rounds):
        sizes = [rng.choice((1, 2, 2, 3, 4, 5)) for _ in range(rng.randrange(1, 5))]
        addresses = walk([(n, rng.randrange(-3, 13)) for n in sizes])
        if rng.random() < 0.3:
            addresses[rng.randrange(len(addresses))] += 1
        if len(addresses) > 96:
            continue
        looked, tried = shortest(addresses), fewest(addresses)
        assert (looked is None) == (tried is None) and (looked is None or len(looked) == tried), addresses
        nests += looked is not None
    return rounds, nests


if __name__ == "__main__":
    print("{} walks, {} of them nests: looking finds what trying all finds".format(*_self_test()))
