"""Dates of the calendar: facts about one, the days between two, and a date after or before another one."""

import calendar, datetime, json, sys

DATA_ERROR = 65
MAX_DAYS = 400_000


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(DATA_ERROR)


def date(text):
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        fail(f"{text!r} is no date; write it like 2026-02-28")


def is_working(day, weekend, holidays):
    return day.strftime("%A") not in weekend and day not in holidays


def describe(day):
    year, week, _ = day.isocalendar()
    return {
        "date": day.isoformat(),
        "weekday": day.strftime("%A"),
        "week": f"{year}-W{week:02}",
        "quarter": (day.month + 2) // 3,
        "dayOfYear": day.timetuple().tm_yday,
        "daysInMonth": calendar.monthrange(day.year, day.month)[1],
        "isLeapYear": calendar.isleap(day.year),
    }


def whole_months(first, last):
    months = (last.year - first.year) * 12 + last.month - first.month
    return months - (1 if last.day < first.day else 0)


def difference(first, last, weekend, holidays):
    early, late = sorted([first, last])
    days = (late - early).days
    if days > MAX_DAYS:
        fail(f"the dates are {days} days apart; at most {MAX_DAYS} are counted")
    working = sum(is_working(early + datetime.timedelta(days=n), weekend, holidays) for n in range(days))
    months = whole_months(early, late)
    sign = 1 if last >= first else -1
    return {
        "days": sign * days,
        # Of the first of the two, not of the second.
        "workingDays": sign * working,
        "weeks": sign * (days // 7),
        "months": sign * months,
        "years": sign * (months // 12),
    }


def add(day, request, weekend, holidays):
    month = day.year * 12 + day.month - 1 + request.get("months", 0)
    year, month = divmod(month, 12)
    day = day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))
    day += datetime.timedelta(days=request.get("days", 0))
    left = request.get("workingDays", 0)
    step = datetime.timedelta(days=1 if left > 0 else -1)
    for _ in range(MAX_DAYS):
        if left == 0:
            return day
        day += step
        if is_working(day, weekend, holidays):
            left -= int(step.days)
    fail("there are too few working days: 'weekend' has every day, or the date is too far away")


def main():
    request = json.load(sys.stdin)
    weekend = set(request.get("weekend", ["Saturday", "Sunday"]))
    holidays = {date(text) for text in request.get("holidays", [])}
    day = date(request["date"])
    try:
        match request["operation"]:
            case "describe":
                output = describe(day)
            case "add":
                output = describe(add(day, request, weekend, holidays))
            case _:
                if "until" not in request:
                    fail("'until' is missing: the days between 'date' and 'until' were asked for")
                output = difference(day, date(request["until"]), weekend, holidays)
    except (OverflowError, ValueError):
        fail("the date is before the year 1 or after the year 9999")
    print(json.dumps(output))


main()
