#define LETTER  c
#define REAL    float
#define SINGLE  1
#define COMPLEX 1
#include "kernels/cpu/ref_body.h"
