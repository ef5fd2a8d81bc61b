"""Statistics by which series of shares are judged. Pure functions of lists of numbers."""


import math
import statistics


def mean(values):
    return sum(values) / len(values)


def jain(shares):
    """Jain's fairness index: 1 if all values are equal, 1/n if one value is the whole sum."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0


def percentile(values, pct):
    """The smallest value that at least pct percent of the values do not exceed."""
    ranked = sorted(values)
    rank = max(1, -(-len(ranked) * pct // 100))
    return ranked[int(rank) - 1]


def within_pct(values, asked, points):
    """Percent of the values that are at most `points` away from the target."""
    return 100 * sum(abs(value - asked) <= points for value in values) / len(values)


def sliding(values, width):
    """Moving means of `width` consecutive values; the i-th mean ends with value i + width - 1."""
    return [mean(values[i:i + width]) for i in range(len(values) - width + 1)]


def settling(times, values, target, points, hold_s):
    """The first time at which a step response comes within `points` of its target and then remains there for the given
    time, or None. Times must be evenly spaced."""
    since = None
    for t, value in zip(times, values):
        if abs(value - target) > points:
            since = None
            continue
        since = t if since is None else since
        if t - since >= hold_s:
            return since
    return None


def gaps(times, counts, least):
    """The lengths of all gaps of at least `least`: times without progress. counts: the total at each of the rising times. A gap
    lasts from the last time before it to the first time at which more was counted."""
    found, since = [], 0
    for i in range(1, len(times)):
        if counts[i] > counts[i - 1]:
            if times[i] - times[since] >= least:
                found.append(times[i] - times[since])
            since = i
    return found


def overshoot(values, before, target):
    """How far the response overshot its target, in the direction of the step; 0 if it did not."""
    past = [value - target if target > before else target - value for value in values]
    return max(0.0, *past)


def error_of_median(values):
    """The standard error of the median: 1.2533 sigma / sqrt(n), with sigma = interquartile range / 1.349, as for a
    normal distribution. It is unknown for a single value."""
    if len(values) < 2:
        return math.inf
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return 0.929 * (high - low) / math.sqrt(len(values))


def runs_for_error(error, runs, wanted):
    """About how many runs make the standard error as small as wanted, if `error` is that of so many runs. It falls with the root
    of their number. At least one more, as far as is known."""
    if math.isinf(error) or not wanted:
        return runs + 1
    return max(runs + 1, math.ceil(runs * (error / wanted) ** 2))


def recommended(curve, least_sum_pct, least_jain):
    """curve: [(tenants, sum in percent, Jain's index)], by rising number of tenants. Returns the largest number up to
    which all points keep both bounds, or None."""
    best = None
    for tenants, total, index in curve:
        if total < least_sum_pct or index < least_jain:
            break
        best = tenants
    return best
