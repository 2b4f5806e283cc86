# fugu: batched QR of HDF5 matrices. `make help` lists the targets.
SHELL := /bin/bash
CC ?= cc
CFLAGS ?= -O2 -g
BUILD ?= build
prefix ?= /usr/local
KERNEL_OPT ?= -O3
WITH_SCALAPACK ?= auto
WITH_CUDA ?= auto
.DEFAULT_GOAL := all

# What is there. `deps` installs what is missing before demo and test look.
HDF5_CFLAGS := $(shell pkg-config --cflags hdf5-serial 2>/dev/null)
HDF5_LIBS := $(shell pkg-config --libs hdf5-serial 2>/dev/null || echo -lhdf5_serial)
MPI_CFLAGS := $(shell mpicc --showme:compile 2>/dev/null)
MPI_LIBS := $(shell mpicc --showme:link 2>/dev/null)
HAVE_SCALAPACK := $(if $(wildcard $(addsuffix /libscalapack-openmpi.so,/usr/lib/$(shell $(CC) -dumpmachine) /usr/lib64 /usr/lib)),1,0)
SCALAPACK := $(if $(filter auto,$(WITH_SCALAPACK)),$(HAVE_SCALAPACK),$(WITH_SCALAPACK))
ifeq ($(WITH_SCALAPACK)$(HAVE_SCALAPACK),10)
$(error WITH_SCALAPACK=1, but libscalapack-openmpi is not installed; run make deps)
endif
NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda*/bin/nvcc))
CUDA_ARCHS ?= 90a 121a
CUDA := $(if $(filter auto,$(WITH_CUDA)),$(if $(NVCC),1,0),$(WITH_CUDA))
ifeq ($(CUDA)$(if $(NVCC),1,0),10)
$(error WITH_CUDA=1, but there is no nvcc; set NVCC or install the CUDA toolkit)
endif
GIT_DESCRIBE := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(if $(WERROR),-Werror)
BASE := -std=c11 -D_GNU_SOURCE -I. -fPIC -pthread -ffp-contract=off -MMD -MP $(WARN)
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

# The fast CPU kernels are compiled once per instruction set and chosen at run time.
ISAS_x86_64 := baseline avx2 avx512
ISAS_aarch64 := neon
ISAS := $(or $(ISAS_$(ARCH)),baseline)
ISA_FLAGS_baseline :=
ISA_FLAGS_avx2 := -mavx2 -mfma
ISA_FLAGS_avx512 := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma
# TWICE=1: a build for tests, whose avx512 kernels run on AVX2 (slowly).
ifeq ($(TWICE),1)
ISA_FLAGS_avx512 := -O0 -mavx2 -mfma -DGB10_TWICE -Wno-psabi
endif

