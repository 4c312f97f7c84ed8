int isspace(int character);
