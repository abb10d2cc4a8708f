"""The simulator's side: one episode, its pictures and its video."""
