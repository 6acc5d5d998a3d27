"""A kind of condition and its part that tests steer, in the place of real ones."""
