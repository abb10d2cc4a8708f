"""What came of a run: tables, status, videos."""