CORE_SRC := $(wildcard kernels/core/*.c)
ISA_SRC := $(wildcard kernels/cpu/*_isa.c)
KERNEL_SRC := $(CORE_SRC) $(wildcard kernels/*.c kernels/check/*.c kernels/tuning/*.c) $(filter-out $(ISA_SRC),$(wildcard kernels/cpu/*.c))
IO_SRC := $(wildcard io/*.c)
MPI_SRC := $(wildcard mpi/*.c)
APP_SRC := $(wildcard app/*.c)
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
CUDA_SRC := $(filter-out kernels/cuda/cuda_absent.c,$(wildcard kernels/cuda/*.c))
CUDA_CU := $(wildcard kernels/cuda/*.cu)
CUDA_OBJ := $(if $(filter 1,$(CUDA)),$(call obj,$(CUDA_SRC)) $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(CUDA_CU)),$(call obj,kernels/cuda/cuda_absent.c))
CUDA_LIBS := $(if $(filter 1,$(CUDA)),-L$(dir $(NVCC))../lib64 -lcudart_static -lrt)
ISA_OBJ := $(foreach i,$(ISAS),$(patsubst %.c,$(BUILD)/obj/%.$(i).o,$(ISA_SRC)))
CPU_OBJ := $(call obj,$(KERNEL_SRC)) $(ISA_OBJ)
LIB_OBJ := $(CPU_OBJ) $(CUDA_OBJ)
APP_LIBS := $(HDF5_LIBS) $(MPI_LIBS) $(if $(filter 1,$(SCALAPACK)),-lscalapack-openmpi) $(LDLIBS) $(CUDA_LIBS) -lm -ldl -pthread

.PHONY: all
all: $(BUILD)/fugu $(BUILD)/libgb10qr.a $(BUILD)/libgb10qr.so ## build the program and the library

$(BUILD)/libgb10qr.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^
$(BUILD)/libgb10qr.so: $(LIB_OBJ)
	$(CC) -shared -Wl,-soname,libgb10qr.so.0 $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) -lm -ldl -pthread
$(BUILD)/fugu: $(call obj,$(APP_SRC) $(IO_SRC) $(MPI_SRC)) $(BUILD)/libgb10qr.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(APP_LIBS)

$(BUILD)/obj/io/%.o: EXTRA = $(HDF5_CFLAGS)
$(BUILD)/obj/mpi/%.o: EXTRA = $(MPI_CFLAGS) -DWITH_SCALAPACK=$(SCALAPACK)
$(BUILD)/obj/app/context.o: EXTRA = -DFUGU_GIT='"$(GIT_DESCRIBE)"'
$(BUILD)/obj/app/context.o: $(BUILD)/git-$(GIT_DESCRIBE)
$(BUILD)/git-%:
	@mkdir -p $(@D)
	@rm -f $(BUILD)/git-* && touch $@
$(BUILD)/obj/kernels/check/%.o $(BUILD)/obj/kernels/cpu/%.o: EXTRA = -O3 $(if $(TWICE),-DGB10_TWICE)
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BASE) $(CFLAGS) $(EXTRA) -c -o $@ $<
$(BUILD)/obj/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O3 -I. -fmad=false -MMD -MP --threads 2 -Xcompiler -fPIC,-fno-threadsafe-statics,-fno-exceptions $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) -c -o $@ $<
define isa_rule
$(BUILD)/obj/%_isa.$(1).o: %_isa.c
	@mkdir -p $$(@D)
	$(CC) $(BASE) $(CFLAGS) $(KERNEL_OPT) $(ISA_FLAGS_$(1)) -DGB10_ISA=$(1) -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$(i))))

-include $(shell find $(BUILD)/obj $(BUILD)/plain $(BUILD)/simt $(BUILD)/cubin -name '*.d' 2>/dev/null)

# ---- tests ----
TEST_SRC := $(wildcard tests/unit/test_*.c tests/kernels/test_*.c)
MPI_TEST_SRC := $(wildcard tests/mpi/test_*.c)
TEST_OBJ := $(call obj,$(filter-out app/main.c,$(APP_SRC)) $(IO_SRC) $(MPI_SRC) $(wildcard tests/support/*.c))
TEST_EXE := $(patsubst %.c,$(BUILD)/%,$(TEST_SRC))
MPI_TEST_EXE := $(patsubst %.c,$(BUILD)/%,$(MPI_TEST_SRC))
$(BUILD)/obj/tests/%.o: EXTRA = $(HDF5_CFLAGS) $(MPI_CFLAGS) -Wno-missing-prototypes
$(TEST_EXE) $(MPI_TEST_EXE): $(BUILD)/%: $(BUILD)/obj/%.o $(TEST_OBJ) $(BUILD)/libgb10qr.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcriterion -llapacke -lopenblas $(APP_LIBS)
$(BUILD)/dump_catalog: $(BUILD)/obj/tests/io/dump_catalog.o $(call obj,$(IO_SRC)) $(BUILD)/libgb10qr.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(HDF5_LIBS) $(CUDA_LIBS) -lm -ldl -pthread

$(BUILD)/sim_dispatch: $(BUILD)/obj/tests/bench/sim_dispatch.o $(BUILD)/obj/mpi/planner.o $(BUILD)/libgb10qr.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) -lm -ldl -pthread

# Same bodies without Criterion, for qemu-user and ThreadSanitizer: core, kernels and io alone.
PLAIN_OBJ := $(patsubst %.c,$(BUILD)/plain/%.o,$(TEST_SRC) $(wildcard tests/support/*.c))
PLAIN_SRC := $(filter-out tests/unit/test_app_%.c tests/unit/test_mpi_%.c,$(TEST_SRC))
PLAIN_EXE := $(patsubst %.c,$(BUILD)/plain/%,$(PLAIN_SRC))
$(BUILD)/plain/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BASE) $(CFLAGS) $(HDF5_CFLAGS) -Wno-missing-prototypes -DTEST_PLAIN -c -o $@ $<
$(PLAIN_EXE): %: %.o $(patsubst %.c,$(BUILD)/plain/%.o,$(wildcard tests/support/*.c)) $(call obj,$(IO_SRC)) $(BUILD)/libgb10qr.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -llapacke -lopenblas $(HDF5_LIBS) $(LDLIBS) $(CUDA_LIBS) -lm -ldl -pthread

.PHONY: test-build plain-build
test-build: all $(TEST_EXE) $(MPI_TEST_EXE) $(BUILD)/dump_catalog $(BUILD)/sim_dispatch simt-build
plain-build: $(PLAIN_EXE)

.PHONY: test
test: ## install what is missing, build, run every test that needs no GPU
	@jobs/deps.sh
	@$(MAKE) --no-print-directory WITH_SCALAPACK=1 test-build
	@tests/run.sh $(BUILD)

.PHONY: check
check: ## the long form: every family at every size
	@jobs/deps.sh
	@$(MAKE) --no-print-directory WITH_SCALAPACK=1 test-build
	@FUGU_TEST_LONG=1 tests/run.sh $(BUILD)

.PHONY: torture
torture: ## kill runs in every phase and let every call fail; half an hour
	@$(MAKE) --no-print-directory WITH_SCALAPACK=1 all
	@FUGU=$(abspath $(BUILD))/fugu bash tests/cli/torture.sh $(KILLS) $(SEED)

.PHONY: simulate
simulate: $(BUILD)/sim_dispatch ## the hand-out of units to up to 10,000 ranks, as a table
	@$(BUILD)/sim_dispatch

.PHONY: demo
demo: ## install what is missing, build, and show what fugu does
	@jobs/deps.sh
	@$(MAKE) --no-print-directory WITH_SCALAPACK=1 all
	@jobs/demo.sh $(BUILD)/fugu

.PHONY: deps
deps: ## install the Debian packages that are missing
	@jobs/deps.sh

# Results: build/bench/<cpu>-<date>.{txt,csv,json}. BENCH_FLAGS="--types d --sizes 8,64" for less.
BENCH_FLAGS ?=
.PHONY: bench
bench: all ## make the peers that can be had, measure fugu and them, write build/bench/
	@tests/peers/setup.sh $(BUILD)
	@mkdir -p $(BUILD)/bench
	@set -o pipefail; cpu=$$(lscpu | sed -n 's/^Model name: *//p' | head -n 1 | tr -cs '[:alnum:]\n' '-'); \
	    name=$(BUILD)/bench/$${cpu:-cpu}-$$(date +%Y-%m-%d-%H%M); \
	    $(BUILD)/fugu bench --peers --csv $$name.csv --json $$name.json $(BENCH_FLAGS) | tee $$name.txt

$(BUILD)/syrk_bench: $(BUILD)/obj/tests/bench/syrk_bench.o $(BUILD)/libgb10qr.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) -lm -ldl -pthread
.PHONY: bench-syrk
bench-syrk: $(BUILD)/syrk_bench ## measure the rank-k update against BLAS=libopenblas.so.0
	@$< $(BLAS)

