/* Adds two vectors on each GPU that CUDA shows, by the driver API alone, and says which GPU it was.
   Loads libcuda.so.1 at run time, so it needs nothing of CUDA's toolkit. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT (1 << 20)

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry add(.param .u64 pa, .param .u64 pb) {\n"
    ".reg .b32 %r<5>; .reg .b64 %a<5>;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r1, %r1, %r2, %r3;\n"
    "ld.param.u64 %a1, [pa]; ld.param.u64 %a2, [pb];\n"
    "cvta.to.global.u64 %a1, %a1; cvta.to.global.u64 %a2, %a2;\n"
    "mul.wide.u32 %a3, %r1, 4; add.s64 %a1, %a1, %a3; add.s64 %a2, %a2, %a3;\n"
    "ld.global.u32 %r2, [%a1]; ld.global.u32 %r3, [%a2]; add.s32 %r4, %r2, %r3;\n"
    "st.global.u32 [%a1], %r4; ret;\n}\n";

static void *library;

static void *find(const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        exit(1);
    }
    return function;
}

#define CALL(name, types, ...) \
    do { \
        int code = ((int(*) types)find(#name))(__VA_ARGS__); \
        if (code) { \
            fprintf(stderr, #name ": error %d\n", code); \
            exit(1); \
        } \
    } while (0)

static void add_on(int index)
{
    int device;
    unsigned char id[16];
    char name[128], uuid[37];
    void *context, *module, *function;
    unsigned long long a, b;
    static unsigned host_a[COUNT], host_b[COUNT];

    CALL(cuDeviceGet, (int *, int), &device, index);
    CALL(cuDeviceGetName, (char *, int, int), name, sizeof name, device);
    CALL(cuDeviceGetUuid_v2, (void *, int), id, device);
    CALL(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, device);
    CALL(cuModuleLoadData, (void **, const void *), &module, ptx);
    CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module, "add");
    for (unsigned i = 0; i < COUNT; i++)
        host_a[i] = i * 2654435761u, host_b[i] = ~i;
    CALL(cuMemAlloc_v2, (unsigned long long *, size_t), &a, sizeof host_a);
    CALL(cuMemAlloc_v2, (unsigned long long *, size_t), &b, sizeof host_b);
    CALL(cuMemcpyHtoD_v2, (unsigned long long, const void *, size_t), a, host_a, sizeof host_a);
    CALL(cuMemcpyHtoD_v2, (unsigned long long, const void *, size_t), b, host_b, sizeof host_b);
    void *arguments[] = {&a, &b};
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         function, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
    CALL(cuCtxSynchronize, (void), );
    CALL(cuMemcpyDtoH_v2, (void *, unsigned long long, size_t), host_a, a, sizeof host_a);
    CALL(cuCtxDestroy_v2, (void *), context);
    int right = 0;
    for (unsigned i = 0; i < COUNT; i++)
        right += host_a[i] == i * 2654435761u + ~i;
    for (int i = 0, at = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            uuid[at++] = '-';
        at += sprintf(uuid + at, "%02x", id[i]);
    }
    printf("CUDA GPU-%s, %s: %d sums are right\n", uuid, name, right);
}

int main(void)
{
    int count = 0;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGetCount, (int *), &count);
    for (int index = 0; index < count; index++)
        add_on(index);
    return 0;
}
