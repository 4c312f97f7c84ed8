"""Measurements of the dpu target in modelled cycles, and the hand-written C programs that it is compared with."""