# CUDA kernels on the CPU: C++17 against a runtime of fibers. The runtime is never compiled with
# ThreadSanitizer, it tells it what the threads of a kernel do.
SIMT_SRC := $(filter-out tests/simt/test_%.c tests/simt/gpu_%.c,$(wildcard tests/simt/*.c))
KERNEL_CU := $(filter-out kernels/cuda/launch.cu kernels/cuda/cuda_device.cu,$(CUDA_CU))
SIMT_CU := $(wildcard tests/simt/simt_*.cu)
SIMT_EXE := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/simt/test_*.c))
SIMT_OBJ := $(patsubst %,$(BUILD)/simt/%.o,$(SIMT_SRC) $(SIMT_CU) kernels/core/status.c)
$(BUILD)/simt/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(CXX) -x c++ -std=c++17 -D_GNU_SOURCE -I. -ffp-contract=off -fno-exceptions -fno-rtti -MMD -MP -Wall -Wextra -Wno-unknown-pragmas $(if $(WERROR),-Werror) $(CFLAGS) $(CXX_TARGET) -c -o $@ $<
$(BUILD)/simt/tests/simt/simt_%.c.o: EXTRA = $(if $(findstring sanitize=thread,$(CFLAGS)),-fno-sanitize=thread -DSIMT_TSAN)
$(BUILD)/simt/%.c.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BASE) $(CFLAGS) $(EXTRA) -Wno-missing-prototypes -DTEST_PLAIN -c -o $@ $<
$(BUILD)/tests/simt/test_simt_qr: $(BUILD)/simt/tests/support/batch.c.o $(BUILD)/simt/libgb10qr.a
$(filter-out %/test_simt_qr,$(SIMT_EXE)): $(SIMT_OBJ)
$(SIMT_EXE): $(BUILD)/%: $(BUILD)/simt/%.c.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm -pthread
# The library, its tests and the program with the cuda backend on that runtime.
SIMT_LIB_OBJ := $(CPU_OBJ) $(patsubst %,$(BUILD)/simt/%.o,$(CUDA_SRC) $(KERNEL_CU) $(SIMT_SRC))
SIMT_TEST_EXE := $(patsubst tests/kernels/%.c,$(BUILD)/simt/tests/kernels/%,$(wildcard tests/kernels/test_*.c))
$(BUILD)/simt/libgb10qr.a: $(SIMT_LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^
$(SIMT_TEST_EXE): $(BUILD)/simt/%: $(BUILD)/obj/%.o $(TEST_OBJ) $(BUILD)/simt/libgb10qr.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcriterion -llapacke -lopenblas $(APP_LIBS)
$(BUILD)/simt/fugu: $(call obj,$(APP_SRC) $(IO_SRC) $(MPI_SRC)) $(BUILD)/simt/libgb10qr.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(APP_LIBS)

# The same tests on a GPU, and times: CUDA and libc alone.
GPU_EXE := $(addprefix $(BUILD)/gpu/,$(addprefix tests/simt/,test_simt_cases test_simt_qr test_simt_vectors gpu_time) $(addprefix tests/kernels/,test_geqrf test_policies test_layouts test_apply test_syrk))
GPU_OBJ := $(addprefix $(BUILD)/,obj/tests/simt/gpu_run.cu.o obj/tests/simt/gpu_peak.cu.o obj/tests/simt/simt_cases.cu.o simt/tests/simt/simt_tensor.c.o simt/tests/support/batch.c.o libgb10qr.a)
$(BUILD)/gpu/tests/simt/gpu_time: $(BUILD)/simt/tests/simt/gpu_peers.c.o
$(GPU_EXE): $(BUILD)/gpu/%: $(BUILD)/simt/%.c.o $(GPU_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) -lm -ldl -pthread
.PHONY: simt-build simt-programs
simt-programs: $(SIMT_EXE)
simt-build: simt-programs $(SIMT_TEST_EXE) $(BUILD)/simt/fugu $(if $(filter 1,$(CUDA)),$(GPU_EXE))

.PHONY: gpu-check
gpu-check: $(if $(filter 1,$(CUDA)),$(GPU_EXE)) ## run and time every kernel on the GPU here, against the CPU
	@tests/simt/gpu_check.sh $(BUILD)

# Whether the PTX assembles: cubins for both chips, without calls into the driver.
CUBINS := $(foreach a,$(CUDA_ARCHS),$(patsubst %.cu,$(BUILD)/cubin/%.$(a).cubin,$(KERNEL_CU) tests/simt/simt_cases.cu))
define cubin_rule
$(BUILD)/cubin/%.$(1).cubin: %.cu
	@mkdir -p $$(@D)
	$(NVCC) -std=c++17 -O3 -I. -fmad=false -MMD -MP -cubin -Xptxas -v -gencode arch=compute_$(1),code=sm_$(1) -o $$@ $$< 2>$$@.txt || { cat $$@.txt; exit 1; }
	@! grep -q __cuda_syscall_ $$@ || { echo "$$@ calls the driver" >&2; rm -f $$@; exit 1; }
endef
$(foreach a,$(CUDA_ARCHS),$(eval $(call cubin_rule,$(a))))
.PHONY: cubins cuda-report
cuda-report: $(CUBINS) $(BUILD)/cuda_report ## registers of every kernel, and what each size is modelled to take
	@tests/lint/cubins.sh $(BUILD)
	@$(BUILD)/cuda_report
cubins: $(CUBINS) ## assemble the CUDA sources for CUDA_ARCHS (needs nvcc, no GPU)

$(BUILD)/cuda_report: $(BUILD)/obj/tests/bench/cuda_report.o $(BUILD)/obj/kernels/cuda/qr_plan.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
.PHONY: asan
asan: ## unit and kernel tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan WITH_CUDA=0 CFLAGS="$(SANITIZE)" KERNEL_OPT=-O0 test-build
	@FUGU_TEST_SHORT=1 ASAN_OPTIONS=detect_leaks=1 tests/run.sh $(BUILD)/asan unit

.PHONY: tsan
tsan: ## the tests of threads under ThreadSanitizer
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/tsan WITH_CUDA=0 CFLAGS="-O1 -g -fsanitize=thread" KERNEL_OPT=-O0 $(BUILD)/tsan/plain/tests/kernels/test_threads
	OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS=halt_on_error=1 $(BUILD)/tsan/plain/tests/kernels/test_threads

.PHONY: coverage
coverage: ## line coverage of all tests, per folder and file (gcov); minutes
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/coverage WITH_CUDA=0 CFLAGS="-O1 -g --coverage" KERNEL_OPT=-O0 test-build
	@find $(BUILD)/coverage -name '*.gcda' -delete
	@code=0; tests/run.sh $(BUILD)/coverage unit mpi cli io || code=$$?; \
	    tests/lint/coverage.sh $(BUILD)/coverage && exit $$code

# ---- style ----
C_FILES := $(wildcard app/*.[ch] io/*.[ch] mpi/*.[ch] kernels/*.[ch] kernels/*/*.[ch] tests/*/*.[ch] tests/*/*.cpp kernels/cuda/*.cu tests/simt/*.cu)
.PHONY: format
format: ## rewrite all C files with clang-format
	clang-format -i $(C_FILES)
.PHONY: format-check
format-check: ## fail when clang-format would change a file
	clang-format --dry-run -Werror $(C_FILES)
.PHONY: lint
lint: all format-check ## clang-tidy, cppcheck, shellcheck, include table, man page, sizes
	@tests/lint/includes.sh
	@tests/lint/man.sh $(BUILD)/fugu
	shellcheck -x jobs/*.sh jobs/*.sbatch tests/*.sh tests/*/*.sh .ci/run
	cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c11 \
	    --inline-suppr -I. --suppressions-list=tests/lint/cppcheck.txt app io mpi kernels
	@tests/lint/tidy.sh $(HDF5_CFLAGS) $(MPI_CFLAGS)
	@tests/lint/sizes.sh

# ---- install ----
.PHONY: install
install: all ## install program, library, header, man page and pkg-config file below prefix
	install -d $(DESTDIR)$(prefix)/bin $(DESTDIR)$(prefix)/lib/pkgconfig $(DESTDIR)$(prefix)/include $(DESTDIR)$(prefix)/share/man/man1
	install -m 755 $(BUILD)/fugu $(DESTDIR)$(prefix)/bin/
	install -m 644 $(BUILD)/libgb10qr.a $(DESTDIR)$(prefix)/lib/
	install -m 755 $(BUILD)/libgb10qr.so $(DESTDIR)$(prefix)/lib/libgb10qr.so.0
	ln -sf libgb10qr.so.0 $(DESTDIR)$(prefix)/lib/libgb10qr.so
	awk '/^#include "kernels/ { gsub(/"/, "", $$2); while ((getline line < $$2) > 0) print line; next } 1' kernels/gb10.h > $(DESTDIR)$(prefix)/include/gb10.h
	install -m 644 app/fugu.1 $(DESTDIR)$(prefix)/share/man/man1/
	printf 'prefix=%s\nName: gb10qr\nDescription: batched Householder QR\nVersion: 0.1.0\nLibs: -L$${prefix}/lib -lgb10qr -lm -pthread\nLibs.private: $(CUDA_LIBS) -ldl\nCflags: -I$${prefix}/include\n' '$(prefix)' > $(DESTDIR)$(prefix)/lib/pkgconfig/gb10qr.pc
.PHONY: uninstall
uninstall: ## remove what install put there
	cd $(DESTDIR)$(prefix) && rm -f bin/fugu lib/libgb10qr.a lib/libgb10qr.so lib/libgb10qr.so.0 lib/pkgconfig/gb10qr.pc include/gb10.h share/man/man1/fugu.1

.PHONY: info
info: ## what this build has found
	@echo "CC $(CC)  CFLAGS $(CFLAGS)  instruction sets $(ISAS)"
	@echo "HDF5 $(HDF5_LIBS)"
	@echo "MPI $(MPI_LIBS)"
	@echo "CUDA compiler $(or $(NVCC),none)"
	@echo "cuda backend $(if $(filter 1,$(CUDA)),for $(CUDA_ARCHS),not built)"
	@echo "ScaLAPACK $(if $(filter 1,$(SCALAPACK)),yes,no: libscalapack-openmpi-dev is not installed)"

.PHONY: clean
clean: ## remove build output
	rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' Makefile
