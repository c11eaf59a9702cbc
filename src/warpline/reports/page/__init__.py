"""The page of `warpline report`: one HTML file with the answer as text, a timeline and panels."""
