"""Fills databases with generated trees, and measures the server against a hand-written one.

Nothing here is a test: only ratios of rounds measured side by side mean something.
"""
