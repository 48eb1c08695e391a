#define VECTOR_SET vector_avx2
#define VECTOR_LEVEL CPU_AVX2
#include "runtime/engine/vector_body.h"
