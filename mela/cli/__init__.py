"""Define the command line `mela`: a module for each command, and `main`, which combines them.

A command imports what it needs when it runs, so that help and the completion of names appear at once.
"""
