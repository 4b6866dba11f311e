"""The plan search: every legal change of a job, what each needs and how long its step takes, and the cheapest that fit.

`levers.py` says what may be changed, `grid.py` which numbers go with it, `figures.py` what thousands of plans need at once, `search.py` in
which order they are looked at, and `plans.py` what comes of it.
"""
