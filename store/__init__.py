"""The room that keeps captures: records, redaction, tables; the only door to disk."""
