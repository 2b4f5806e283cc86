/* CRC32C (Castagnoli, polynomial 0x1EDC6F41 reflected, as iSCSI and ext4 have it). For whoever
 * checksums what it writes. */
#ifndef IO_CRC_H
#define IO_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC of what `crc` stands for followed by `size` bytes; 0 stands for nothing. By the machine's
 * instruction where it has one. */
uint32_t io_crc32c(uint32_t crc, const void *bytes, size_t size);

#endif
