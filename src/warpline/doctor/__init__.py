"""Why profiling fails: this machine, a file, or a command line before it is run."""
