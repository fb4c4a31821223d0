"""What happens in a run, as frozen values: the only thing that reporters see."""
