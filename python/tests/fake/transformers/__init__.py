class TrainerCallback:
    pass
