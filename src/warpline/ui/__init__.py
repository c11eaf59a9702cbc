"""Where people already look: the pytest plug-in."""
