"""Numba loops for processors: the passes that collide, problem, solve and sim call on a backend."""

from ...kernels.cover import MOST
from ...kernels.direct import direct
from ..base import PASSES
from .apgd import apgd, nesterov_pass
from .apgd_lanes import SPENT, apgd_lanes, apgd_single_lanes, gradient_step
from .apgd_paper import apgd_paper
from .arrange import SORT_BODIES, SORT_PARTS, arrange_contacts, sort_contacts
from .arrays import FAILURES, HOSTED, fetch, send, zeros
from .barzilai_borwein import barzilai_borwein
from .broad import (
    FEW,
    LEVELS,
    PAIR_BLOCK,
    build_grid,
    cell_keys,
    choose_phase,
    find_pairs,
    most_and_total,
    spread_speed,
)
from .face import face_gradients
from .gauss_seidel import gauss_seidel
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
from .joints import (
    articulated_diagonal,
    articulated_product,
    articulated_rows,
    articulated_velocity,
    eliminate,
    factor_joints,
    forward_joints,
    push_rows,
    row_speeds,
    solve_joints,
    take_rows,
)
from .lanes import (
    body_lanes,
    contact_lanes,
    lane_value,
    measure_lanes,
    pack_bodies,
    pack_contacts,
    pack_ends,
    sum_lanes,
    tangent_lanes,
    unpack_lanes,
)
from .measure import coulomb_shift_bound, measure
from .mechanisms import mechanism_energies, turn_inertia
from .motion import advance, drift_bodies, largest_speed, predict
from .narrow import SCRATCH, find_ball_contacts, find_convex_contacts
from .nsgs import nsgs
from .operators import contact_product, gather, lay_down, matrix_product, product, read_rows, scale_frame
from .place import place_shapes
from .projection import close_joints, worst_of
from .queries import cast_rays, convex_gaps
from .rest import rest_gaps
from .rolling import rolling_shift_bound
from .rolling_rows import (
    rolling_product,
    rolling_rows,
    rolling_velocity,
    scale_rolling,
    scale_turns,
    turn_diagonal,
    unscale_rolling,
    weigh_rolling,
)
from .rows import (
    block_steps,
    build_rows,
    contact_diagonal,
    fill_entries,
    free_frozen_rows,
    match_contacts,
    matrix_diagonal,
    recall,
    remember,
    scale_rows,
    survey_contacts,
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
from .works import contact_work, driven_work

name = "cpu"

__all__ = [
    "act_impulses",
    "assemble_rows",
    "judge_contacts",
    "order_contacts",
    "place_step",
    "scale_contacts",
    "search_pairs",
    "FAILURES",
    "FEW",
    "HOSTED",
    "LEVELS",
    "MOST",
    "PAIR_BLOCK",
    "SCRATCH",
    "SORT_BODIES",
    "SORT_PARTS",
    "SPENT",
    "SURFACE_COLUMNS",
    "SURFACE_ROWS",
    "advance",
    "apgd",
    "apgd_lanes",
    "apgd_single_lanes",
    "apgd_paper",
    "arrange_contacts",
    "articulated_diagonal",
    "articulated_product",
    "articulated_rows",
    "articulated_velocity",
    "barzilai_borwein",
    "block_steps",
    "body_lanes",
    "build_grid",
    "build_rows",
    "cast_rays",
    "cell_keys",
    "choose_phase",
    "close_joints",
    "mechanism_energies",
    "contact_diagonal",
    "contact_lanes",
    "contact_product",
    "contact_work",
    "convex_gaps",
    "count_true",
    "coulomb_shift_bound",
    "drift_bodies",
    "driven_work",
    "eliminate",
    "face_gradients",
    "factor_joints",
    "fetch",
    "fill_entries",
    "find_ball_contacts",
    "find_convex_contacts",
    "find_pairs",
    "find_surface_contacts",
    "forward_joints",
    "free_frozen_rows",
    "gather",
    "gauss_seidel",
    "gradient_step",
    "largest",
    "largest_entry",
    "lane_value",
    "largest_speed",
    "largest_vector",
    "list_true",
    "lay_down",
    "match_contacts",
    "matrix_diagonal",
    "matrix_product",
    "measure",
    "measure_lanes",
    "most_and_total",
    "name",
    "nesterov_pass",
    "nsgs",
    "over_bodies",
    "over_contacts",
    "over_mechanisms",
    "over_rows",
    "pack_bodies",
    "pack_contacts",
    "pack_ends",
    "place_shapes",
    "predict",
    "product",
    "push_rows",
    "read_rows",
    "recall",
    "remember",
    "rest_gaps",
    "rolling_product",
    "rolling_rows",
    "rolling_shift_bound",
    "rolling_velocity",
    "row_speeds",
    "scale_frame",
    "scale_rolling",
    "scale_rows",
    "scale_turns",
    "send",
    "solve_joints",
    "sort_contacts",
    "spread_speed",
    "survey_contacts",
    "total",
    "sum_lanes",
    "take_rows",
    "tangent_lanes",
    "turn_diagonal",
    "turn_inertia",
    "unpack_lanes",
    "unscale_impulses",
    "unscale_rolling",
    "weigh",
    "weigh_rolling",
    "worst_of",
    "zeros",
]

_MAKERS = ("over_contacts", "over_bodies", "over_rows", "over_mechanisms")
for _name in (name for group in PASSES.values() for name in group if name not in _MAKERS):
    globals()[_name] = direct(globals()[_name])  # compiled callers have the kernels themselves, from their modules
