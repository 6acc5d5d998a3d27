"""How other machines are reached."""
