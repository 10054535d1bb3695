"""Tests mirror the packages; `helpers` has what several of them share."""
