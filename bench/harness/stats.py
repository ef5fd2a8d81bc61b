"""Measures by which a series of shares is judged. Pure: lists of numbers in, numbers out."""


import math
import statistics


def mean(values):
    return sum(values) / len(values)


def jain(shares):
    """Jain's index of fairness: 1 when all are equal, 1/n when one has all."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


def percentile(values, pct):
    """The smallest value that at least pct percent do not exceed."""
    ranked = sorted(values)
    rank = max(1, -(-len(ranked) * pct // 100))
    return ranked[int(rank) - 1]


def within_pct(values, asked, points):
    """Percent of the values that are at most so many points off."""
    return 100 * sum(abs(value - asked) <= points for value in values) / len(values)


def sliding(values, width):
    """Means of each `width` values that follow each other; the i-th ends with value i + width - 1."""
    return [mean(values[i:i + width]) for i in range(len(values) - width + 1)]


def settling(times, values, target, points, stays_s):
    """When a step response came within `points` of its target and stayed there for so long: the
    first such time, or None. Times rise evenly."""
    since = None
    for t, value in zip(times, values):
        if abs(value - target) > points:
            since = None
            continue
        since = t if since is None else since
        if t - since >= stays_s:
            return since
    return None


def overshoot(values, before, target):
    """How far the response went past its target, in the direction of the step; 0 when it did not."""
    past = [value - target if target > before else target - value for value in values]
    return max(0.0, *past)


def error_of_median(values):
    """The median's standard error, from the quartiles' distance: 1.2533 sigma / sqrt(n), with
    sigma = distance / 1.349, as of a normal distribution. Of a single value it is not known."""
    if len(values) < 2:
        return math.inf
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return 0.929 * (high - low) / math.sqrt(len(values))


def recommended(curve, least_sum_pct, least_jain):
    """curve: [(tenants, sum in percent, Jain's index)] by rising number. The largest number up to
    which all keep both bounds, or None."""
    best = None
    for tenants, total, index in curve:
        if total < least_sum_pct or index < least_jain:
            break
        best = tenants
    return best
