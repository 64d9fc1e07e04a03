"""Describes a list of numbers, and its correlation with a second list."""

import json, math, statistics, sys

DATA_ERROR = 65


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(DATA_ERROR)


def percentile(ordered, percent):
    """Returns a percentile with linear interpolation, as spreadsheets do."""
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def describe(numbers, percents):
    ordered = sorted(numbers)
    output = {
        "count": len(numbers),
        "sum": math.fsum(numbers),
        "mean": statistics.fmean(numbers),
        "median": statistics.median(ordered),
        "minimum": ordered[0],
        "maximum": ordered[-1],
        "quartiles": [percentile(ordered, percent) for percent in (25, 50, 75)],
        "modes": statistics.multimode(numbers)[:20],
        "percentiles": {str(percent): percentile(ordered, percent) for percent in percents},
    }
    if len(numbers) > 1:
        output["variance"] = statistics.variance(numbers)
        output["standardDeviation"] = statistics.stdev(numbers)
    return output


def correlate(first, second):
    if len(first) != len(second):
        fail(f"'numbers' has {len(first)} numbers and 'second' {len(second)}; pairs need as many of each")
    try:
        line = statistics.linear_regression(first, second)
        return {"correlation": statistics.correlation(first, second), "slope": line.slope, "intercept": line.intercept}
    except statistics.StatisticsError:
        fail("a correlation needs two pairs at least, and numbers that are not all the same")


def main():
    request = json.load(sys.stdin)
    numbers = request["numbers"]
    output = describe(numbers, request.get("percentiles", []))
    if "second" in request:
        output.update(correlate(numbers, request["second"]))
    print(json.dumps(output, allow_nan=False))


main()
