"""Kernels for NVIDIA's devices: the passes of `backends.cpu` under the same names, over arrays that live on the device.

Most passes are the bodies that processors run, with a thread for each item (`launch.item_pass`); sorting, sums and the
iterations of the solver are the device's own. What is not here yet is refused by name (`Simulation`, backend="cuda").
"""

from __future__ import annotations

from typing import Any

from ...errors import OptionsError, message
from ..base import PASSES
from ..cpu.broad import FEW, LEVELS
from .apgd import SPENT, apgd, apgd_single
from .barzilai_borwein import barzilai_borwein
from .bodies import advance, drift_bodies, largest_speed, place_shapes, predict
from .broad import PAIR_BLOCK, build_grid, cell_keys, choose_phase, find_pairs, most_and_total, spread_speed
from .contacts import (
    MOST,
    SCRATCH,
    SORT_BODIES,
    SORT_PARTS,
    arrange_contacts,
    contact_work,
    driven_work,
    fill_entries,
    find_ball_contacts,
    match_contacts,
    remember,
    sort_contacts,
    survey_contacts,
)
from .convex import find_convex_contacts
from .face import face_gradients
from .items import (
    count_true,
    largest,
    largest_entry,
    largest_vector,
    list_true,
    over_bodies,
    over_contacts,
    over_mechanisms,
    over_rows,
    total,
)
from .joint_stages import STAGES
from .joints import (
    articulated_diagonal,
    articulated_product,
    articulated_rows,
    articulated_velocity,
    close_joints,
    eliminate,
    factor_joints,
    forward_joints,
    mechanism_energies,
    row_speeds,
    solve_joints,
    take_rows,
    turn_inertia,
    worst_of,
)
from .measure import coulomb_shift_bound, measure
from .provider import FAILURES, HOSTED, device_name, fetch, free_memory, is_full, send, synchronize, zeros
from .rolling_rows import (
    product,
    rolling_product,
    rolling_rows,
    rolling_shift_bound,
    rolling_velocity,
    scale_rolling,
    scale_turns,
    turn_diagonal,
    unscale_rolling,
    weigh_rolling,
)
from .rows import (
    build_rows,
    contact_diagonal,
    contact_product,
    free_frozen_rows,
    gather,
    lay_down,
    read_rows,
    recall,
    rest_gaps,
    scale_frame,
    scale_rows,
    unscale_impulses,
    weigh,
)
from .stages import (
    act_impulses,
    assemble_rows,
    judge_contacts,
    order_contacts,
    place_step,
    scale_contacts,
    search_pairs,
)
from .surfaces import SURFACE_COLUMNS, SURFACE_ROWS, find_surface_contacts

name = "cuda"

__all__ = [
    "FAILURES", "FEW", "HOSTED", "LEVELS", "MOST", "PAIR_BLOCK", "SCRATCH", "SORT_BODIES", "SORT_PARTS", "SPENT",
    "SURFACE_COLUMNS", "SURFACE_ROWS", "act_impulses", "advance", "apgd", "apgd_single", "arrange_contacts",
    "articulated_diagonal", "articulated_product", "articulated_rows", "articulated_velocity", "assemble_rows",
    "barzilai_borwein", "build_grid", "build_rows", "cell_keys", "choose_phase", "close_joints", "contact_diagonal",
    "contact_product", "contact_work", "coulomb_shift_bound", "count_true", "device_name", "drift_bodies",
    "driven_work", "eliminate", "face_gradients", "factor_joints", "fetch", "fill_entries", "find_ball_contacts",
    "find_convex_contacts", "find_pairs", "find_surface_contacts", "forward_joints", "free_frozen_rows",
    "free_memory", "gather", "is_full", "judge_contacts", "largest", "largest_entry", "largest_speed",
    "largest_vector", "lay_down", "list_true", "match_contacts", "measure", "mechanism_energies", "most_and_total",
    "name", "order_contacts", "over_bodies", "over_contacts", "over_mechanisms", "over_rows", "place_shapes",
    "place_step", "predict", "product", "read_rows", "recall", "remember", "rest_gaps", "rolling_product",
    "rolling_rows", "rolling_shift_bound", "rolling_velocity", "row_speeds", "scale_contacts", "scale_frame",
    "scale_rolling", "scale_rows", "scale_turns", "search_pairs", "send", "solve_joints", "sort_contacts",
    "spread_speed", "survey_contacts", "synchronize", "take_rows", "total", "turn_diagonal", "turn_inertia",
    "unscale_impulses", "unscale_rolling", "weigh", "weigh_rolling", "worst_of", "zeros",
    *PASSES["joint_stages"],
]  # fmt: skip
globals().update({stage: STAGES[stage] for stage in PASSES["joint_stages"]})


def __getattr__(wanted: str) -> Any:
    if any(wanted in group for group in PASSES.values()):
        remedy = "Use backend='cpu' for this scene or solver."
        raise OptionsError(message("backend", "'cuda' does not offer all passes yet", wanted, remedy))
    raise AttributeError(wanted)
