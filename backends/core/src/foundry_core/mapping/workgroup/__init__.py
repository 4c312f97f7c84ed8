"""The mapping for devices that run a program on the work-items of one work-group."""
