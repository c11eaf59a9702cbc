"""Whether an agent gets from a slow program to a verified fix: tasks, their known answers, and a scripted client."""
