"""PyBullet, one thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pybullet

from .base import Candidate, Pile

__all__ = ["candidates"]


def candidates(pile: Pile, threads: int) -> Iterator[Candidate]:
    """Iterations of its sequential impulses."""
    friction = pile.friction**0.5  # that of a pair is the product
    for iterations in (10, 50, 200):
        at = pybullet.connect(pybullet.DIRECT)
        pybullet.setGravity(0.0, 0.0, -pile.gravity, physicsClientId=at)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=pile.dt, numSolverIterations=iterations, numSubSteps=0, physicsClientId=at
        )
        bodies = []
        for half, centre in pile.walls():
            shape = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half, physicsClientId=at)
            wall = pybullet.createMultiBody(0.0, shape, basePosition=centre, physicsClientId=at)
            pybullet.changeDynamics(wall, -1, lateralFriction=friction, physicsClientId=at)
        shape = pybullet.createCollisionShape(pybullet.GEOM_SPHERE, radius=pile.radius, physicsClientId=at)
        for point in pile.points:
            ball = pybullet.createMultiBody(1.0, shape, basePosition=list(point), physicsClientId=at)
            pybullet.changeDynamics(
                ball, -1, lateralFriction=friction, linearDamping=0.0, angularDamping=0.0, physicsClientId=at
            )
            bodies.append(ball)
        yield Candidate(
            "pybullet",
            f"{iterations} iterations",
            lambda at=at: pybullet.stepSimulation(physicsClientId=at),
            lambda bodies=bodies, at=at: np.array(
                [pybullet.getBasePositionAndOrientation(b, physicsClientId=at)[0] for b in bodies]
            ),
            lambda bodies=bodies, at=at: np.array([pybullet.getBaseVelocity(b, physicsClientId=at)[0] for b in bodies]),
        )
        pybullet.disconnect(at)
