"""The room that reads: from captured bytes to rendered tokens, divergences, and a report."""
