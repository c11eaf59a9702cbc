"""A trace as tracks of bars, which the page of `warpline report`, pictures and exports draw."""
