class GeneralTracker:
    pass
