"""A humanoid of 44 joints bends its knees. Run it with `tumble run examples/humanoid.py`.

The robot comes from PyPI: pip install 'tumble[urdf]' jvrc_description
"""

import jvrc_description
import numpy as np

import tumble as tb

UNTIL = 3.0  # [s]
STEP = {"dt": 2.5e-3}
SAVE_EVERY = 10
BEND = {"HIP_P": -1.0, "KNEE": 2.0, "ANKLE_P": -1.0}
"""Parts of an angle that keep the trunk upright."""
LAG = 0.05
"""Damping over stiffness of the servos [s]."""


def build() -> tb.Model:
    """All joints hold their place, those of the legs one that moves; no motor is stronger than the file says."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    robot = scene.add_urdf(jvrc_description.urdf_path, position=(0, 0, 0.8545), motors="hold")
    legs = {robot.motors[f"{side}_{joint}"]: part for side in "RL" for joint, part in BEND.items()}
    parts = np.array(list(legs.values()))

    def bend(time: float, values: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """Angles of the legs [rad]: down and up again every 3 s; ahead by the time with which a servo follows."""
        phase = 2.0 * np.pi * time / 3.0
        return 0.25 * (1.0 - np.cos(phase) + LAG * 2.0 * np.pi / 3.0 * np.sin(phase)) * parts

    scene.add_controller(bend, list(legs))
    return scene.build()
