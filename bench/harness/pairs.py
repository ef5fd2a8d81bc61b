"""Native and tenant compared by turns, in short rounds next to each other, so that what drifts
(clocks, heat) is the same in both: bench/by_turns.c's rule for processes. Pure, but for what it
calls."""

import statistics

from . import stats


class Pairs:
    """The rounds that have been measured, in any unit."""

    def __init__(self):
        self.native = []
        self.tenant = []

    def add(self, native, tenant):
        self.native.append(native)
        self.tenant.append(tenant)

    def added_pct(self):
        """Of each pair, in percent of the native median."""
        middle = statistics.median(self.native)
        return [100 * (here - there) / middle for there, here in zip(self.native, self.tenant)]

    def median_pct(self):
        return statistics.median(self.added_pct())

    def error_pct(self):
        """The standard error of that median."""
        return stats.error_of_median(self.added_pct())


def until_known(take, least, most, error_pct):
    """take(count): so many pairs, each (native, tenant). At least `least`, and then as many again until the standard error
    is small enough, but no more than `most`. The first pair of all is thrown away."""
    pairs = Pairs()
    take(1)
    while len(pairs.native) < most:
        for native, tenant in take(min(least, most - len(pairs.native))):
            pairs.add(native, tenant)
        if pairs.error_pct() <= error_pct:
            break
    return pairs


def by_turns(native, tenant, least, most, error_pct):
    """Calls each in turn, the other one first in every other pair: at least `least` pairs, and then
    until the standard error is small enough, but no more than `most`. The first pair is thrown
    away."""
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
