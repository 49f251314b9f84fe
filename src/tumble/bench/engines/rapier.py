"""Rapier (package rapier3d)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import rapier3d as rapier

from .base import Candidate, Pile

__all__ = ["candidates"]


def candidates(pile: Pile, threads: int) -> Iterator[Candidate]:
    """Solver iterations (small steps within a step), with sleeping switched off."""
    for iterations in (4, 8, 20, 60):
        world = rapier.PhysicsWorld()
        world.gravity = rapier.Vec3(0.0, 0.0, -pile.gravity)
        world.set_num_threads(threads)
        parameters = world.integration_parameters
        parameters.dt = pile.dt
        parameters.num_solver_iterations = iterations
        for half, centre in pile.walls():
            wall = rapier.Collider.cuboid(*half).friction(pile.friction)
            world.add_body(rapier.RigidBody.fixed(translation=rapier.Vec3(*centre)), [wall])
        handles = []
        for point in pile.points:
            ball = rapier.Collider.ball(pile.radius).friction(pile.friction).mass(1.0)
            body = rapier.RigidBody.dynamic(translation=rapier.Vec3(*point)).can_sleep(False)
            handles.append(world.add_body(body, [ball]))
        bodies = [world.rigid_bodies[handle] for handle in handles]
        yield Candidate(
            "rapier",
            f"{iterations} iterations",
            world.step,
            lambda bodies=bodies: _rows([body.translation for body in bodies]),
            lambda bodies=bodies: _rows([body.linvel for body in bodies]),
        )


def _rows(vectors: list) -> np.ndarray:
    return np.array([(v.x, v.y, v.z) for v in vectors])
