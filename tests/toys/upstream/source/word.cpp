const char *word() { return "as upstream has it"; }
