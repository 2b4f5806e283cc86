# fugu: batched QR of HDF5 matrices. `make help` lists the targets.
SHELL := /bin/bash
CC ?= cc
CFLAGS ?= -O2 -g
BUILD ?= build
prefix ?= /usr/local
WITH_SCALAPACK ?= auto
WITH_CUDA ?= auto
QEMU_CC ?= aarch64-linux-gnu-gcc
.DEFAULT_GOAL := all

# What is there. `deps` installs what is missing before demo and test look.
HDF5_CFLAGS := $(shell pkg-config --cflags hdf5-serial 2>/dev/null)
HDF5_LIBS := $(shell pkg-config --libs hdf5-serial 2>/dev/null || echo -lhdf5_serial)
MPI_CFLAGS := $(shell mpicc --showme:compile 2>/dev/null)
MPI_LIBS := $(shell mpicc --showme:link 2>/dev/null)
HAVE_SCALAPACK := $(if $(wildcard $(addsuffix /libscalapack-openmpi.so,/usr/lib/$(shell $(CC) -dumpmachine) /usr/lib64 /usr/lib)),1,0)
SCALAPACK := $(if $(filter auto,$(WITH_SCALAPACK)),$(HAVE_SCALAPACK),$(WITH_SCALAPACK))
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
GIT_DESCRIBE := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(if $(WERROR),-Werror)
BASE := -std=c11 -D_GNU_SOURCE -I. -fPIC -pthread -ffp-contract=off -MMD -MP $(WARN)
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

# The fast CPU kernels are compiled once per instruction set and chosen at run time.
ISAS_x86_64 := baseline avx2
ISAS_aarch64 := baseline
ISAS := $(or $(ISAS_$(ARCH)),baseline)
ISA_FLAGS_baseline :=
ISA_FLAGS_avx2 := -mavx2 -mfma

CORE_SRC := $(wildcard kernels/core/*.c)
ISA_SRC := $(wildcard kernels/cpu/*_isa.c)
KERNEL_SRC := $(CORE_SRC) $(wildcard kernels/*.c kernels/check/*.c) $(filter-out $(ISA_SRC),$(wildcard kernels/cpu/*.c))
IO_SRC := $(wildcard io/*.c)
MPI_SRC := $(wildcard mpi/*.c)
APP_SRC := $(wildcard app/*.c)
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
ISA_OBJ := $(foreach i,$(ISAS),$(patsubst %.c,$(BUILD)/obj/%.$(i).o,$(ISA_SRC)))
LIB_OBJ := $(call obj,$(KERNEL_SRC)) $(ISA_OBJ)
APP_LIBS := $(HDF5_LIBS) $(MPI_LIBS) $(if $(filter 1,$(SCALAPACK)),-lscalapack-openmpi) $(LDLIBS) -lm -pthread

.PHONY: all
all: $(BUILD)/fugu $(BUILD)/libgb10qr.a $(BUILD)/libgb10qr.so ## build the program and the library

$(BUILD)/libgb10qr.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^
$(BUILD)/libgb10qr.so: $(LIB_OBJ)
	$(CC) -shared -Wl,-soname,libgb10qr.so.0 $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm -pthread
$(BUILD)/fugu: $(call obj,$(APP_SRC) $(IO_SRC) $(MPI_SRC)) $(BUILD)/libgb10qr.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(APP_LIBS)

$(BUILD)/obj/io/%.o: EXTRA = $(HDF5_CFLAGS)
$(BUILD)/obj/mpi/%.o: EXTRA = $(MPI_CFLAGS) -DWITH_SCALAPACK=$(SCALAPACK)
$(BUILD)/obj/app/%.o: EXTRA = -DFUGU_GIT='"$(GIT_DESCRIBE)"'
$(BUILD)/obj/kernels/check/%.o $(BUILD)/obj/kernels/cpu/%.o: EXTRA = -O3
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BASE) $(CFLAGS) $(EXTRA) -c -o $@ $<
define isa_rule
$(BUILD)/obj/%_isa.$(1).o: %_isa.c
	@mkdir -p $$(@D)
	$(CC) $(BASE) $(CFLAGS) -O3 $(ISA_FLAGS_$(1)) -DGB10_ISA=$(1) -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$(i))))

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

.PHONY: clean
clean: ## remove build output
	rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' Makefile
