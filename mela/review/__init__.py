"""Ask people whether labels are the same, on a page of this machine, and keep their answers."""
