"""Find and hash the definitions that a stage's script reaches, on which the stage depends.

DVC hashes whole files, and import graphs such as grimp's end at modules, so that a changed comment would rerun every
training.
"""
