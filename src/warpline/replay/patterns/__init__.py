"""What fixes recognise in a graph: loops, copies, captures, lists of tensors. No constants of time."""
