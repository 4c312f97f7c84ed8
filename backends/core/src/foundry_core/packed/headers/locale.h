#define LC_ALL_MASK 0x1fbf
typedef void *locale_t;
locale_t newlocale(int categories, const char *name, locale_t from);
void freelocale(locale_t locale);
