/* A GPU that there is not: the functions of NVIDIA's driver and of NVRTC that holoctl calls, on this
 * computer. Memory of the GPU is memory of the host; a cubin is the size of a shared library, and the
 * library, made by g++; threads of a kernel run one after another. fail_next makes a function fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NO_BINARY = 209, CONTEXT = 4711 };
static const size_t ROOM = (size_t)1 << 30;

static int gpus = 1, failing_code = 0;
static char failing[64];
static size_t used = 0;
static __thread long current = 0;

void set_gpus(int n) { gpus = n; }
size_t bytes_in_use(void) { return used; }

void fail_next(const char *function, int code) {
  snprintf(failing, sizeof failing, "%s", function);
  failing_code = code;
}

static int failed(const char *function, int in_context) {
  if (!strcmp(failing, function)) {
    failing[0] = 0;
    return failing_code;
  }
  return in_context && current != CONTEXT ? INVALID_CONTEXT : 0;
}

/* ---------------------------------------------------------------------------- driver */

int cuInit(unsigned flags) { return flags ? 1 : gpus ? failed("cuInit", 0) : 100; }
int cuDeviceGetCount(int *n) { return *n = gpus, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int n, int device) {
  return snprintf(name, (size_t)n, "pretended GPU %d", device) < 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  return *value = attribute == 75 ? 9 : 0, device < 0;
}
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
  return *context = (void *)(long)CONTEXT, device < 0;
}
int cuCtxPushCurrent_v2(void *context) {
  if (current) return 1; /* holoctl takes it once at a time */
  return current = (long)context, 0;
}
int cuCtxPopCurrent_v2(void **context) { return *context = (void *)current, current = 0, 0; }
int cuCtxSynchronize(void) { return failed("cuCtxSynchronize", 1); }
int cuGetErrorName(int code, const char **name) {
  return *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_THE_TESTS", 0;
}
int cuGetErrorString(int code, const char **text) { return *text = "as told", code < 0; }

int cuMemGetInfo_v2(size_t *left, size_t *all) { return *left = ROOM - used, *all = ROOM, 0; }

/* Each block of memory begins with its size, in 64 bytes of its own. */
int cuMemAlloc_v2(void **address, size_t size) {
  const int code = failed("cuMemAlloc_v2", 1);
  if (code) return code;
  if (size > ROOM - used) return OUT_OF_MEMORY;
  char *at = malloc(size + 64);
  memcpy(at, &size, sizeof size);
  __atomic_add_fetch(&used, size, __ATOMIC_SEQ_CST);
  return *address = at + 64, 0;
}

int cuMemFree_v2(void *address) {
  size_t size;
  char *at = (char *)address - 64;
  if (current != CONTEXT) return INVALID_CONTEXT;
  memcpy(&size, at, sizeof size);
  __atomic_sub_fetch(&used, size, __ATOMIC_SEQ_CST);
  return free(at), 0;
}

int cuMemcpyHtoD_v2(void *to, const void *from, size_t size) {
  return memcpy(to, from, size), failed("cuMemcpyHtoD_v2", 1);
}
int cuMemcpyDtoH_v2(void *to, const void *from, size_t size) {
  return memcpy(to, from, size), failed("cuMemcpyDtoH_v2", 1);
}

int cuModuleLoadData(void **module, const void *cubin) {
  const int code = failed("cuModuleLoadData", 1);
  if (code) return code;
  char path[] = "/tmp/holoctl_kernels_XXXXXX";
  size_t size;
  memcpy(&size, cubin, sizeof size);
  const int file = mkstemp(path);
  const int written = write(file, (const char *)cubin + sizeof size, size) == (ssize_t)size;
  close(file);
  *module = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : 0;
  unlink(path);
  return *module ? 0 : NO_BINARY;
}
int cuModuleUnload(void *module) { return dlclose(module); }

int cuModuleGetFunction(void **function, void *module, const char *name) {
  char launcher[256];
  snprintf(launcher, sizeof launcher, "%s_launch", name);
  return *function = dlsym(module, launcher), *function ? 0 : 500;
}

int cuLaunchKernel(void (*function)(void **, unsigned, unsigned), unsigned blocks, unsigned by,
    unsigned bz, unsigned threads, unsigned ty, unsigned tz, unsigned shared, void *stream,
    void **arguments, void **extra) {
  const int code = failed("cuLaunchKernel", 1);
  if (code) return code;
  if (by != 1 || bz != 1 || ty != 1 || tz != 1 || shared || stream || extra) return 1;
  if (!blocks || !threads || threads > 1024) return 1;
  return function(arguments, blocks, threads), 0;
}

