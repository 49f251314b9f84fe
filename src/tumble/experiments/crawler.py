"""A tracked machine of rigid bodies: chassis with a blade, and two tracks of shoes on revolute joints.

Frame: x ahead, y to the left, z up; the ground is z = 0 and the sprockets' axle lies above x = 0. A track is a closed
chain of pins, a pitch apart; shoe k reaches from pin k to pin k + 1. Its plate lies outside the line of the pins and
carries a bushing at pin k + 1. Sprocket teeth stand between the bushings, rollers run on the plates beside them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import tumble as tb

from ..scene import rotation
from ..scene.joint_model import Target

SHOES, TEETH, PITCH = 50, 10, 0.2
"""Shoes of a track, teeth of a sprocket, distance of the pins [m]."""
PITCH_RADIUS = PITCH / (2.0 * math.sin(math.pi / TEETH))
"""Of the pins on the sprocket [m]."""
STRAIGHT = (SHOES - TEETH) // 2
"""Shoes of the upper and of the lower run."""
AXLES = 3.97
"""Distance of the axles of sprocket and front roller [m]: a little less than the runs are long, since a taut polygon
locks."""
TRACKS = 2.0
"""Distance of the tracks' middles [m]."""
BUSHING, BUSHING_LENGTH = 0.03, 0.2
"""Radius and length of the bushings [m]."""
PLATE, PLATE_INSIDE = (0.19, 0.5, 0.05), 0.03
"""Size of a shoe's plate, and how far outside the line of the pins it begins [m]."""
PIN_HEIGHT = PLATE_INSIDE + PLATE[2]
"""Of the lower run above the ground [m]."""
AXLE_HEIGHT = PIN_HEIGHT + PITCH_RADIUS
HUB_WIDTH, DISC_WIDTH, DISC_OFFSET = 0.12, 0.1, 0.17
"""Widths of the sprocket and of each of a roller's two discs, and the discs' distance from the track's middle [m]."""
TOOTH = ((0.062, 0.27), (0.066, 0.308), (0.052, 0.332))
"""Half of a tooth's outline: half-width and distance from the axle [m]. It leaves 4 mm to the bushings, and stays
within a pitch less a bushing of the pin behind it, so that a shoe swings out freely."""
FRONT_RADIUS = PITCH_RADIUS * math.cos(math.pi / TEETH) + PLATE_INSIDE - 0.003
"""Of the front roller: the plates of a chain that is wound round it as round the sprocket just clear it [m]."""
ROAD_RADIUS, ROAD_ROLLERS = 0.25, (0.66, 1.545, 2.43, 3.315)
"""Radius and places of the rollers that carry the machine [m]."""
CHASSIS, CHASSIS_PLACE = (3.4, 1.3, 0.6), (1.985, 0.0, 0.75)
BLADE, BLADE_PLACE = (0.05, 2.6, 0.9), (4.625, 0.0, 0.47)
ARM, ARM_PLACE = (0.95, 0.12, 0.12), (4.15, 0.4, 0.6)
BLADE_FRONT = BLADE_PLACE[0] + 0.5 * BLADE[0]
"""Foremost point of the machine [m]."""
MASS_CHASSIS, MASS_WHEEL, MASS_SHOE = 5000.0, 250.0, 20.0
"""[kg]; wheels are sprockets and rollers."""
SIDES = {"left": 0.5 * TRACKS, "right": -0.5 * TRACKS}
SHOE_GROUP = 2
ALONG_Y = tuple(rotation.from_axis_angle((1.0, 0.0, 0.0), -0.5 * math.pi))
"""Turns the axis of a cylinder from z to y."""


@dataclass(frozen=True)
class Crawler:
    """Names and materials of a machine in a scene."""

    chassis: int
    """Index of the body"""
    motors: tuple[str, ...]
    """Of the sprockets"""
    shoes: tb.Material
    """Material of the shoes, by which the ground feels them"""


