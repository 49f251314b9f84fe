"""Operators N of a cone problem. Vectors are (3, capacity) arrays, component first; plane problems leave row 2 zero."""

from __future__ import annotations

from types import ModuleType
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from .. import checks
from ..backends.base import ArticulatedArrays, ContactArrays, MatrixArrays, RollingArrays
from ..errors import ProblemError, message
from ..kernels.joint_steps import scaled_bounded_row

__all__ = [
    "ArticulatedOperator", "ContactOperator", "DelassusOperator", "MatrixOperator", "RollingOperator", "StepOperator",
]  # fmt: skip


class DelassusOperator(Protocol):
    """What a solver may ask of N = P^T M^-1 P."""

    @property
    def backend(self) -> ModuleType:
        """Where its arrays live."""
        ...

    @property
    def count(self) -> int:
        """Number of contacts."""
        ...

    @property
    def dim(self) -> int:
        """Rows a contact."""
        ...

    @property
    def arrays(self) -> tuple:
        """What compiled loops read."""
        ...

    def product(self, x: np.ndarray, out: np.ndarray) -> None:
        """out = N x."""

    def diagonal_blocks(self, out: np.ndarray) -> None:
        """Symmetric blocks N_ii into out (6, cap): nn, uu, ww, nu, nw, uw."""

    def scaled(self, scale: np.ndarray) -> DelassusOperator:
        """S N S with S = diag(scale[0], scale[1], scale[1]) for each contact."""
        ...

    def to_sparse(self) -> sp.csr_matrix:
        """N as a matrix, rows contact by contact, `dim` rows each."""
        ...


class StepOperator(DelassusOperator, Protocol):
    """N of a step, which knows bodies and contacts."""

    @property
    def contacts(self) -> ContactArrays:
        """Frames, arms and compliance of the contacts."""
        ...

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """The change of velocity of every body (bodies, 6); the array is reused by the next product."""
        ...

    def relative(self, velocity: np.ndarray, out: np.ndarray) -> None:
        """out = P^T v for body velocities (bodies, 6)."""