/* ---------------------------------------------------------------------------- NVRTC */

static const char PRELUDE[] =
    "#include <float.h>\n#include <limits.h>\n#include <math.h>\n#include <string.h>\n"
    "#include <cstddef>\n#include <utility>\n"
    "#define __CUDACC__\n#define __global__\n#define __noinline__ __attribute__((noinline))\n"
    "struct three { unsigned x, y, z; };\n"
    "static thread_local three blockIdx, threadIdx, blockDim;\n"
    "template <class... A, std::size_t... I> void all(void (*f)(A...), void **p, unsigned blocks,\n"
    "    unsigned threads, std::index_sequence<I...>) {\n"
    "  blockDim.x = threads;\n"
    "  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)\n"
    "    for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) f(*(A *)p[I]...);\n"
    "}\n"
    "template <class... A> void all(void (*f)(A...), void **p, unsigned blocks, unsigned threads) {\n"
    "  all(f, p, blocks, threads, std::index_sequence_for<A...>());\n"
    "}\n"
    "#line 1 \"kernels.cu\"\n";
static const char MARK[] = "__global__ void ";

typedef struct {
  char folder[32];
  char *cubin, *log;
  size_t size;
} program;

static char *content(const char *folder, const char *name, size_t *size) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *data = malloc(*size + 1);
  data[fread(data, 1, *size, file)] = 0;
  fclose(file);
  return data;
}

static FILE *opened(const char *folder, const char *name) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return fopen(path, "w");
}

int nvrtcVersion(int *major, int *minor) { return *major = 12, *minor = 0, 0; }
int nvrtcGetNumSupportedArchs(int *n) { return *n = 2, 0; }
int nvrtcGetSupportedArchs(int *known) { return known[0] = 70, known[1] = 90, 0; }
const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "?"; }

int nvrtcCreateProgram(program **made, const char *source, const char *name, int n,
    const char **headers, const char **names) {
  program *p = *made = calloc(1, sizeof *p);
  strcpy(p->folder, "/tmp/holoctl_nvrtc_XXXXXX");
  if (!name || !mkdtemp(p->folder)) return 1;
  for (int i = 0; i < n; i++) {
    FILE *header = opened(p->folder, names[i]);
    fputs(headers[i], header);
    fclose(header);
  }
  FILE *file = opened(p->folder, "kernels.cpp");
  fprintf(file, "%s%s\n", PRELUDE, source);
  for (const char *at = strstr(source, MARK); at; at = strstr(at, MARK)) {
    at += strlen(MARK);
    const int length = (int)strcspn(at, "(");
    fprintf(file, "extern \"C\" void %.*s_launch(void **p, unsigned blocks, unsigned threads) { "
        "all(%.*s, p, blocks, threads); }\n", length, at, length, at);
  }
  return fclose(file);
}

/* The C headers of this computer are used, so those that holoctl gives are not looked for in <>. */
int nvrtcCompileProgram(program *p, int n, const char **options) {
  char command[600];
  if (n < 2 || strcmp(options[0], "--gpu-architecture=sm_90")) return 5;
  snprintf(command, sizeof command, "cd %s && g++ -O1 -march=native -w -fPIC -shared -iquote . "
      "kernels.cpp -o kernels.so 2> log", p->folder);
  const int done = system(command);
  size_t size;
  p->log = content(p->folder, "log", &size);
  p->cubin = content(p->folder, "kernels.so", &p->size);
  return done ? 6 : 0;
}

int nvrtcGetProgramLogSize(program *p, size_t *size) { return *size = strlen(p->log) + 1, 0; }
int nvrtcGetProgramLog(program *p, char *log) { return strcpy(log, p->log), 0; }
int nvrtcGetCUBINSize(program *p, size_t *size) { return *size = p->size + sizeof *size, 0; }
int nvrtcGetCUBIN(program *p, char *cubin) {
  memcpy(cubin, &p->size, sizeof p->size);
  return memcpy(cubin + sizeof p->size, p->cubin, p->size), 0;
}

int nvrtcDestroyProgram(program **p) {
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", (*p)->folder);
  free((*p)->cubin);
  free((*p)->log);
  return system(command), free(*p), *p = 0, 0;
}
