#define LETTER  s
#define REAL    float
#define SINGLE  1
#define COMPLEX 0
#include "kernels/cpu/ref_body.h"
