"""Render photographs of solid objects, each from all sides, as if each person had things and a place of their own.

A kind is a few simple bodies, two colours and a pattern. An object is a kind with other measures and, now and then,
another pattern. Its colours are like those of the kind, but objects of some kinds have any. A person has a lamp, a
background, a height of the camera and a colour of the light. Each photograph is taken from another side. Rays are
followed by signed distances (sphere tracing; Hart, 1996).
"""

from collections.abc import Iterator
from colorsys import hsv_to_rgb
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from mela.data.array_types import Floats

SIDE = 48
KINDS = 52
_STEPS, _FAR, _NEAR, _SLOPE = 40, 4.9, 0.004, 0.01
_AXES = ((1, 2), (0, 2), (0, 1))


@dataclass(frozen=True, kw_only=True)
class Part:
    """Hold a body of a solid.

    Attributes
    ----------
    body : int
        0: an ellipsoid, 1: a box, 2: a cylinder, 3: a ring, 4: a cone without its tip.
    sizes : float64 (3,)
        Half the sides of an ellipsoid or a box. Others have the radius ``sizes[0]`` and, but for rings, the height
        ``2 * sizes[2]``; rings are ``0.6 * sizes[1]`` thick.
    center : float64 (3,)
    axis : int
        The one by which it is turned.
    angle : float
    """

    body: int
    sizes: Floats
    center: Floats
    axis: int
    angle: float

    def turned(self, points: Floats) -> Floats:
        """Return points (n, 3) as seen from the body."""
        turn = np.eye(3)
        i, j = _AXES[self.axis]
        turn[[i, j], [i, j]] = np.cos(self.angle)
        turn[i, j], turn[j, i] = -np.sin(self.angle), np.sin(self.angle)
        return (points - self.center) @ turn.T

    def distance(self, points: Floats) -> Floats:
        """Return about how far points (n, 3) are from the surface (n,), negative inside."""
        p, sizes = self.turned(points), self.sizes
        height, radius = np.abs(p[:, 2]) - sizes[2], np.hypot(p[:, 0], p[:, 1])
        if self.body == 0:
            scaled = np.linalg.norm(p / sizes, axis=1)
            return scaled * (scaled - 1) / (np.linalg.norm(p / sizes**2, axis=1) + 1e-6)
        if self.body == 1:
            beyond = np.abs(p) - (sizes - 0.04)
            return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0) - 0.04
        if self.body == 2:
            beyond = np.stack([radius - sizes[0], height])
            return np.minimum(beyond.max(axis=0), 0) + np.hypot(*np.maximum(beyond, 0))
        if self.body == 3:
            return np.hypot(radius - sizes[0], p[:, 2]) - 0.3 * sizes[1]
        slope = 1 - 0.8 * np.clip((p[:, 2] + sizes[2]) / (2 * sizes[2]), 0, 1)
        return 0.75 * np.maximum(radius - sizes[0] * slope, height)


@dataclass(frozen=True, kw_only=True)
class Solid:
    """Hold a kind or an object: its parts, hues, saturations and values (2,) of its colours, and its pattern.

    Objects of a kind that is `painted` have any colours.
    """

    parts: list[Part]
    hues: Floats
    saturations: Floats
    values: Floats
    pattern: int
    painted: bool

    def distance(self, points: Floats) -> Floats:
        """Return how far points (n, 3) are from the nearest part (n,)."""
        return np.min([part.distance(points) for part in self.parts], axis=0)

    def slope(self, points: Floats) -> Floats:
        """Return the directions (n, 3) in which the surface faces."""
        steps = _SLOPE * np.eye(3)
        slopes = np.stack([self.distance(points + step) - self.distance(points - step) for step in steps], axis=1)
        return slopes / (np.linalg.norm(slopes, axis=1, keepdims=True) + 1e-6)


def kind(number: int) -> Solid:
    """Return the kind of a number, the same for every seed."""
    rng = np.random.default_rng([7, number])
    parts = [
        Part(
            body=int(rng.integers(5)),
            sizes=rng.uniform(0.18, 0.6, 3),
            center=np.array([*rng.normal(0, 0.22, 2), rng.uniform(-0.5, 0.5)]),
            axis=int(rng.integers(3)),
            angle=float(rng.uniform(0, np.pi) * (rng.random() < 0.5)),
        )
        for _ in range(rng.integers(2, 5))
    ]
    return Solid(parts=parts, **_colours(rng), pattern=int(rng.integers(4)), painted=rng.random() < 0.2)


def _colours(rng: np.random.Generator) -> dict[str, Floats]:
    """Draw two colours."""
    return {"hues": rng.random(2), "saturations": rng.uniform(0.3, 0.95, 2), "values": rng.uniform(0.35, 0.95, 2)}


def object_of(one: Solid, rng: np.random.Generator) -> Solid:
    """Return an object of a kind."""
    parts = [
        replace(
            part,
            sizes=part.sizes * np.exp(rng.normal(0, 0.08, 3)),
            center=part.center + rng.normal(0, 0.04, 3),
            angle=part.angle + rng.normal(0, 0.12),
        )
        for part in one.parts
    ]
    colours = _colours(rng)
    if not one.painted:
        colours = {
            "hues": (one.hues + rng.normal(0, 0.04, 2)) % 1,
            "saturations": np.clip(one.saturations + rng.normal(0, 0.1, 2), 0.1, 1),
            "values": np.clip(one.values + rng.normal(0, 0.1, 2), 0.2, 1),
        }
    pattern = one.pattern if rng.random() < 0.85 else int(rng.integers(4))
    return Solid(parts=parts, **colours, pattern=pattern, painted=one.painted)


