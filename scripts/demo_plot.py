"""Draws the demo's picture as SVG: what each tenant asked for and what it got. Needs only python3."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1040, 484
TOP, BOTTOM = 132, 410
INK, FAINT, GRID = "#1d2733", "#5c6875", "#e3e7ec"
COLORS = ["#2463a8", "#c8641a", "#2c8a5b", "#8b4aa0", "#7a6a1f"]


class Svg:
    def __init__(self):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" '
            'font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']

    def text(self, x, y, words, size=13, color=INK, anchor="start", weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" '
                          f'text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, color=GRID, width=1, dash=None):
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{color}" stroke-width="{width}"{extra}/>')

    def box(self, x, y, width, height, fill="none", stroke="none", dash=None, opacity=1.0):
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                          f'height="{max(height, 0):.1f}" fill="{fill}" stroke="{stroke}" '
                          f'stroke-width="1.5" fill-opacity="{opacity}"{extra}/>')

    def path(self, points, color):
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{text}" fill="none" stroke="{color}" '
                          'stroke-width="2" stroke-linejoin="round"/>')

    def finish(self):
        return "\n".join(self.parts + ["</svg>", ""])


def nice_top(value, steps=6):
    """(the least multiple of a round step that is not below value, the step); it takes only a few steps."""
    scale = 1e-3
    while True:
        for factor in (1, 2, 2.5, 5):
            step = factor * scale
            if step * steps >= value:
                return step * math.ceil(value / step), step
        scale *= 10


def draw_scale(svg, left, right, top, step, unit):
    """Grid lines and numbers; returns the function from value to y."""
    def to_y(value):
        return BOTTOM - (BOTTOM - TOP) * value / top

    value = 0.0
    while value <= top * 1.0001:
        svg.line(left, to_y(value), right, to_y(value), GRID if value else INK)
        svg.text(left - 8, to_y(value) + 4, f"{value:g}", 12, FAINT, "end")
        value += step
    svg.text(left - 8, TOP - 12, unit, 12, FAINT, "end")
    return to_y


def draw_bars(svg, left, right, title, unit, tenants, asked, got, form):
    """Two bars for each tenant: an outline for what it asked for, a filled one for what it got."""
    svg.text(left - 30, TOP - 38, title, 14, INK, weight="600")
    most = max([asked(t) for t in tenants] + [got(t) for t in tenants] + [1e-3])
    top, step = nice_top(most * 1.12)
    to_y = draw_scale(svg, left, right, top, step, unit)
    room = (right - left) / len(tenants)
    bar = min(room * 0.34, 34)
    for i, tenant in enumerate(tenants):
        center = left + room * (i + 0.5)
        color = COLORS[i % len(COLORS)]
        y = to_y(asked(tenant))
        svg.box(center - bar - 1, y, bar, BOTTOM - y, "#ffffff", color, dash="4 3")
        svg.text(center - bar / 2 - 2, y - 6, form(asked(tenant)), 11, FAINT, "middle")
        y = to_y(got(tenant))
        svg.box(center + 2, y, bar, BOTTOM - y, color)
        svg.text(center + bar / 2 + 4, y - 6, form(got(tenant)), 11, INK, "middle", "600")
        svg.text(center, BOTTOM + 18, tenant["name"], 12, INK, "middle")


def draw_series(svg, left, right, tenants):
    svg.text(left - 30, TOP - 38, "GPU time over the run", 14, INK, weight="600")
    last = max([t for tenant in tenants for t, _ in tenant["series"]] + [1])
    most = max([tenant["asked_pct"] for tenant in tenants] +
               [pct for tenant in tenants for _, pct in tenant["series"]])
    top, step = nice_top(most * 1.12)
    to_y = draw_scale(svg, left, right, top, step, "%")

    def to_x(seconds):
        return left + (right - left) * seconds / last

    for i, tenant in enumerate(tenants):
        color = COLORS[i % len(COLORS)]
        y = to_y(tenant["asked_pct"])
        svg.line(left, y, right, y, color, 1.5, "4 3")
        points = [(to_x(t), to_y(pct)) for t, pct in tenant["series"]]
        if points:
            svg.path([(left, points[0][1])] + points, color)
        svg.text(right + 6, y + 4, tenant["name"], 12, color)
    _, tick = nice_top(last, 5)
    for n in range(6):
        if n * tick <= last * 1.001:
            svg.text(to_x(n * tick), BOTTOM + 18, f"{n * tick:g} s", 12, FAINT, "middle")


def draw_key(svg, x, y):
    svg.box(x, y - 10, 14, 12, "#ffffff", FAINT, dash="4 3")
    svg.text(x + 20, y, "asked for", 12, FAINT)
    svg.box(x + 92, y - 10, 14, 12, FAINT)
    svg.text(x + 112, y, "got", 12, FAINT)


def draw(path, subtitle, tenants, note=""):
    """
    Writes the picture. Each tenant is a dictionary: name, asked_pct, got_pct, quota_gib, held_gib, and series,
    a list of (seconds, percent). All series may be empty.
    """
    svg = Svg()
    svg.text(30, 34, "One GPU, three tenants: what they asked for and what they got", 18, INK,
             weight="600")
    svg.text(30, 56, subtitle, 13, FAINT)
    draw_key(svg, WIDTH - 180, 34)
    with_series = any(tenant["series"] for tenant in tenants)
    first = (70, 330) if with_series else (70, 480)
    second = (416, 626) if with_series else (610, WIDTH - 40)
    draw_bars(svg, *first, "Share of GPU time, by work done", "%", tenants,
              lambda t: t["asked_pct"], lambda t: t["got_pct"], lambda v: f"{v:.1f}")
    draw_bars(svg, *second, "Memory: quota, held", "GiB", tenants,
              lambda t: t["quota_gib"], lambda t: t["held_gib"], lambda v: f"{v:.1f}")
    if with_series:
        draw_series(svg, 712, WIDTH - 62, tenants)
    svg.text(30, HEIGHT - 20, note, 12, FAINT)
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg.finish())
