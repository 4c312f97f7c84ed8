"""The mapping to work-groups: all work-items of one work-group execute a program together."""
