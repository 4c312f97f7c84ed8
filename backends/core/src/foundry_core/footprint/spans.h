/* Elements that an access reaches, in C and C++; what the code of code.py calls. Needs stdint.h. */
struct span {
    int64_t low, high; /* the first and the last element */
    int empty;
};

static inline __attribute__((unused)) struct span span_at(int64_t element)
{
    struct span span = {element, element, 0};
    return span;
}

/* A sum and a product that end at the limits of their type: no array has the elements beyond. */
static inline int64_t span_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t span_product(int64_t a, int64_t b)
{
    int64_t product;
    return !__builtin_mul_overflow(a, b, &product) ? product : (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

/* Add the elements from `one` to `other`, in units of `stride`. */
static void span_stretch(struct span *span, int64_t one, int64_t other, int64_t stride)
{
    const int64_t first = span_product(one, stride), last = span_product(other, stride);
    span->low = span_sum(span->low, first < last ? first : last);
    span->high = span_sum(span->high, first < last ? last : first);
}

/* The elements `stride` apart, for low <= i < high. */
static inline __attribute__((unused)) void span_along(struct span *span, int64_t low, int64_t high, int64_t stride)
{
    if (low >= high)
        span->empty = 1;
    else
        span_stretch(span, low, high - 1, stride);
}

static inline int64_t quotient(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static inline int64_t remainder_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

/* The elements ((first + i) mod modulus) * stride; the sum is an integer of which `largest` is the largest. */
static inline __attribute__((unused)) void span_around(
    struct span *span, int64_t low, int64_t high, int64_t first, int64_t modulus, int64_t stride, int64_t largest)
{
    if (low >= high) {
        span->empty = 1;
        return;
    }
    int wraps = first > largest - (high - 1);
    int64_t from = wraps ? -1 : first + low, to = wraps ? 1 : first + high - 1;
    if (!wraps && quotient(from, modulus) == quotient(to, modulus) && (from >= 0 || to <= 0))
        span_stretch(span, remainder_of(from, modulus), remainder_of(to, modulus), stride);
    else {
        int64_t most = (modulus < 0 ? -modulus : modulus) - 1;
        span_stretch(span, from < 0 ? -most : 0, to > 0 ? most : 0, stride);
    }
}
