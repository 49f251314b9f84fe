"""Numba loops for processors: the passes that collide, problem, solve and sim call on a backend."""

from .arrange import arrange_contacts, sort_contacts
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
from .iterate import apgd
from .iterate_more import barzilai_borwein, relax
from .measure import contact_work, coulomb_shift_bound, driven_work, measure
from .motion import advance, largest_speed, predict
from .narrow import SCRATCH, find_contacts
from .operators import contact_product, gather, lay_down, matrix_product, product, read_rows, scale_frame
from .place import place_shapes
from .queries import cast_rays, convex_gaps
from .rows import (
    block_steps,
    build_rows,
    contact_diagonal,
    fill_entries,
    free_frozen_rows,
    matrix_diagonal,
    remember,
    scale_rows,
    unscale_impulses,
    warm_start,
    weigh,
)
from .surfaces import SURFACE_COLUMNS, SURFACE_ROWS, find_surface_contacts

name = "cpu"

__all__ = [
    "choose_phase",
    "largest_speed",
    "spread_speed",
    "FEW",
    "LEVELS",
    "PAIR_BLOCK",
    "SCRATCH",
    "SURFACE_COLUMNS",
    "SURFACE_ROWS",
    "advance",
    "apgd",
    "arrange_contacts",
    "barzilai_borwein",
    "block_steps",
    "build_grid",
    "build_rows",
    "cast_rays",
    "cell_keys",
    "contact_diagonal",
    "contact_product",
    "contact_work",
    "convex_gaps",
    "coulomb_shift_bound",
    "driven_work",
    "fill_entries",
    "find_contacts",
    "find_pairs",
    "find_surface_contacts",
    "free_frozen_rows",
    "gather",
    "lay_down",
    "matrix_diagonal",
    "matrix_product",
    "measure",
    "most_and_total",
    "name",
    "place_shapes",
    "predict",
    "product",
    "read_rows",
    "relax",
    "remember",
    "scale_frame",
    "scale_rows",
    "sort_contacts",
    "unscale_impulses",
    "warm_start",
    "weigh",
]
