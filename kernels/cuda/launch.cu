/* Host side of simt.h on a GPU: the one place that launches kernels, and the encoding of tensor
 * maps. No kernel here. The driver's encoder is looked up through the runtime, so that libcuda is
 * not linked. Compiled by nvcc only: on the CPU the runtime of the tests has these functions. */
#include "kernels/cuda/simt.h"

#include <cuda.h>

gb10_status_t simt_cuda_launch(const simt_launch_t *how, const void *kernel, const void *args,
                               gb10_error_t *err)
{
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)how->shared);
    if (code != cudaSuccess)
        return GB10_FAIL(err, GB10_ERR_DEVICE, "%zu bytes of shared memory for a kernel: %s",
                         how->shared, cudaGetErrorString(code));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = how->cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(how->grid_x, how->grid_y, 1);
    config.blockDim = dim3(how->block, 1, 1);
    config.dynamicSmemBytes = how->shared;
    config.stream = (cudaStream_t)how->stream;
    config.attrs = &cluster;
    config.numAttrs = how->cluster > 1 ? 1 : 0;
    void *parameters[] = {(void *)args};
    code = cudaLaunchKernelExC(&config, kernel, parameters);
    if (code != cudaSuccess)
        return GB10_FAIL(err, GB10_ERR_DEVICE,
                         "launch of %u x %u blocks of %u threads, clusters of %u, %zu bytes: %s",
                         how->grid_x, how->grid_y, how->block, how->cluster, how->shared,
                         cudaGetErrorString(code));
    return GB10_OK;
}

typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                           const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                           const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* Unsigned integers of the element's size: zeros fill the outside, whatever the bits mean. */
static CUtensorMapDataType data_type(int element)
{
    switch (element) {
    case 1:
        return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case 2:
        return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case 4:
        return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    default:
        return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    }
}

gb10_status_t simt_tensor_map(simt_tensor_map_t *map, const simt_tensor_t *t, gb10_error_t *err)
{
    static_assert(sizeof(CUtensorMap) == sizeof(simt_tensor_map_t), "opaque map");
    void *encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                                        cudaEnableDefault, &found);
    if (code != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return GB10_FAIL(err, GB10_ERR_DEVICE, "this driver cannot encode tensor maps");
    const cuuint32_t step[3] = {1, 1, 1};
    const cuuint64_t size[3] = {t->size[0], t->size[1], t->size[2]};
    const cuuint64_t pitch[2] = {t->pitch[0], t->pitch[1]};
    const cuuint32_t box[3] = {t->box[0], t->box[1], t->box[2]};
    CUresult result = ((encode_fn *)encode)(
        (CUtensorMap *)map, data_type(t->element), (cuuint32_t)t->rank, t->base, size, pitch, box,
        step, CU_TENSOR_MAP_INTERLEAVE_NONE,
        t->swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
        : t->swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                           : CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return GB10_FAIL(err, GB10_ERR_DEVICE, "tensor map of %d dimensions, box %u x %u: error %d",
                         t->rank, t->box[0], t->box[1], (int)result);
    return GB10_OK;
}
