"""Converts a number between units of the same kind, exactly."""

import difflib, json, sys
from decimal import Context, Decimal
from fractions import Fraction

DATA_ERROR = 65
INCH, POUND = Fraction("0.0254"), Fraction("0.45359237")
GALLON, PINT = 231 * INCH**3 * 1000, Fraction("0.56826125")
PI = Fraction("3.14159265358979323846264338327950288")

# Each unit in the first one of its kind.
UNITS = {
    "length": {
        "m": 1, "km": 1000, "dm": "0.1", "cm": "0.01", "mm": "0.001", "um": "1e-6", "nm": "1e-9", "inch": INCH, "foot": 12 * INCH,
        "yard": 36 * INCH, "mile": 63_360 * INCH, "nautical-mile": 1852, "light-year": 9_460_730_472_580_800, "au": 149_597_870_700,
    },
    "mass": {
        "kg": 1, "g": "0.001", "mg": "1e-6", "ug": "1e-9", "t": 1000, "pound": POUND, "ounce": POUND / 16, "stone": 14 * POUND,
        "short-ton": 2000 * POUND, "long-ton": 2240 * POUND, "carat": "0.0002",
    },
    "time": {
        "s": 1, "ms": "0.001", "us": "1e-6", "ns": "1e-9", "min": 60, "h": 3600, "day": 86_400, "week": 604_800, "year": 31_557_600,
    },
    "area": {
        "m2": 1, "km2": 1_000_000, "cm2": "1e-4", "mm2": "1e-6", "hectare": 10_000, "are": 100, "acre": 4840 * (36 * INCH) ** 2,
        "square-inch": INCH**2, "square-foot": (12 * INCH) ** 2, "square-mile": (63_360 * INCH) ** 2,
    },
    "volume": {
        "l": 1, "ml": "0.001", "cl": "0.01", "dl": "0.1", "m3": 1000, "cm3": "0.001", "us-gallon": GALLON, "us-quart": GALLON / 4,
        "us-pint": GALLON / 8, "us-cup": GALLON / 16, "us-fluid-ounce": GALLON / 128, "tablespoon": GALLON / 256,
        "teaspoon": GALLON / 768, "uk-gallon": 8 * PINT, "uk-pint": PINT, "uk-fluid-ounce": PINT / 20, "barrel": 42 * GALLON,
    },
    "speed": {"m/s": 1, "km/h": Fraction(5, 18), "mph": 63_360 * INCH / 3600, "knot": Fraction(1852, 3600), "foot/s": 12 * INCH},
    "data": {
        "byte": 1, "bit": Fraction(1, 8), "kB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4, "PB": 1000**5, "KiB": 1024,
        "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4, "PiB": 1024**5, "Mbit": 125_000, "Gbit": 125_000_000,
    },
    "energy": {"J": 1, "kJ": 1000, "MJ": 1_000_000, "Wh": 3600, "kWh": 3_600_000, "cal": "4.184", "kcal": 4184, "BTU": "1055.05585262"},
    "power": {"W": 1, "kW": 1000, "MW": 1_000_000, "horsepower": "745.69987158227022", "metric-horsepower": "735.49875"},
    "pressure": {"Pa": 1, "hPa": 100, "kPa": 1000, "bar": 100_000, "mbar": 100, "atm": 101_325, "psi": POUND * Fraction("9.80665") / INCH**2, "mmHg": "133.322387415"},
    "angle": {"degree": 1, "radian": 180 / PI, "turn": 360, "arcminute": Fraction(1, 60), "arcsecond": Fraction(1, 3600), "gradian": Fraction(9, 10)},
    "consumption": {"l/100km": 1, "km/l": 100, "us-mpg": 100 * GALLON / (63_360 * INCH / 1000), "uk-mpg": 800 * PINT / (63_360 * INCH / 1000)},
    "temperature": {"K": 1, "C": 1, "F": Fraction(5, 9), "R": Fraction(5, 9)},
}
# Kelvin at the zero of a scale.
ZEROS = {"C": Fraction("273.15"), "F": Fraction("459.67") * 5 / 9}
# Kilometers with a liter: the more, the less fuel.
INVERSE = {"km/l", "us-mpg", "uk-mpg"}
ALIASES = {
    "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km", "centimeter": "cm", "millimeter": "mm", "in": "inch", "ft": "foot",
    "feet": "foot", "yd": "yard", "mi": "mile", "nmi": "nautical-mile", "gram": "g", "kilogram": "kg", "ton": "t", "tonne": "t",
    "lb": "pound", "lbs": "pound", "oz": "ounce", "second": "s", "sec": "s", "minute": "min", "hour": "h", "d": "day", "liter": "l",
    "litre": "l", "L": "l", "milliliter": "ml", "mL": "ml", "gallon": "us-gallon", "cup": "us-cup", "kmh": "km/h", "kph": "km/h",
    "B": "byte", "celsius": "C", "fahrenheit": "F", "kelvin": "K", "rankine": "R", "°C": "C", "°F": "F", "joule": "J", "watt": "W",
    "hp": "horsepower", "deg": "degree", "rad": "radian", "ha": "hectare", "sqft": "square-foot", "mpg": "us-mpg", "kt": "knot",
}
KINDS = {unit: kind for kind, units in UNITS.items() for unit in units}


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(DATA_ERROR)


def unit(text):
    plurals = [text, text[:-1] if text.endswith("s") else text, "inch" if text == "inches" else text]
    for word in [*plurals, *map(str.lower, plurals)]:
        if (name := ALIASES.get(word, word)) in KINDS:
            return name
    known = [*KINDS, *ALIASES]
    near = difflib.get_close_matches(text, known, n=3, cutoff=0.6)
    hint = f"; did you mean {', '.join(near)}?" if near else "; use one of the description"
    fail(f"unknown unit {text!r}{hint}")


def in_base(value, name):
    factor = Fraction(UNITS[KINDS[name]][name])
    if name in INVERSE:
        return factor / value
    return value * factor + ZEROS.get(name, 0)


def from_base(value, name):
    factor = Fraction(UNITS[KINDS[name]][name])
    if name in INVERSE:
        return factor / value
    return (value - ZEROS.get(name, 0)) / factor


def text(value, digits):
    context = Context(prec=digits)
    decimal = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return format(decimal, "f") if -10 <= decimal.adjusted() <= 20 else str(decimal)


def main():
    request = json.load(sys.stdin, parse_float=Decimal)
    source, target = unit(request["from"]), unit(request["to"])
    if KINDS[source] != KINDS[target]:
        fail(f"{source} is a unit of {KINDS[source]}, and {target} one of {KINDS[target]}")
    try:
        base = in_base(Fraction(request["value"]), source)
        if source in ("C", "F", "K", "R") and base < 0:
            fail(f"{request['value']} {source} is below absolute zero")
        value = from_base(base, target)
    except ZeroDivisionError:
        fail(f"0 {source} has no value in {target}")
    result = text(value, request.get("digits", 12))
    print(json.dumps({"value": result, "unit": target, "kind": KINDS[target], "text": f"{request['value']} {source} = {result} {target}"}))


main()
