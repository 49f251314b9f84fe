"""Pictures and plots without a display, and triangles of shapes."""

from .camera import Camera
from .image import Picture
from .look import Look
from .panels import Plot
from .picture import auto_camera, render
from .plot import plot_of, plot_reports
from .profile import plot_profile
from .tessellate import triangles_of
from .video import Video, video_of

__all__ = [
    "Camera",
    "Look",
    "Picture",
    "Plot",
    "Video",
    "auto_camera",
    "plot_of",
    "plot_profile",
    "plot_reports",
    "render",
    "triangles_of",
    "video_of",
]
