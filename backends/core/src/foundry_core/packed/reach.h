/* What the generated code of foundry_core/footprint/code.py calls, in a function with the parameters of packed_variant's
 * `reach`. Needs road.h and foundry_core's spans.h before it. */
#ifndef FOUNDRY_REACH_H
#define FOUNDRY_REACH_H

static inline __attribute__((unused)) void reach_span(
    struct packed_reach *reach, int is_store, int index, struct span span, int exact)
{
    if (!span.empty)
        reach->note(reach, index, span.low, span.high, exact, is_store);
}

#define reads(...) reach_span(reach, 0, __VA_ARGS__)
#define writes(...) reach_span(reach, 1, __VA_ARGS__)
#define reads_any(index) reach->anywhere(reach, index, 0)
#define writes_any(index) reach->anywhere(reach, index, 1)

#endif
