"""The placement engine: which cluster and which nodes hold a gang whole, and why the others do not.

Pure: it keeps a picture of the fleet up to date and answers from it. It knows neither the database, members nor clocks.

asks (what a pod asks of its node) < fleet (the picture) < packing, topology (the fit) < scoring, explaining < engine.
"""
