"""A page in the browser: `RunPage` plays a trajectory, `LivePage` shows a simulation while it steps."""

from .page import LivePage, RunPage

__all__ = ["LivePage", "RunPage"]
