"""What the colours of a picture mean, drawn into its corner."""

from __future__ import annotations

import numpy as np

from .coloring import Coloring
from .paint import on_ramp

__all__ = ["draw_legend"]

INK, PAPER = (45, 50, 58), (255, 255, 255)
MOST = 8
"""Names in a legend."""


def draw_legend(pixels: np.ndarray, coloring: Coloring) -> np.ndarray:
    """The picture (h, w, 3) with a ramp or names in its lower left corner; as it is where there is nothing to say."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = pixels.shape[:2]
    unit = min(max(10, round(min(height, width) / 45)), width // 16)
    if not coloring.label or unit < 6:
        return pixels
    image = Image.fromarray(pixels).convert("RGBA")
    sheet = Image.new("RGBA", image.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(unit)
    rows = 4.0 if coloring.limits else 1.6 + 1.3 * min(len(coloring.entries), MOST)
    names = [coloring.label, *(name for name, _ in coloring.entries[:MOST])]
    across = 12 * unit if coloring.limits else 2 * unit + max(round(font.getlength(name)) for name in names)
    left, top = unit, height - unit - round(rows * unit)
    box = (left - unit // 2, top - unit // 2, left + across + unit // 2, height - unit // 2)
    pen.rounded_rectangle(box, unit // 2, fill=(*PAPER, 190))
    pen.text((left, top), coloring.label, INK, font)
    if coloring.limits:
        colors = (255 * on_ramp(np.linspace(0.0, 1.0, across), 0.0, 1.0)).astype(int)
        for k, color in enumerate(colors):
            pen.line([(left + k, top + 1.5 * unit), (left + k, top + 2.3 * unit)], tuple(color))
        low, high = (f"{value:.3g}" for value in coloring.limits)
        pen.text((left, top + 2.6 * unit), low, INK, font)
        pen.text((left + across - font.getlength(high), top + 2.6 * unit), high, INK, font)
    for k, (name, color) in enumerate(coloring.entries[:MOST]):
        y = top + (1.5 + 1.3 * k) * unit
        pen.rectangle([left, y, left + unit, y + unit], tuple(int(255 * c) for c in color))
        pen.text((left + 1.5 * unit, y), name, INK, font)
    return np.asarray(Image.alpha_composite(image, sheet).convert("RGB"))
