"""TTIR to structured form: nothing here knows a target."""
