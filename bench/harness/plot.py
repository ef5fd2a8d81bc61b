"""Draws charts as SVG without a library: bars for a bench's rows, and lines over time."""

from xml.sax.saxutils import escape

COLORS = {"asked": "#b9c0c8", "got": "#1f6fb4", "native": "#5aa469", "mps": "#8e5ea2",
          "rival": "#d98032"}
LABELS = {"asked": "asked", "got": "allot", "native": "native", "mps": "plain MPS",
          "rival": "rival"}
LINES = ["#1f6fb4", "#d98032", "#5aa469", "#8e5ea2", "#c0504d", "#3f8f8f"]


def nice_ceiling(value):
    """The least of 1, 2, 5 x 10^n that is at least the value."""
    step = 1.0
    while step * 10 <= value:
        step *= 10
    while step > value > 0:
        step /= 10
    for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10):
        if factor * step >= value:
            return factor * step
    return value


class Canvas:
    def __init__(self, width, height, title):
        self.parts = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
                      f"viewBox='0 0 {width} {height}'>",
                      f"<rect width='{width}' height='{height}' fill='white'/>"]
        self.text(16, 24, title, size=15, weight="bold")

    def text(self, x, y, text, anchor="start", size=12, weight="normal", color="#222"):
        self.parts.append(f"<text x='{x:.1f}' y='{y:.1f}' font-family='sans-serif' "
                          f"font-size='{size}' font-weight='{weight}' fill='{color}' "
                          f"text-anchor='{anchor}'>{escape(text)}</text>")

    def rect(self, x, y, width, height, color):
        self.parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0):.1f}' "
                          f"height='{height:.1f}' fill='{color}'/>")

    def line(self, x1, y1, x2, y2, color="#ddd", dash=""):
        dash = f" stroke-dasharray='{dash}'" if dash else ""
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' "
                          f"stroke='{color}'{dash}/>")

    def polyline(self, points, color):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f"<polyline points='{path}' fill='none' stroke='{color}' "
                          "stroke-width='1.8'/>")

    def legend(self, x, y, entries):
        for label, color in entries:
            self.rect(x, y - 9, 12, 10, color)
            self.text(x + 17, y, label)
            x += 34 + 7 * len(label)

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts) + "\n</svg>\n")


def bars(path, title, rows, unit, labels=LABELS):
    """The rows below each other, each with a bar for every value that it has."""
    rows = [row for row in rows if row.unit == unit]
    if not rows:
        return
    left, right, top, thick = 330, 70, 62, 13
    keys = [key for key in COLORS if any(getattr(row, key) is not None for row in rows)]
    groups = [[(key, getattr(row, key)) for key in keys if getattr(row, key) is not None]
              for row in rows]
    height = top + sum(len(group) * thick + 12 for group in groups) + 28
    width = 860
    most = nice_ceiling(max(max(value, 0) for group in groups for _, value in group) or 1)
    canvas = Canvas(width, height, title)
    canvas.legend(16, 46, [(labels[key], COLORS[key]) for key in keys])

    def place(value):
        return left + max(value, 0) / most * (width - left - right)
    for i in range(6):
        x = place(most * i / 5)
        canvas.line(x, top - 6, x, height - 26)
        canvas.text(x, height - 10, f"{most * i / 5:g}", "middle", color="#666")
    canvas.text(width - 14, height - 10, unit, "end", color="#666")
    y = top
    for row, group in zip(rows, groups):
        canvas.text(left - 10, y + len(group) * thick / 2 + 4, row.name, "end")
        for key, value in group:
            canvas.rect(left, y, place(value) - left, thick - 2, COLORS[key])
            canvas.text(place(value) + 4, y + thick - 3, f"{value:.4g}", size=10, color="#444")
            y += thick
        y += 12
    canvas.save(path)


def note(parts, now, color):
    """Adds a reading to the parts of a row of spans(). A reading of the same color extends the last part."""
    if parts and parts[-1][2] == color:
        parts[-1] = (parts[-1][0], now, color)
    else:
        parts.append((parts[-1][1] if parts else 0.0, now, color))


def spans(path, title, groups):
    """A chart of colored spans over time. groups: {label: [(name, [(begin_s, end_s, color), ...], note)]}, below each other."""
    left, right, top, thick = 150, 150, 56, 16
    longest = max(end for rows in groups.values() for _, parts, _ in rows for _, end, _ in parts)
    height = top + sum(30 + thick * len(rows) for rows in groups.values()) + 30
    width = 860
    most = nice_ceiling(longest)
    canvas = Canvas(width, height, title)

    def place(t):
        return left + t / most * (width - left - right)
    for i in range(6):
        canvas.line(place(most * i / 5), top - 6, place(most * i / 5), height - 26)
        canvas.text(place(most * i / 5), height - 10, f"{most * i / 5:g}", "middle", color="#666")
    canvas.text(width - 14, height - 10, "seconds", "end", color="#666")
    y = top
    for label, rows in groups.items():
        canvas.text(16, y + 14, label, weight="bold")
        y += 22
        for name, parts, note in rows:
            canvas.text(left - 10, y + thick - 5, name, "end", size=11)
            for begin, end, color in parts:
                canvas.rect(place(begin), y, place(end) - place(begin), thick - 3, color)
            canvas.text(place(parts[-1][1]) + 6, y + thick - 5, note, size=10, color="#444")
            y += thick
        y += 8
    canvas.save(path)


def lines(path, title, series, asked, y_label, x_label="seconds", ticks=()):
    """series: {label: values, one for each second}; asked: {label: value that was asked for}; ticks: labels below the
    values."""
    width, height, left, right, top, bottom = 860, 340, 60, 24, 62, 40
    canvas = Canvas(width, height, title)
    longest = max(len(values) for values in series.values())
    most = nice_ceiling(max(max(values) for values in series.values()) or 1)

    def place(i, value):
        return (left + i / max(longest - 1, 1) * (width - left - right),
                height - bottom - value / most * (height - top - bottom))
    for i in range(6):
        x, y = place(0, most * i / 5)
        canvas.line(x, y, width - right, y)
        canvas.text(x - 8, y + 4, f"{most * i / 5:g}", "end", color="#666")
    canvas.text(16, 46, y_label, color="#666")
    canvas.text(width - right, height - 10, x_label, "end", color="#666")
    for i, tick in enumerate(ticks):
        canvas.text(place(i, 0)[0], height - bottom + 14, tick, "middle", size=10, color="#666")
    canvas.legend(240, 46, [(label, LINES[n % len(LINES)]) for n, label in enumerate(series)])
    for n, (label, values) in enumerate(series.items()):
        color = LINES[n % len(LINES)]
        if label in asked:
            x, y = place(0, asked[label])
            canvas.line(x, y, width - right, y, color, "4 4")
        canvas.polyline([place(i, value) for i, value in enumerate(values)], color)
    canvas.save(path)