class ContactOperator:
    """N from contact frames and arms, without a matrix."""

    dim = 3

    def __init__(self, arrays: ContactArrays, backend: ModuleType) -> None:
        self.arrays, self.backend = arrays, backend
        self._scaled: ContactOperator | None = None
        self._scaled_of: ContactArrays | None = None
        self._buffers = backend.zeros((0, 0)), backend.zeros((0, 0))

    @property
    def contacts(self) -> ContactArrays:
        """Frames, arms and compliance of the contacts."""
        return self.arrays

    @property
    def is_soft(self) -> bool:
        """Whether contacts have compliance."""
        return self.arrays.compliance.shape[1] > 0

    @property
    def count(self) -> int:
        """Number of contacts."""
        return self.arrays.count

    def product(self, x: np.ndarray, out: np.ndarray) -> None:
        """out = N x."""
        self.backend.contact_product(self.arrays, x, out)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """M^-1 D x, the change of velocity of every body (bodies, 6); the array is reused by the next product."""
        a, b = self.arrays, self.backend
        b.lay_down(a.count, a.frame, a.slot_a, a.slot_b, x, a.entry_force)
        b.gather(a.entry_start, a.entry_arm, a.entry_force, a.inverse_mass, a.inverse_inertia, a.body_velocity)
        return self.arrays.body_velocity

    def relative(self, velocity: np.ndarray, out: np.ndarray) -> None:
        """out = D^T v for body velocities (bodies, 6)."""
        a = self.arrays
        self.backend.read_rows(a.count, a.body_a, a.body_b, a.frame, a.arms, velocity, out)

    def diagonal_blocks(self, out: np.ndarray) -> None:
        """See `DelassusOperator`."""
        a = self.arrays
        self.backend.contact_diagonal(
            a.count, a.body_a, a.body_b, a.frame, a.arms, a.inverse_mass, a.inverse_inertia, out
        )
        if self.is_soft:
            out[0, : a.count] += a.compliance[0, : a.count]
            out[1:3, : a.count] += a.compliance[1, : a.count]

    def scaled(self, scale: np.ndarray) -> ContactOperator:
        """See `DelassusOperator`. Shares everything but the frames."""
        made = self.room_for_scaled()
        self.backend.scale_frame(self.count, self.arrays.frame, scale, made.arrays.frame)
        if self.is_soft:
            made.arrays.compliance[:] = self.arrays.compliance * scale[:2] ** 2
        return made

    def room_for_scaled(self) -> ContactOperator:
        """S N S before its frames and compliance are filled in; shares everything else, and its buffers with the last
        one."""
        if self._scaled is None or self._scaled_of is not self.arrays:
            frame, compliance = self._buffers
            if frame.shape != self.arrays.frame.shape:
                frame, compliance = np.zeros_like(self.arrays.frame), np.zeros_like(self.arrays.compliance)
                self._buffers = frame, compliance
            self._scaled = ContactOperator(self.arrays._replace(frame=frame, compliance=compliance), self.backend)
            self._scaled_of = self.arrays
        return self._scaled

    @property
    def buffers(self) -> tuple[np.ndarray, np.ndarray]:
        """Frames and compliance of the scaled operator."""
        return self._buffers

    def take_buffers(self, other: ContactOperator) -> None:
        """Those of an operator that is not used any more."""
        self._buffers = other._buffers

    def jacobian(self) -> sp.csr_matrix:
        """D^T (3 contacts, 6 bodies): rows n, u, w of each contact."""
        a, n = self.arrays, self.count
        e, arms = a.frame[:, :n].reshape(3, 3, n), a.arms[:, :n]
        blocks_a = np.concatenate([-e, -np.cross(arms[:3], e, axisa=0, axisb=1, axisc=1)], axis=1)
        blocks_b = np.concatenate([e, np.cross(arms[3:], e, axisa=0, axisb=1, axisc=1)], axis=1)
        rows = np.broadcast_to(3 * np.arange(n) + np.arange(3)[:, None, None], (3, 6, n))
        cols_a = np.broadcast_to(6 * a.body_a[:n] + np.arange(6)[None, :, None], (3, 6, n))
        cols_b = np.broadcast_to(6 * a.body_b[:n] + np.arange(6)[None, :, None], (3, 6, n))
        shape = (3 * n, 6 * len(a.inverse_mass))
        return (
            sp.coo_matrix((blocks_a.ravel(), (rows.ravel(), cols_a.ravel())), shape=shape)
            + sp.coo_matrix((blocks_b.ravel(), (rows.ravel(), cols_b.ravel())), shape=shape)
        ).tocsr()

    def inverse_mass(self) -> sp.csr_matrix:
        """M^-1 (6 bodies, 6 bodies)."""
        a = self.arrays
        xx, yy, zz, xy, xz, yz = a.inverse_inertia.T
        full = np.zeros((len(xx), 6, 6))
        full[:, [0, 1, 2], [0, 1, 2]] = a.inverse_mass
        full[:, 3, 3], full[:, 4, 4], full[:, 5, 5] = xx, yy, zz
        full[:, 3, 4] = full[:, 4, 3] = xy
        full[:, 3, 5] = full[:, 5, 3] = xz
        full[:, 4, 5] = full[:, 5, 4] = yz
        n = len(xx)
        return sp.bsr_matrix((full, np.arange(n), np.arange(n + 1)), shape=(6 * n, 6 * n)).tocsr()

    def compliance(self) -> np.ndarray:
        """Diagonal of E (contacts, 3) [1/kg]."""
        if not self.is_soft:
            return np.zeros((self.count, 3))
        return self.arrays.compliance[[0, 1, 1], : self.count].T

    def to_sparse(self) -> sp.csr_matrix:
        """See `DelassusOperator`."""
        d = self.jacobian()
        return (d @ self.inverse_mass() @ d.T + sp.diags(self.compliance().ravel())).tocsr()


