/* Another program than device_symbols, with a symbol of the same name. */
/* built as: device_other -DNR_TASKLETS=1 */
#include <stdint.h>
#include <attributes.h>

__host uint32_t word = 8;

int main(void) {
    word *= 2;
    return 0;
}
