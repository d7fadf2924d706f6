"""What ag2's verifier and scipy take for the cases on standard input; a line of JSON for each on standard output.

A case is `{"name", "work", …}`, as `retrace-score`'s example `peers` reads it, too. An answer is
`{"name", "program", "seconds", "answer"}`: the median of a few runs, and a number to compare, or `null` where it refused.
"""

import json
import statistics
import sys
import time
import warnings
from fractions import Fraction

import numpy
from ag2.extensions.compaction_verifier import stats
from ag2.extensions.compaction_verifier.boundary import ContextSize
from ag2.extensions.compaction_verifier.burden import ArmBurden, BoundaryDelta
from ag2.extensions.compaction_verifier.report import BoundaryResult, StrategyReport
from scipy import stats as scipy_stats

MOST_SECONDS = 1.0


def timed(work):
    """The median time of a few runs, and the last answer."""
    seconds = []
    while not seconds or (sum(seconds) < MOST_SECONDS and len(seconds) < 7):
        start = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), answer


def told(case, program, work):
    seconds, answer = timed(work)
    print(json.dumps({"name": case["name"], "program": program, "seconds": seconds, "answer": answer}), flush=True)


def sign_flip(case):
    differences = [Fraction(text) for text in case["differences"]]

    def ag2():
        try:
            return stats.exact_permutation_test(differences)
        except stats.PermutationTestTooLargeError:
            return None

    told(case, "ag2", ag2)
    doubles = numpy.array([float(value) for value in differences])

    def scipy():
        # All 2^n patterns where they are few, else drawn ones.
        test = scipy_stats.permutation_test(
            (doubles,), numpy.mean, permutation_type="samples", n_resamples=9_999, rng=1, vectorized=True
        )
        return float(test.pvalue)

    if case["scipy"]:
        told(case, "scipy", scipy)


def interval(case):
    doubles = [float(Fraction(text)) for text in case["differences"]]
    told(case, "ag2", lambda: stats.bootstrap_mean(doubles).low)
    sample = numpy.array(doubles)

    def scipy():
        bootstrap = scipy_stats.bootstrap(
            (sample,), numpy.mean, n_resamples=10_000, method="percentile", rng=1, vectorized=True
        )
        return float(bootstrap.confidence_interval.low)

    told(case, "scipy", scipy)


def report(case):
    """All statistics of one strategy: five channels at each horizon, from the arms' means that are there already."""

    def arm(counts, horizon):
        # What is wasted comes first in these rollouts, and is blocked.
        wasted = [min(count, horizon) for count in counts]
        mean = sum(wasted) / len(wasted)
        return ArmBurden(blocked=mean, refetch=0.0, wasted=mean, actions=float(horizon), stopped=0.0, rollouts=len(counts))

    horizon = case["horizon"]
    size = ContextSize(events=9, tokens=900)
    results = [
        BoundaryResult(
            trajectory=boundary["recording"],
            cut=cut,
            strategy="tail",
            deltas=tuple(
                BoundaryDelta(horizon=k, pre=arm(boundary["pre"], k), post=arm(boundary["post"], k))
                for k in range(1, horizon + 1)
            ),
            pre_size=size,
            post_size=size,
            pre=(),
            post=(),
            compaction_tokens=0,
            unchanged=False,
        )
        for cut, boundary in enumerate(case["boundaries"])
    ]
    told(case, "ag2", lambda: StrategyReport.build("tail", results, horizon).permutation_p)


WORK = {"sign_flip": sign_flip, "interval": interval, "report": report}


def main():
    warnings.simplefilter("ignore")
    for case in json.load(sys.stdin):
        work = WORK.get(case["work"])
        if work:
            work(case)


main()
