"""From placed shapes to sorted contacts."""
