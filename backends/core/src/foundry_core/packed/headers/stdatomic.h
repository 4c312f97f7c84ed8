typedef struct {
    _Atomic(_Bool) value;
} atomic_flag;
#define memory_order_acquire __ATOMIC_ACQUIRE
#define memory_order_release __ATOMIC_RELEASE
#define atomic_flag_test_and_set_explicit(flag, order) __c11_atomic_exchange(&(flag)->value, 1, order)
#define atomic_flag_clear_explicit(flag, order) __c11_atomic_store(&(flag)->value, 0, order)
#define atomic_flag_clear(flag) atomic_flag_clear_explicit(flag, __ATOMIC_SEQ_CST)
