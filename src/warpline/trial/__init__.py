"""`warpline try`: fixes applied to an unchanged program, measured against it, with proof and a check of the results."""
