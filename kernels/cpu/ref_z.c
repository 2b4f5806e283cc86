#define LETTER  z
#define REAL    double
#define SINGLE  0
#define COMPLEX 1
#include "kernels/cpu/ref_body.h"
