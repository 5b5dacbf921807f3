"""From numbers to tables, verdicts, figures and one page."""
