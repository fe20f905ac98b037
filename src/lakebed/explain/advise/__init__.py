"""`t.advise()`: what other settings of a table would have cost, replayed from the history of its commits.

`workload` reads what came and what was compacted, `overlap` learns from that how many rows of a merge remain, `replay`
lets the real pickers loose on imagined files, `advice` tries settings, weighs them and says how sure it is.
"""
