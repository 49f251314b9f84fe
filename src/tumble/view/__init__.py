"""Pictures and plots without a display, and triangles of shapes."""

from .camera import Camera
from .picture import auto_camera, render
from .plot import plot_reports
from .profile import plot_profile
from .tessellate import triangles_of

__all__ = ["Camera", "auto_camera", "plot_profile", "plot_reports", "render", "triangles_of"]
