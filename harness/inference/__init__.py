"""The model's side: a policy behind a socket."""
