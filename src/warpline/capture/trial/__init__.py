"""What `warpline try` injects into a program: it finds the steps, makes the changes of one variant, and times windows.

Nothing but the standard library and torch is imported here.
"""