class ArticulatedOperator:
    """N of contacts and bounded rows on jointed bodies: the joints are eliminated within each product."""

    dim = 3

    def __init__(
        self,
        arrays: ArticulatedArrays,
        backend: ModuleType,
        diagonal: np.ndarray,
        last: ArticulatedOperator | None = None,
    ) -> None:
        """last: an operator of other arrays, no longer used, whose buffers serve again."""
        self.arrays, self.backend, self.diagonal = arrays, backend, diagonal
        self._contacts = ContactOperator(arrays.contacts, backend)
        if last is not None:
            self._contacts.take_buffers(last._contacts)
        self._scaled: ArticulatedOperator | None = None

    @property
    def contacts(self) -> ContactArrays:
        """Frames, arms and compliance of the contacts."""
        return self.arrays.contacts

    @property
    def count(self) -> int:
        """Contacts and bounded rows."""
        return self.arrays.contacts.count + len(self.arrays.bounded_body)

    def product(self, x: np.ndarray, out: np.ndarray) -> None:
        """out = N x."""
        self.backend.articulated_product(self.arrays, x, out)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """A^-1 P x (bodies, 6), the joints' answer included; the array is reused by the next product."""
        self.backend.articulated_velocity(self.arrays, x)
        return self.arrays.contacts.body_velocity

    def relative(self, velocity: np.ndarray, out: np.ndarray) -> None:
        """out = P^T v for body velocities (bodies, 6)."""
        self.backend.articulated_rows(self.arrays, velocity, out)

    def diagonal_blocks(self, out: np.ndarray) -> None:
        """See `DelassusOperator`. Exact for bounded rows and on mechanisms of up to 300 joint rows, else without the
        joints (an upper bound)."""
        out[:] = self.diagonal

    @property
    def is_soft(self) -> bool:
        """Whether contacts have compliance."""
        return self._contacts.is_soft

    def scaled(self, scale: np.ndarray) -> ArticulatedOperator:
        """See `DelassusOperator`."""
        made, a = self.room_for_scaled(), self.arrays
        self._contacts.scaled(scale)
        rows = (a.bounded_jacobian, a.bounded_weighted, a.bounded_compliance)
        scale_rows = self.backend.over_rows(scaled_bounded_row)
        scale_rows(len(a.bounded_body), a.contacts.count, scale, rows, made.bounded)
        return made

    def room_for_scaled(self) -> ArticulatedOperator:
        """S N S before its frames, compliance and bounded rows are filled in; shares everything else."""
        if self._scaled is None:
            a, zeros, n = self.arrays, self.backend.zeros, len(self.arrays.bounded_body)
            frames = self._contacts.room_for_scaled().arrays
            rows = zeros((n, 24)), zeros((n, 24)), zeros(n)
            arrays = a._replace(
                contacts=frames, bounded_jacobian=rows[0], bounded_weighted=rows[1], bounded_compliance=rows[2]
            )
            self._scaled = ArticulatedOperator(arrays, self.backend, self.diagonal)
        return self._scaled

    @property
    def bounded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """J, M^-1 J and compliance of the bounded rows."""
        a = self.arrays
        return a.bounded_jacobian, a.bounded_weighted, a.bounded_compliance

    def to_sparse(self) -> sp.csr_matrix:
        """See `DelassusOperator`. A mechanism's part is dense."""
        return self.eliminated(self._contacts.jacobian(), self._contacts.compliance())

    def eliminated(self, jacobian: sp.csr_matrix, compliance: np.ndarray) -> sp.csr_matrix:
        """N as a matrix for contact rows (d n, 6 bodies) with compliance (n, d), and the bounded rows."""
        a, bodies, dim = self.arrays, len(self.arrays.contacts.inverse_mass), compliance.shape[1]
        bounded = sparse_rows(a.bounded_body, a.bounded_jacobian, bodies)
        first = sp.csr_matrix(np.eye(dim, 1))  # a bounded row is the normal row of its block
        p = sp.vstack([jacobian, sp.kron(sp.identity(bounded.shape[0]), first) @ bounded]).tocsr()
        weighted = (self._contacts.inverse_mass() @ p.T).tocsc()
        extra = np.zeros((p.shape[0] // dim, dim))
        extra[: len(compliance)] = compliance
        extra[len(compliance) :, 0] = a.bounded_compliance
        full = p @ weighted + sp.diags(extra.ravel())
        coupling = (sparse_rows(a.body, a.jacobian, bodies) @ weighted).tocsc()
        full = full - coupling.T @ self._joint_answers(coupling)
        return sp.csr_matrix(0.5 * (full + full.T))

    def _joint_answers(self, coupling: sp.csc_matrix) -> sp.csc_matrix:
        """S^+ C for the columns of C (joint rows, rows of N)."""
        a, answers = self.arrays, []
        for first in range(0, coupling.shape[1], 256):
            block = np.ascontiguousarray(coupling[:, first : first + 256].toarray().T)
            for column in block:
                if column.any():
                    self.backend.solve_joints(a.factor, column)
            answers.append(sp.csr_matrix(block))
        return sp.vstack(answers).T.tocsc() if answers else coupling


class RollingOperator:
    """N of contacts with six rows: n, u, w and the turns about them (spin, roll u, roll w). Vectors are (6, cap)."""

    dim = 6

    def __init__(self, arrays: RollingArrays, backend: ModuleType, articulated: ArticulatedOperator) -> None:
        self.arrays, self.backend, self._articulated = arrays, backend, articulated

    @property
    def contacts(self) -> ContactArrays:
        """Frames, arms and compliance of the contacts."""
        return self.arrays.joints.contacts

    @property
    def count(self) -> int:
        """Contacts and bounded rows."""
        return self._articulated.count

    @property
    def is_soft(self) -> bool:
        """Whether contacts have compliance."""
        return self._articulated.is_soft

    def product(self, x: np.ndarray, out: np.ndarray) -> None:
        """out = N x."""
        self.backend.rolling_product(self.arrays, x, out)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """A^-1 P x (bodies, 6); the array is reused by the next product."""
        self.backend.rolling_velocity(self.arrays, x)
        return self.arrays.joints.contacts.body_velocity

    def relative(self, velocity: np.ndarray, out: np.ndarray) -> None:
        """out = P^T v for body velocities (bodies, 6)."""
        self.backend.rolling_rows(self.arrays, velocity, out)

    def diagonal_blocks(self, out: np.ndarray) -> None:
        """Blocks of n, u, w; see `DelassusOperator`."""
        self._articulated.diagonal_blocks(out)

    def turn_diagonal(self, out: np.ndarray) -> None:
        """Diagonal of the turns into out (4, cap): spin, roll u, roll w, and roll u with roll w."""
        self.backend.turn_diagonal(self.arrays, out)

    def scaled(self, scale: np.ndarray) -> RollingOperator:
        """S N S with scale (4, cap) of n, (u, w), spin and roll."""
        inner = self._articulated.scaled(scale)
        frame = self.backend.zeros(self.arrays.turn_frame.shape)
        self.backend.scale_turns(self.arrays.joints.contacts.count, self.arrays.turn_frame, scale, frame)
        return RollingOperator(self.arrays._replace(joints=inner.arrays, turn_frame=frame), self.backend, inner)

    def to_sparse(self) -> sp.csr_matrix:
        """N as a matrix, six rows a contact."""
        contacts = self._articulated._contacts
        a, n = contacts.arrays, contacts.count
        e = self.arrays.turn_frame[:, :n].reshape(3, 3, n)
        rows = np.broadcast_to(3 * np.arange(n) + np.arange(3)[:, None, None], (3, 3, n)).ravel()
        turns = sp.csr_matrix((3 * n, 6 * len(a.inverse_mass)))
        for body, sign in ((a.body_a, -1.0), (a.body_b, 1.0)):
            columns = np.broadcast_to(6 * body[:n] + 3 + np.arange(3)[None, :, None], (3, 3, n)).ravel()
            turns = turns + sp.coo_matrix((sign * e.ravel(), (rows, columns)), shape=turns.shape)
        both = sp.vstack([contacts.jacobian(), turns]).tocsr()
        order = (np.arange(n)[:, None] * 3 + np.arange(3))[:, [0, 1, 2, 0, 1, 2]] + 3 * n * (np.arange(6) >= 3)
        compliance = np.concatenate([contacts.compliance(), np.zeros((n, 3))], axis=1)
        return self._articulated.eliminated(both[order.ravel()], compliance)


def sparse_rows(body: np.ndarray, jacobian: np.ndarray, bodies: int) -> sp.csr_matrix:
    """Rows with up to four bodies (-1: none), six numbers each, as a matrix (rows, 6 bodies)."""
    row, side = np.nonzero(body >= 0)
    columns = 6 * body[row, side].astype(np.int64)[:, None] + np.arange(6)
    values = jacobian.reshape(len(body), 4, 6)[row, side]
    index = (np.repeat(row, 6), columns.ravel())
    return sp.coo_matrix((values.ravel(), index), shape=(len(body), 6 * bodies)).tocsr()


class MatrixOperator:
    """N as a symmetric sparse matrix, dim (2 or 3) rows a contact."""

    def __init__(self, matrix: sp.spmatrix, dim: int, backend: ModuleType) -> None:
        where = "MatrixOperator"
        if checks.integer(where + ".dim", dim, at_least=2, error=ProblemError) > 3:
            raise ProblemError(message(where + ".dim", "must be 2 or 3", dim, "Normal first, then the tangents."))
        w = sp.csr_matrix(matrix, dtype=np.float64)
        if w.shape[0] != w.shape[1] or w.shape[0] % dim:
            raise ProblemError(
                message(
                    where + ".matrix",
                    f"must be square with a multiple of {dim} rows",
                    w.shape,
                    "Check the dimension of the problem.",
                )
            )
        checks.array(where + ".matrix (its entries)", w.data, (None,), error=ProblemError)
        asymmetry = abs(w - w.T).max() if w.nnz else 0.0
        if asymmetry > 1e-12 * max(abs(w).max() if w.nnz else 0.0, 1e-300):
            raise ProblemError(
                message(where + ".matrix", "must be symmetric", f"asymmetry {asymmetry:g}", "Use (W + W^T) / 2.")
            )
        self.matrix, self.dim, self.backend = w, dim, backend
        self.count = w.shape[0] // dim
        self.arrays = MatrixArrays(
            self.count,
            dim,
            w.indptr.astype(np.int64),
            (w.indices // dim).astype(np.int32),
            (w.indices % dim).astype(np.int32),
            w.data.astype(np.float64),
        )

    def product(self, x: np.ndarray, out: np.ndarray) -> None:
        """See `DelassusOperator`."""
        self.backend.matrix_product(self.arrays, x, out)

    def diagonal_blocks(self, out: np.ndarray) -> None:
        """See `DelassusOperator`."""
        a = self.arrays
        self.backend.matrix_diagonal(a.count, a.dim, a.start, a.contact, a.component, a.value, out)

    def scaled(self, scale: np.ndarray) -> MatrixOperator:
        """See `DelassusOperator`."""
        rows = np.ones((self.count, self.dim))
        rows[:, 0] = scale[0, : self.count]
        rows[:, 1:] = scale[1, : self.count, None]
        s = rows.ravel()
        new = object.__new__(MatrixOperator)
        new.dim, new.backend, new.count = self.dim, self.backend, self.count
        a = self.arrays
        row = np.repeat(np.arange(len(s)), np.diff(a.start))
        value = a.value * s[row] * s[a.dim * a.contact.astype(np.int64) + a.component]
        new.arrays = a._replace(value=value)
        new.matrix = sp.csr_matrix((value, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape)
        return new

    def to_sparse(self) -> sp.csr_matrix:
        """See `DelassusOperator`."""
        return self.matrix
