/* Prints what the archive tells. */
#include <stdio.h>

const char *told(int really);

int main(int count, char **words) {
    (void)words;
    return puts(told(count)) < 0;
}
