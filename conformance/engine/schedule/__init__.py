"""Which scenario runs beside which: rules in model.py, reasons in docs/decisions/0035."""
