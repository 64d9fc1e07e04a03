"""Draws a bar, line or pie chart as SVG. Every text of the caller is escaped: the picture has no script and no link."""

import html, json, math, sys

DATA_ERROR = 65
COLORS = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0"]
TOP, RIGHT, BOTTOM, LEFT = 48, 24, 72, 64


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(DATA_ERROR)


def words(value, longest=40):
    # XML has no control characters, and no halves of surrogate pairs.
    kept = "".join(c for c in str(value) if c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF and ord(c) not in (0xFFFE, 0xFFFF))
    return html.escape(kept if len(kept) <= longest else kept[: longest - 1] + "…")


def n(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x, y, value, anchor="middle", size=12, extra=""):
    return f'<text x="{n(x)}" y="{n(y)}" text-anchor="{anchor}" font-size="{size}"{extra}>{words(value)}</text>'


def steps(low, high):
    """Returns round numbers for the axis, from at most `low` to at least `high`."""
    greatest = max(abs(low), abs(high))
    # Marks closer than that would be the same number.
    span = max(high - low, greatest * 1e-9, 1e-300) if greatest else 1
    size = 10 ** math.floor(math.log10(span / 4))
    size *= next((factor for factor in (1, 2, 5) if span / (size * factor) <= 6), 10)
    first, last = math.floor(low / size), math.ceil(high / size)
    return [float(f"{place * size:.12g}") for place in range(first, max(last, first + 1) + 1)]


def color(place):
    return COLORS[place % len(COLORS)]


def legend(names, width, height):
    shown, x = [], LEFT
    for place, name in enumerate(names):
        shown.append(f'<rect x="{n(x)}" y="{height - 22}" width="12" height="12" fill="{color(place)}"/>')
        shown.append(text(x + 16, height - 12, name if len(name) <= 16 else name[:15] + "…", "start"))
        x += (width - LEFT - RIGHT) / len(names)
    return shown


def axes(request, series, width, height):
    """Draws the axes, and returns them with the functions that place a value and a label."""
    values = [value for row in series for value in row["values"] if value is not None]
    low, high = min(values), max(values)
    if request["type"] == "bar":
        low, high = min(low, 0), max(high, 0)
    marks = steps(low, high)
    inner, count = height - TOP - BOTTOM, len(request["labels"])
    slot = (width - LEFT - RIGHT) / count

    def y(value):
        return TOP + inner * (marks[-1] - value) / (marks[-1] - marks[0])

    shown = []
    for mark in marks:
        shown.append(f'<line x1="{LEFT}" x2="{width - RIGHT}" y1="{n(y(mark))}" y2="{n(y(mark))}" stroke="#ddd"/>')
        shown.append(text(LEFT - 8, y(mark) + 4, f"{mark:g}", "end"))
    every = math.ceil(count / max(1, int((width - LEFT - RIGHT) / 60)))
    for place, label in enumerate(request["labels"]):
        if place % every == 0:
            label = label if len(label) <= 12 else label[:11] + "…"
            shown.append(text(LEFT + slot * (place + 0.5), height - BOTTOM + 18, label))
    return shown, y, slot


def bars(request, series, width, height):
    shown, y, slot = axes(request, series, width, height)
    thick = slot * 0.8 / len(series)
    for which, row in enumerate(series):
        for place, value in enumerate(row["values"]):
            if value is None:
                continue
            x = LEFT + slot * (place + 0.1) + thick * which
            top, bottom = sorted([y(value), y(0)])
            title = f"<title>{words(request['labels'][place])}: {value:g}</title>"
            shown.append(f'<rect x="{n(x)}" y="{n(top)}" width="{n(thick)}" height="{n(bottom - top)}" fill="{color(which)}">{title}</rect>')
    return shown


def lines(request, series, width, height):
    shown, y, slot = axes(request, series, width, height)
    for which, row in enumerate(series):
        path, is_down = [], False
        for place, value in enumerate(row["values"]):
            # A missing value leaves a gap.
            if value is not None:
                x = LEFT + slot * (place + 0.5)
                path.append(f"{'L' if is_down else 'M'}{n(x)} {n(y(value))}")
                shown.append(f'<circle cx="{n(x)}" cy="{n(y(value))}" r="3" fill="{color(which)}"/>')
            is_down = value is not None
        shown.append(f'<path d="{" ".join(path)}" fill="none" stroke="{color(which)}" stroke-width="2"/>')
    return shown


def pie(request, series, width, height):
    values = [value or 0 for value in series[0]["values"]]
    if len(series) > 1 or min(values) < 0 or not 0 < sum(values) < math.inf:
        fail("a pie needs one series, with no number below zero and one above")
    radius = min(height - TOP - 24, width / 2) / 2
    x, y, start, shown = radius + 24, TOP + radius, -math.pi / 2, []
    for place, value in enumerate(values):
        part = value / sum(values)
        end = start + 2 * math.pi * part
        fill = f'fill="{color(place)}" stroke="#fff"'
        if part > 0.9999:
            shown.append(f'<circle cx="{n(x)}" cy="{n(y)}" r="{n(radius)}" {fill}/>')
        elif part > 0:
            ends = [f"{n(x + radius * math.cos(angle))} {n(y + radius * math.sin(angle))}" for angle in (start, end)]
            shown.append(f'<path d="M{n(x)} {n(y)}L{ends[0]}A{n(radius)} {n(radius)} 0 {int(part > 0.5)} 1 {ends[1]}Z" {fill}/>')
        row = TOP + 12 + place * min(20, (height - TOP - 24) / len(values))
        shown.append(f'<rect x="{n(2 * radius + 56)}" y="{n(row - 10)}" width="10" height="10" fill="{color(place)}"/>')
        shown.append(text(2 * radius + 72, row, f"{request['labels'][place][:28]} {100 * part:.1f} %", "start"))
        start = end
    return shown


def main():
    request = json.load(sys.stdin)
    series, labels = request["series"], request["labels"]
    for row in series:
        if len(row["values"]) != len(labels):
            fail(f"series {row['name']!r} has {len(row['values'])} values for {len(labels)} labels; give one for each")
        if all(value is None for value in row["values"]):
            fail(f"series {row['name']!r} has no number")
    width, height = request.get("width", 720), request.get("height", 420)
    draw = {"bar": bars, "line": lines, "pie": pie}[request["type"]]
    title = request.get("title", "")
    shown = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" role="img">',
        f"<title>{words(title, 120)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        text(width / 2, 28, title[:80], size=16),
        *draw(request, series, width, height),
    ]
    if request["type"] != "pie" and len(series) > 1:
        shown += legend([row["name"] for row in series], width, height)
    print(json.dumps({"svg": "\n".join([*shown, "</svg>"]), "mediaType": "image/svg+xml"}))


main()