def photographs(
    number: int, person: np.random.Generator, thing: np.random.Generator, count: int
) -> Iterator[Image.Image]:
    """Yield photographs of one object, from sides that differ, as `studies.labels.objects.Photographs` says."""
    solid, place = object_of(kind(number), thing), Place.drawn(person)
    frequency, shift = thing.uniform(5, 14), thing.uniform(0, 6, 3)
    colours = np.array([*map(hsv_to_rgb, solid.hues, solid.saturations, solid.values)])
    for _ in range(count):
        origins, forward = place.rays(thing)
        hit, points = _followed(solid, origins, forward)
        waves = points * frequency + shift
        second = [
            np.zeros(len(points), dtype=bool),
            np.sin(waves[:, 2]) > 0.3,
            np.sin(waves).prod(axis=1) > 0.15,
            points[:, 2] > 0.15,
        ][solid.pattern]
        yield place.photograph(hit, colours[second.astype(int)], solid.slope(points), forward, thing)


def _followed(solid: Solid, origins: Floats, forward: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return which rays (n, 3) of one direction meet the solid (n,), or nearly, and where these do."""
    depth, going = np.zeros(len(origins)), np.arange(len(origins))
    for _ in range(_STEPS):
        step = solid.distance(origins[going] + depth[going, None] * forward)
        depth[going] += step
        going = going[(step > _NEAR) & (depth[going] < _FAR)]
    hit = depth < _FAR
    return hit, origins[hit] + depth[hit, None] * forward


@dataclass(frozen=True, kw_only=True)
class Place:
    """Hold where a person takes photographs."""

    light: Floats
    ambient: float
    gains: Floats
    backs: Floats
    stripes: Floats
    elevation: float
    zoom: float
    blur: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "Place":
        """Draw a place."""
        light = rng.normal(0, 1, 3) + np.array([0, 0, 1.2])
        backs = [hsv_to_rgb(rng.random(), rng.uniform(0, 0.6), rng.uniform(0.2, 0.9)) for _ in range(2)]
        frequency, angle = rng.uniform(1, 9), rng.uniform(0, np.pi)
        return cls(
            light=light / np.linalg.norm(light),
            ambient=rng.uniform(0.25, 0.6),
            gains=np.exp(rng.normal(0, 0.2, 3) + rng.normal(0, 0.25)),
            backs=np.array(backs),
            stripes=3 * frequency * np.array([np.cos(angle), np.sin(angle)]),
            elevation=rng.uniform(0.25, 1.0),
            zoom=np.exp(rng.normal(0, 0.12)),
            blur=max(0.0, rng.normal(0.3, 0.5)),
        )

    def rays(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return where the rays of a photograph begin (SIDE * SIDE, 3), row by row, and their direction (3,)."""
        turn = rng.uniform(0, 2 * np.pi)
        up = np.clip(self.elevation + rng.normal(0, 0.12), 0.05, 1.35)
        forward = -np.array([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)])
        right = np.array([-np.sin(turn), np.cos(turn), 0.0])
        plane = _GRID * (1.25 / self.zoom * np.exp(rng.normal(0, 0.05))) + rng.normal(0, 0.08, 2)
        return plane @ np.stack([right, np.cross(right, forward)]) - 2.5 * forward, forward

    def photograph(
        self,
        hit: NDArray[np.bool_],
        colours: Floats,
        slopes: Floats,
        forward: Floats,
        rng: np.random.Generator,
    ) -> Image.Image:
        """Return a photograph of a surface that some rays hit, of its colours and directions (n_hit, 3)."""
        wave = 0.5 + 0.5 * np.sin(_GRID @ self.stripes + rng.uniform(0, 0.5))
        image = self.backs[0] * (1 - wave[:, None]) + self.backs[1] * wave[:, None]
        between = (self.light - forward) / np.linalg.norm(self.light - forward)
        shade = self.ambient + (1 - self.ambient) * np.clip(slopes @ self.light, 0, 1)
        gloss = 0.25 * np.clip(slopes @ between, 0, 1) ** 20
        image[hit] = colours * shade[:, None] + gloss[:, None]
        image = image * self.gains * np.exp(rng.normal(0, 0.05)) + rng.normal(0, 0.015, image.shape)
        shown = Image.fromarray((255 * np.clip(image, 0, 1)).astype(np.uint8).reshape(SIDE, SIDE, 3))
        return shown.filter(ImageFilter.GaussianBlur(self.blur)) if self.blur > 0.2 else shown


def _grid() -> Floats:
    """Return the places of pixels (SIDE * SIDE, 2), from -1 to 1, to the right and upwards."""
    line = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    right, up = np.meshgrid(line, -line)
    return np.stack([right.ravel(), up.ravel()], axis=1)


_GRID = _grid()
