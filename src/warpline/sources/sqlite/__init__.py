"""SQLite databases that profilers write, opened so that a damaged or hostile file can do no harm."""
