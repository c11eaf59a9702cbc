"""Takes out of a profile what names people, machines and secrets, and leaves what an analysis needs."""
