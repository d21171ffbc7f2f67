"""Views of a job: documents that any renderer shows."""
