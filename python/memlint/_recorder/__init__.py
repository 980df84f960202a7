"""Records the GPU memory of a PyTorch program from inside, without being asked by it.

`waiting` notices that torch is imported, `recorder` records and writes snapshots, `ledger` tells memlint about it. The order
comes in one environment variable (`order`), so that it reaches every process of a job.

Always: whatever goes wrong in here is one line on standard error, and the program goes on as if nothing had been there.
"""
