#ifndef _DLFCN_H
#define _DLFCN_H
#define RTLD_LAZY 1
#define RTLD_NOW 2
#define RTLD_LOCAL 0
typedef struct {
    const char *dli_fname;
    void *dli_fbase;
    const char *dli_sname;
    void *dli_saddr;
} Dl_info;
void *dlopen(const char *path, int flags);
void *dlsym(void *library, const char *name);
char *dlerror(void);
int dlclose(void *library);
int dladdr(const void *address, Dl_info *info);
#endif
