"""Times in time zones: now, converted, their difference, and a time after or before another one."""

import calendar, datetime, difflib, json, sys, zoneinfo

DATA_ERROR = 65
UTC = datetime.timezone.utc


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(DATA_ERROR)


def zone(name):
    try:
        return zoneinfo.ZoneInfo(name)
    # The latter two: a path out of the database, and a folder of it.
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = difflib.get_close_matches(name, zoneinfo.available_timezones(), n=2, cutoff=0.7)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; use a name like Europe/Berlin"
    fail(f"unknown time zone {name}{hint}")


def moment(text, source):
    """Reads a time. One with an offset needs no zone; one without is of `source`."""
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        fail(f"{text!r} is no time; write it like 2026-03-29T09:30 or 2026-03-29T09:30:00+02:00")
    if time.tzinfo:
        return time.astimezone(source)
    time = time.replace(tzinfo=source)
    # Clocks that are put forward leave a gap: such a time does not come back from UTC as itself.
    if time.astimezone(UTC).astimezone(source).replace(tzinfo=None) != time.replace(tzinfo=None):
        fail(f"{text} does not exist in {source.key}: clocks are put forward over it")
    return time


def shown(time):
    return {
        "zone": time.tzinfo.key,
        "time": time.isoformat(timespec="seconds"),
        "weekday": time.strftime("%A"),
        "abbreviation": time.tzname(),
        "daylightSaving": bool(time.dst()),
        "unix": int(time.timestamp()),
    }


def add(time, request):
    """Adds months and days to the clock on the wall, then hours to the time that passes."""
    month = time.year * 12 + time.month - 1 + request.get("months", 0)
    year, month = divmod(month, 12)
    last = calendar.monthrange(year, month + 1)[1]
    wall = time.replace(year=year, month=month + 1, day=min(time.day, last), tzinfo=None)
    wall += datetime.timedelta(days=request.get("days", 0))
    passed = datetime.timedelta(hours=request.get("hours", 0), minutes=request.get("minutes", 0), seconds=request.get("seconds", 0))
    # In a gap of the clocks, the wall's time is read with the offset before it.
    return (wall.replace(tzinfo=time.tzinfo).astimezone(UTC) + passed).astimezone(time.tzinfo)


def difference(first, second):
    seconds = int((second.astimezone(UTC) - first.astimezone(UTC)).total_seconds())
    days, rest = divmod(abs(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    text = f"{days} days, {hours} hours, {rest // 60} minutes, {rest % 60} seconds"
    return {"seconds": seconds, "text": text, "isLater": seconds > 0}


def answer(request):
    source = zone(request.get("zone", "UTC"))
    time = moment(request["time"], source) if "time" in request else datetime.datetime.now(source)
    match request["operation"]:
        case "now":
            time = datetime.datetime.now(source)
        case "add":
            time = add(time, request)
        case "difference":
            if "until" not in request:
                fail("'until' is missing: the difference of 'time' and 'until' was asked for")
            until = moment(request["until"], zone(request.get("untilZone", source.key)))
            return {"times": [shown(time), shown(until)], "difference": difference(time, until)}
    return {"times": [shown(time.astimezone(place)) for place in [source, *map(zone, request.get("to", []))]]}


def main():
    try:
        output = answer(json.load(sys.stdin))
    except (OverflowError, ValueError):
        fail("the time is before the year 1 or after the year 9999")
    print(json.dumps(output))


main()
