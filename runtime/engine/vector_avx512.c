#define VECTOR_SET vector_avx512
#define VECTOR_LEVEL CPU_AVX512
#include "runtime/engine/vector_body.h"
