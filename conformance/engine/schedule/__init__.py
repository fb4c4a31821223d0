"""Which scenario runs beside which: the model is in model.py."""
