"""HTML, JUnit, PNG and data frames."""
