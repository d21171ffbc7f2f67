"""The metrics that can be limited, as data."""