def track_pins() -> np.ndarray:
    """Pins (SHOES, 2) of a track in x and z [m]: lower run ahead, round the front, upper run back, round the sprocket.

    The front is wound about a point 0.03 m before the front roller's axle: the play of the chain.
    """
    length = STRAIGHT * PITCH
    step = 2.0 * math.pi / TEETH
    along = PITCH * np.arange(STRAIGHT)
    ahead = -0.5 * math.pi + step * np.arange(TEETH // 2)
    lower = np.stack([along, np.full(STRAIGHT, -PITCH_RADIUS)], axis=1)
    front = np.stack([length + PITCH_RADIUS * np.cos(ahead), PITCH_RADIUS * np.sin(ahead)], axis=1)
    upper = np.stack([length - along, np.full(STRAIGHT, PITCH_RADIUS)], axis=1)
    back = -PITCH_RADIUS * np.stack([np.cos(ahead), np.sin(ahead)], axis=1)
    return np.concatenate([lower, front, upper, back]) + np.array([0.0, AXLE_HEIGHT])


def tooth(angle: float) -> tb.ConvexHull:
    """A tooth at an angle about y from straight ahead [rad], in the sprocket's frame."""
    ahead = np.array([math.cos(angle), 0.0, -math.sin(angle)])
    beside = np.array([math.sin(angle), 0.0, math.cos(angle)])
    width = np.array([0.0, 0.5 * HUB_WIDTH, 0.0])
    return tb.ConvexHull(
        np.array([r * ahead + s * w * beside + e * width for w, r in TOOTH for s in (-1, 1) for e in (-1, 1)])
    )


def sprocket() -> list[tb.Placed | tb.ConvexHull]:
    """Hub, on which the bushings lie, and teeth between the pins of `track_pins`."""
    step = 2.0 * math.pi / TEETH
    hub = tb.Placed(tb.Cylinder(PITCH_RADIUS - BUSHING, HUB_WIDTH), orientation=ALONG_Y)
    return [hub, *(tooth(0.5 * math.pi + (k + 0.5) * step) for k in range(TEETH))]


def roller(radius: float) -> list[tb.Placed]:
    """Two discs."""
    disc = tb.Cylinder(radius, DISC_WIDTH)
    return [tb.Placed(disc, (0.0, side * DISC_OFFSET, 0.0), ALONG_Y) for side in (-1.0, 1.0)]


def shoe() -> list[tb.Placed]:
    """Plate and bushing; the frame lies midway between the pins, x towards the next one, z inwards."""
    plate = tb.Placed(tb.Box(PLATE), (0.0, 0.0, -PLATE_INSIDE - 0.5 * PLATE[2]))
    return [plate, tb.Placed(tb.Cylinder(BUSHING, BUSHING_LENGTH), (0.5 * PITCH, 0.0, 0.0), ALONG_Y)]


def add_crawler(
    scene: tb.SceneBuilder, *, shoe_friction: float, gear_friction: float, speed: Target, compliance: float = 0.0
) -> Crawler:
    """Add the machine at rest; speed: of the sprockets [rad/s], a number or a function of the time; compliance: of its
    materials [m/N]."""
    shoes = scene.add_material(tb.Material(name="shoes", friction=shoe_friction, compliance=compliance))
    gear = scene.add_material(tb.Material(name="gear", friction=gear_friction, compliance=compliance))
    blade = scene.add_material(tb.Material(name="blade", friction=0.0, compliance=compliance))
    arms = [tb.Placed(tb.Box(ARM), (ARM_PLACE[0], side * ARM_PLACE[1], ARM_PLACE[2])) for side in (-1.0, 1.0)]
    chassis = scene.add_body(
        [tb.Placed(tb.Box(CHASSIS), CHASSIS_PLACE), *arms, tb.Placed(tb.Box(BLADE), BLADE_PLACE)],
        mass=MASS_CHASSIS,
        material=[gear, gear, gear, blade],
        name="chassis",
    )
    motors = []
    for side, y in SIDES.items():
        motors.append(_add_wheels(scene, side, y, gear, speed))
        _add_shoes(scene, side, y, shoes)
    return Crawler(chassis, tuple(motors), shoes)


def _add_wheels(scene: tb.SceneBuilder, side: str, y: float, gear: tb.Material, speed: Target) -> str:
    """Sprocket and rollers of a track on the chassis; returns the name of the motor."""
    wheels = {
        "sprocket": (sprocket(), 0.0, AXLE_HEIGHT),
        "front": (roller(FRONT_RADIUS), AXLES, AXLE_HEIGHT),
    } | {
        f"roller{k}": (roller(ROAD_RADIUS), x, PIN_HEIGHT - PLATE_INSIDE + ROAD_RADIUS)
        for k, x in enumerate(ROAD_ROLLERS)
    }
    for name, (shapes, x, z) in wheels.items():
        place = (x, y, z)
        body = scene.add_body(shapes, mass=MASS_WHEEL, material=gear, position=place, name=f"{name}_{side}")
        scene.add_joint("revolute", "chassis", body, anchor=place, axis=(0.0, 1.0, 0.0), name=f"axle_{name}_{side}")
    return scene.add_motor(f"axle_sprocket_{side}", "speed", target=speed, name=f"motor_{side}")


def _add_shoes(scene: tb.SceneBuilder, side: str, y: float, material: tb.Material) -> None:
    """The chain of a track."""
    pins = track_pins()
    ahead = np.roll(pins, -1, axis=0) - pins
    middle = pins + 0.5 * ahead
    turn = [rotation.from_axis_angle((0.0, 1.0, 0.0), -math.atan2(dz, dx)) for dx, dz in ahead]
    first = scene.add_copies(
        shoe(),
        mass=MASS_SHOE,
        material=material,
        position=np.stack([middle[:, 0], np.full(SHOES, y), middle[:, 1]], axis=1),
        orientation=np.array(turn),
        group=SHOE_GROUP,
        mask=0xFFFFFFFF ^ SHOE_GROUP,
        name=f"shoes_{side}",
    )[0]
    for k in range(SHOES):
        x, z = pins[(k + 1) % SHOES]
        scene.add_joint(
            "revolute",
            first + k,
            first + (k + 1) % SHOES,
            anchor=(x, y, z),
            axis=(0.0, 1.0, 0.0),
            name=f"pin_{side}{(k + 1) % SHOES}",
        )
