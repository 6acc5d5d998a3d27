"""The service: its socket, its rounds, its life (C10)."""
