"""Compares a native process and a tenant in alternating short rounds, so that drift (clocks, heat) affects both alike.
bench/by_turns.c has the same rule within one process. The functions here only call the functions that they are given."""

import statistics

from . import stats


class Pairs:
    """The rounds measured so far, in any unit."""

    def __init__(self):
        self.native = []
        self.tenant = []

    def add(self, native, tenant):
        self.native.append(native)
        self.tenant.append(tenant)

    def added_pct(self):
        """The tenant's extra cost in each pair, in percent of the native median."""
        middle = statistics.median(self.native)
        return [100 * (here - there) / middle for there, here in zip(self.native, self.tenant)]

    def median_pct(self):
        return statistics.median(self.added_pct())

    def error_pct(self):
        """The standard error of that median."""
        return stats.error_of_median(self.added_pct())


def until_known(take, least, most, error_pct):
    """take(count) measures that many pairs (native, tenant). Takes at least `least` pairs, and further ones until the standard
    error is small enough, but at most `most`. Discards the very first pair."""
    pairs = Pairs()
    take(1)
    while len(pairs.native) < most:
        for native, tenant in take(min(least, most - len(pairs.native))):
            pairs.add(native, tenant)
        if pairs.error_pct() <= error_pct:
            break
    return pairs


def by_turns(native, tenant, least, most, error_pct):
    """Calls both in turn, and swaps their order in every other pair. Takes at least `least` pairs, and further ones until
    the standard error is small enough, but at most `most`. Discards the first pair."""
    pairs = Pairs()
    for turn in range(most + 1):
        if turn % 2:
            there, here = native(), tenant()
        else:
            here, there = tenant(), native()
        if turn:
            pairs.add(there, here)
        if turn >= least and pairs.error_pct() <= error_pct:
            break
    return pairs
